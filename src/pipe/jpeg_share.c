/* jpeg_share.c - which of the files for the JPEG hardware its threads decode themselves
 *
 * What the hardware takes for an image, and what a training step loses by it, hardly depends on the
 * image's size: about 10 us of the GPU. What a CPU takes does, from 60 us for a small crop of a small
 * file to more than 1000. And a JPEG thread often has nothing to do: it waits for the hardware, or
 * rests because batches are ready. So it decodes a share of the files itself, those that are cheapest
 * for a CPU.
 *
 * How many depends on how far ahead of the consumer the work is: none up to a reserve, then more and
 * more. So the hardware is used for what the CPUs cannot do, and as soon as batches become scarce it
 * does all it can. But as soon as enough batches are ready, the threads rest, and then CPUs are idle for
 * what the hardware has done in a hurry. So there is a least share, which is learnt: it grows while
 * batches come in time, and shrinks after one that came so late that the GPU had nothing left to do. A
 * consumer that waits while its GPU still works loses nothing.
 *
 * While the consumer waits in any case, the share is what makes the most of the hardware and the thread:
 * it grows while the thread waits for the hardware, and shrinks while it does not. Where others need the
 * thread's CPU, the share is limited: the consumer may be one of them. That does not count while the
 * thread gives way to the consumer, and its GPU had work when it last took a batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_share.h"

#include "codec/jpeg/headers.h"
#include "pipe/notify.h"

enum {
    SHARE_MOST = 48,   /* the rest is for the hardware: a thread without files for it would pause */
    LESS = 8,          /* a share is reduced by this fraction, but grows by one at a time */
    BYTE_PIXELS = 2,   /* making so many pixels takes as long as parsing one byte of a file */
    CALM_FIRST = 4,    /* after so many batches in time the least share grows by one; */
    CALM_BATCHES = 64, /* and after the first late batch, which costs more than a share gains, so many */
    SETTLING = 16,     /* late batches within so many have one cause */
};
/* relative to the batches that are to be ready: */
#define RESERVE          0.25
#define FULL_SHARE_AHEAD 0.625
#define MUCH_NS          100000u /* shorter times say nothing */

uint64_t st_jpeg_cpu_cost(const struct st_jpeg_frame *frame, struct st_bytes file,
                          struct st_region window)
{
    return file.size / frame->height * window.height +
           (uint64_t)window.width * window.height / BYTE_PIXELS;
}

/* How many of the items a CPU decodes in less time than this one. */
static uint32_t cheaper_than(const struct st_jpeg_thread *self, uint32_t item)
{
    const uint64_t cost = self->item[item].cost;
    uint32_t cheaper = 0;
    for (uint32_t k = 0; k < self->count; k++)
        cheaper += self->item[k].cost < cost || (self->item[k].cost == cost && k < item);
    return cheaper;
}

uint32_t st_jpeg_share_pick(const struct st_jpeg_thread *self, bool mine[ST_JPEG_CHUNK_MOST])
{
    const uint32_t share = self->count * self->share / ST_JPEG_SHARES;
    for (uint32_t k = 0; share && k < self->count; k++)
        mine[k] = cheaper_than(self, k) < share;
    return share;
}

/* Whether the thread was without a CPU for a quarter of the time in which it had something to decode:
 * others had it, or the host of a virtual machine. */
static bool is_crowded(const struct st_jpeg_times *times)
{
    return times->here > MUCH_NS && times->here - times->here / 4 > times->here_cpu;
}

/* Whether the thread waited for an eighth of the time. */
static bool waits(const struct st_jpeg_times *times)
{
    return times->all > MUCH_NS && times->all - times->all / 8 > times->all_cpu;
}

static uint32_t share_ahead(double ahead)
{
    const double part = (ahead - RESERVE) / (FULL_SHARE_AHEAD - RESERVE);
    return part <= 0 ? 0 : part >= 1 ? ST_JPEG_SHARES : (uint32_t)(part * ST_JPEG_SHARES);
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint32_t changed(uint32_t share, bool grows)
{
    return grows ? least(share + 1, SHARE_MOST) : share - share / LESS - (share > 0);
}

static void adapt_least(struct st_jpeg_threads *jpeg, bool late)
{
    jpeg->settling -= jpeg->settling > 0;
    jpeg->calm = late ? 0 : jpeg->calm + 1;
    if (late && !jpeg->settling) {
        jpeg->share_least = changed(jpeg->share_least, false);
        jpeg->settling = SETTLING;
        jpeg->was_late = true;
    } else if (jpeg->calm >= (jpeg->was_late ? CALM_BATCHES : CALM_FIRST)) {
        jpeg->share_least = changed(jpeg->share_least, true);
        jpeg->calm = 0;
    }
}

void st_jpeg_share_served(struct st_slot *slot, const uintptr_t *stream)
{
    struct st_device *device = slot->shape.device;
    if (!slot->shape.jpeg_hw || slot->served)
        return;
    slot->served = true;
    /* Without the lock: the device may be slow to answer while kernels are being launched. */
    const bool busy = stream && !device->kind->caught_up(device, *stream);
    const bool late = slot->awaited && !busy;
    struct st_jpeg_threads *jpeg = &slot->loader->jpeg;
    pthread_mutex_lock(&slot->loader->lock);
    jpeg->gpu_busy = busy;
    jpeg->under_way |= !late; /* an epoch's first batches are late, whatever the share is */
    if (jpeg->under_way)
        adapt_least(jpeg, late);
    pthread_mutex_unlock(&slot->loader->lock);
}

void st_jpeg_share_set(struct st_jpeg_thread *self, double ahead, bool awaited)
{
    const uint32_t learnt = self->worker.loader->jpeg.share_least;
    const uint32_t spare = awaited ? 0 : most(share_ahead(ahead), learnt);
    self->share = least(least(most(spare, self->share_fastest), self->share_limit), SHARE_MOST);
}

void st_jpeg_share_adapt(struct st_jpeg_thread *self, bool awaited)
{
    const struct stoker_loader *loader = self->worker.loader;
    const bool harmless = loader->jpeg.gpu_busy && st_jpeg_threads_yield(loader);
    self->share_limit = changed(self->share_limit, harmless || !is_crowded(&self->times));
    if (awaited)
        self->share_fastest = changed(self->share_fastest, waits(&self->times));
}
