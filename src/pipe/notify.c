/* notify.c - changes of a loader's state that other threads have to learn about
 *
 * These are called from all over the floor and call nothing of it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "pipe/loader.h"

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

bool st_jpeg_engines_may_rest(const struct stoker_loader *loader)
{
    uint32_t ready = 0;
    if (loader->next_ticket < loader->engines.rest_until ||
        (loader->engines.slow_until_ns && st_now_ns() < loader->engines.slow_until_ns))
        return true;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        ready += slot->state == ST_SLOT_READY;
    return ready && 2 * ready >= st_tuned(&loader->tuning, ST_TUNE_PREFETCH);
}

void st_jpeg_engines_wake(struct stoker_loader *loader)
{
    if (loader->engines.kind && (loader->closing || !st_jpeg_engines_may_rest(loader)))
        pthread_cond_broadcast(&loader->engines.work);
}
