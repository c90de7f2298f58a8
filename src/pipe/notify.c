/* notify.c - changes of a loader's state that other threads have to learn about
 *
 * These are called from all over the layer and call nothing of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/notify.h"

#include "base/clock.h"

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

static uint32_t batches_ready(const struct stoker_loader *loader)
{
    uint32_t ready = 0;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        ready += slot->state == ST_SLOT_READY;
    return ready;
}

struct st_steer_seen st_jpeg_threads_see(const struct stoker_loader *loader, uint32_t thread)
{
    return (struct st_steer_seen){
        .now_ns = st_now_ns(),
        .next_ticket = loader->next_ticket,
        .thread = thread,
        .cpus = (uint32_t)loader->tuning.cpus,
        .open = loader->jpeg.ready,
        .workers = loader->worker_count,
        .batch_size = loader->opt.batch_size,
        .prefetch = st_tuned(&loader->tuning, ST_TUNE_PREFETCH),
        .ready = batches_ready(loader),
        .begun = (double)(loader->next_batch - loader->delivered) +
                 (double)loader->next_row / loader->opt.batch_size,
        .waits = loader->tuning.late_ns != 0,
    };
}

bool st_jpeg_threads_yield(const struct stoker_loader *loader)
{
    return st_steer_yields((uint32_t)loader->tuning.cpus, loader->jpeg.count);
}

void st_jpeg_threads_engage(struct stoker_loader *loader, bool engages)
{
    if (st_steer_engage(&loader->jpeg.steer, engages, st_now_ns()))
        pthread_cond_broadcast(&loader->tuning.rest);
}

void st_jpeg_threads_wake(struct stoker_loader *loader)
{
    struct st_jpeg_threads *jpeg = &loader->jpeg;
    if (!jpeg->kind)
        return;
    struct st_steer_seen seen = st_jpeg_threads_see(loader, 0);
    const bool passes = st_steer_passes(&jpeg->steer, seen.next_ticket, seen.now_ns);
    for (; seen.thread < ST_JPEG_THREADS; seen.thread++)
        if (loader->closing.set || (!passes && !st_steer_is_ahead(&seen)))
            pthread_cond_signal(&jpeg->work[seen.thread]);
    if (st_steer_is_idle(&jpeg->steer, seen.now_ns))
        st_jpeg_threads_engage(loader, false);
}
