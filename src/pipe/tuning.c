/* tuning.c - measures a loader for tune.c and applies its decisions
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/tuning.h"

#include "base/clock.h"
#include "base/cpu.h"

#include <stddef.h>
#include <string.h>

enum {
    PREFETCH_MOST = 8,
    BATCHES_PART = 4,   /* fraction of max_memory for batches beyond the initial ones */
    WINDOW_BATCHES = 8, /* minimum */
};
#define WINDOW_SECONDS 0.5
#define PAUSE_SECONDS  1.0 /* the consumer paused if it took this long and */
#define PAUSE_TIMES    8   /* this many times as long as usual */

void st_tuning_plan_prefetch(struct stoker_loader *loader, bool moves)
{
    const uint32_t first = loader->opt.prefetch;
    /* With a device, each batch also takes device memory, which we do not count; and pinned memory is
     * scarce. */
    const bool may = moves && !loader->device && !loader->shape.pinned;
    st_tune_lever(&loader->tuning.tune, ST_TUNE_PREFETCH, first, first, may ? PREFETCH_MOST : first);
}

void st_tuning_plan(struct stoker_loader *loader, uint32_t depth, uint32_t depth_most)
{
    struct st_tuning *tuning = &loader->tuning;
    const uint32_t workers = loader->worker_count;
    st_tune_lever(&tuning->tune, ST_TUNE_WORKERS, loader->opt.workers < 0 && workers ? 1 : workers,
                  workers, workers);
    st_tune_lever(&tuning->tune, ST_TUNE_DEPTH, depth, depth, depth_most);
    tuning->cpus = st_cpu_share();
    tuning->window_seconds = WINDOW_SECONDS;
}

uint64_t st_tuning_batches(const struct stoker_loader *loader)
{
    const struct st_lever *prefetch = &loader->tuning.tune.lever[ST_TUNE_PREFETCH];
    const uint64_t part = loader->opt.max_memory / BATCHES_PART, each = st_slot_bytes(&loader->shape);
    const uint32_t slots = prefetch->most + ST_SLOTS_MORE;
    if (prefetch->least == prefetch->most || !each)
        return 0;
    return each < part / slots ? slots * each : part;
}

static uint32_t prefetch_room(const struct stoker_loader *loader)
{
    const uint64_t fixed = st_slot_bytes(&loader->shape), lately = loader->batch_bytes;
    const uint64_t each = fixed > lately ? fixed : lately, part = loader->opt.max_memory / BATCHES_PART;
    const uint64_t slots = each ? part / each : 0;
    if (slots <= ST_SLOTS_MORE)
        return 0;
    return slots > UINT32_MAX ? UINT32_MAX : (uint32_t)slots - ST_SLOTS_MORE;
}

uint32_t st_tuning_wanted(const struct stoker_loader *loader)
{
    const struct st_tuning *tuning = &loader->tuning;
    return tuning->hurry ? loader->worker_count : st_tuned(tuning, ST_TUNE_WORKERS);
}

uint32_t st_tuning_active(const struct stoker_loader *loader)
{
    return st_steer_workers(&loader->jpeg.steer, st_tuning_wanted(loader), (uint32_t)loader->tuning.cpus,
                            loader->jpeg.ready);
}

bool st_tuning_rests(const struct st_worker *worker)
{
    const struct stoker_loader *loader = worker->loader;
    return worker - loader->worker >= (ptrdiff_t)st_tuning_active(loader) && !loader->closing.set;
}

static void took_effect(struct stoker_loader *loader)
{
    pthread_cond_broadcast(&loader->tuning.rest);
    pthread_cond_signal(&loader->work); /* another batch may be begun */
}

void st_tuning_set(struct stoker_loader *loader, enum st_lever_name name, uint32_t value)
{
    loader->tuning.tune.lever[name].now = value;
    took_effect(loader);
}

void st_tuning_hurry(struct stoker_loader *loader)
{
    struct st_tuning *tuning = &loader->tuning;
    tuning->hurry = true;
    if (st_tuned(tuning, ST_TUNE_WORKERS) < loader->worker_count)
        pthread_cond_broadcast(&tuning->rest);
}

void st_tuning_late(struct stoker_loader *loader)
{
    if (!loader->tuning.late_ns)
        loader->tuning.late_ns = st_now_ns();
    st_tuning_hurry(loader);
}

