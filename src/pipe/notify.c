/* notify.c - changes of a loader's state that other threads have to learn about
 *
 * These are called from all over the floor and call nothing of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/notify.h"

#include "base/clock.h"

#define IDLE_NS 1000000000u /* hardware that has rested for so long is not needed */

void st_loader_break(struct stoker_loader *loader, const struct stoker_error *err)
{
    if (!loader->broken.code)
        loader->broken = *err;
}

void st_worker_rests(struct stoker_loader *loader)
{
    if (--loader->busy == 0 && (!loader->epoch.running || loader->broken.code))
        pthread_cond_broadcast(&loader->ready); /* stop() and next() may wait for this */
}

bool st_jpeg_threads_pass(const struct stoker_loader *loader)
{
    return loader->next_ticket < loader->jpeg.rest_until ||
           (loader->jpeg.slow_until_ns && st_now_ns() < loader->jpeg.slow_until_ns);
}

static uint32_t batches_ready(const struct stoker_loader *loader)
{
    uint32_t ready = 0;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        ready += slot->state == ST_SLOT_READY;
    return ready;
}

/* The JPEG threads keep half of the prefetched batches ready. Where they and the consumer have all
 * CPUs, one of them does, and the second helps if that is not enough: two would only disturb the
 * consumer more often. */
bool st_jpeg_threads_ahead(const struct stoker_loader *loader, uint32_t thread)
{
    const bool few = (uint32_t)loader->tuning.cpus <= loader->jpeg.ready + ST_CONSUMERS;
    const bool helper = few && thread && loader->jpeg.ready > 1;
    const uint32_t ready = batches_ready(loader);
    return ready && (helper || 2 * ready >= st_tuned(&loader->tuning, ST_TUNE_PREFETCH));
}

bool st_jpeg_threads_yield(const struct stoker_loader *loader)
{
    return (uint32_t)loader->tuning.cpus <= loader->jpeg.count;
}

/* A JPEG thread that works on the CPU of the consumer, which has a batch, should not keep it from
 * launching kernels for long. */
bool st_jpeg_threads_brief(const struct stoker_loader *loader)
{
    return (uint32_t)loader->tuning.cpus <= loader->jpeg.ready && batches_ready(loader);
}

void st_jpeg_threads_engage(struct stoker_loader *loader, bool engaged)
{
    struct st_jpeg_threads *jpeg = &loader->jpeg;
    if (engaged)
        jpeg->worked_ns = st_now_ns();
    else if (jpeg->engaged)
        pthread_cond_broadcast(&loader->tuning.rest);
    jpeg->engaged = engaged;
}

void st_jpeg_threads_wake(struct stoker_loader *loader)
{
    struct st_jpeg_threads *jpeg = &loader->jpeg;
    if (!jpeg->kind)
        return;
    const bool pass = st_jpeg_threads_pass(loader);
    for (uint32_t k = 0; k < ST_JPEG_THREADS; k++)
        if (loader->closing.set || (!pass && !st_jpeg_threads_ahead(loader, k)))
            pthread_cond_signal(&jpeg->work[k]);
    if (jpeg->engaged && st_now_ns() - jpeg->worked_ns > IDLE_NS)
        st_jpeg_threads_engage(loader, false);
}
