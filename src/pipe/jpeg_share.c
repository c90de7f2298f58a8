/* jpeg_share.c - which of the files for the JPEG engines their threads decode themselves
 *
 * What the engines take for an image, and what a training step loses by it, hardly depends on the
 * image's size: about 10 us of the GPU. What a CPU takes does, from 60 us for a small crop of a small
 * file to more than 1000. And an engine thread often has nothing to do: it waits for the engines, or
 * rests because batches are ready. So it decodes a share of the files itself, those that are cheapest
 * for a CPU. With two CPUs or four, a training step then loses a third to a half less by the engines,
 * and where loading is the limit there are up to a tenth more images (bench/RESULTS-GPU.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/headers.h"
#include "pipe/jpeg_chunk.h"

enum {
    SHARE_MOST = 48, /* the rest is for the engines: a thread without files for them would pause */
    HURRY = 8,       /* the share is reduced by this fraction if it delays batches */
    BYTE_PIXELS = 2, /* making so many pixels takes as long as parsing one byte of a file */
};
#define MUCH_NS 100000u /* shorter times say nothing */

uint64_t st_jpeg_cpu_cost(const struct st_jpeg_frame *frame, struct st_bytes file,
                          struct st_region window)
{
    return file.size / frame->height * window.height +
           (uint64_t)window.width * window.height / BYTE_PIXELS;
}

/* How many of the items a CPU decodes in less time than this one. */
static uint32_t cheaper_than(const struct st_jpeg_engine_worker *self, uint32_t item)
{
    const uint64_t cost = self->item[item].cost;
    uint32_t cheaper = 0;
    for (uint32_t k = 0; k < self->count; k++)
        cheaper += self->item[k].cost < cost || (self->item[k].cost == cost && k < item);
    return cheaper;
}

uint32_t st_jpeg_share_pick(const struct st_jpeg_engine_worker *self, bool mine[ST_JPEG_CHUNK_MOST])
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

void st_jpeg_share_adapt(struct st_jpeg_engine_worker *self, bool rested, uint32_t ready,
                         uint32_t prefetch)
{
    const uint32_t share = self->share, less = share / HURRY + (share > 0);
    if (is_crowded(&self->times))
        self->share -= less;
    else if (rested || waits(&self->times))
        self->share += share < SHARE_MOST;
    else if (!ready)
        self->share -= less;
    else if (2 * ready < prefetch)
        self->share -= share > 0;
}