static uint64_t counted(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void begin_window(struct stoker_loader *loader, uint64_t now)
{
    struct st_tuning *tuning = &loader->tuning;
    memset(&tuning->window, 0, sizeof tuning->window);
    for (uint32_t k = 0; k < loader->worker_count; k++) {
        const struct st_worker *worker = &loader->worker[k];
        tuning->window.work_ns += counted(&worker->stage_ns[STOKER_STAGE_DECODE]);
        tuning->window.work_ns += counted(&worker->stage_ns[STOKER_STAGE_AUGMENT]);
        tuning->window.read_ns += counted(&worker->stage_ns[STOKER_STAGE_READ]);
        tuning->window.memory_ns += counted(&worker->memory_wait_ns);
    }
    tuning->window.cpu_ns = st_process_cpu_ns();
    tuning->window.began_ns = now;
}

/* Returns the observations of the current window and starts the next one. */
static struct st_tune_seen end_window(struct stoker_loader *loader, uint64_t now)
{
    struct st_tuning *tuning = &loader->tuning;
    struct st_tune_seen seen = {.seconds = tuning->window.seconds,
                                .late = tuning->window.late,
                                .samples = tuning->window.samples,
                                .read_held = st_reader_was_held(loader->reader),
                                .prefetch_room = prefetch_room(loader)};
    const uint64_t work = tuning->window.work_ns, read = tuning->window.read_ns,
                   memory = tuning->window.memory_ns;
    const uint64_t cpu = tuning->window.cpu_ns, began = tuning->window.began_ns;
    tuning->usual = seen.seconds / tuning->window.batches;
    begin_window(loader, now);
    seen.work = (double)(tuning->window.work_ns - work) / 1e9;
    seen.read = (double)(tuning->window.read_ns - read) / 1e9;
    seen.memory = (double)(tuning->window.memory_ns - memory) / 1e9;
    seen.cpu = (double)(tuning->window.cpu_ns - cpu) / (double)(now - began) / tuning->cpus;
    return seen;
}

uint32_t st_tuning_delivered(struct stoker_loader *loader, uint32_t samples)
{
    struct st_tuning *tuning = &loader->tuning;
    const uint64_t now = st_now_ns(), before = tuning->returned_ns;
    const double waited = tuning->late_ns ? (double)(now - tuning->late_ns) / 1e9 : 0;
    tuning->returned_ns = now;
    tuning->late_ns = 0;
    if (!before || !loader->worker_count) /* the consumer always waits for the first batch of an epoch */
        return 0;
    const double took = (double)(now - before) / 1e9, own = took - waited;
    if (waited > own)
        st_steer_awaited(&loader->jpeg.steer, now);
    const bool long_one = own > PAUSE_SECONDS && own > PAUSE_TIMES * tuning->usual && tuning->usual > 0;
    const bool pause = long_one && !tuning->paused; /* two in a row are its new speed, not a pause */
    tuning->paused = pause;
    if (pause)
        return 0;
    if (!tuning->window.began_ns)
        begin_window(loader, now);
    tuning->window.seconds += took;
    tuning->window.late += waited;
    tuning->window.samples += samples;
    if (++tuning->window.batches < WINDOW_BATCHES || tuning->window.seconds < tuning->window_seconds)
        return 0;
    const struct st_tune_seen seen = end_window(loader, now);
    const uint32_t depth = st_tuned(tuning, ST_TUNE_DEPTH);
    if (!st_tune_window(&tuning->tune, &seen))
        return 0;
    took_effect(loader);
    return st_tuned(tuning, ST_TUNE_DEPTH) == depth ? 0 : st_tuned(tuning, ST_TUNE_DEPTH);
}

void st_tuning_stats(const struct stoker_loader *loader, struct stoker_stats *out)
{
    const struct st_tune *tune = &loader->tuning.tune;
    out->tuned_workers = tune->lever[ST_TUNE_WORKERS].now;
    out->tuned_prefetch = tune->lever[ST_TUNE_PREFETCH].now;
    out->tuned_read_ahead = tune->lever[ST_TUNE_DEPTH].now;
    out->tuning_moves = tune->moves;
    out->tuning_reverted = tune->reverted;
    out->tuning_limit = tune->limit;
    memcpy(out->tuning_last, tune->last, sizeof out->tuning_last);
}
