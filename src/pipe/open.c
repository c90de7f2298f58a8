/* open.c - opens and closes a loader: checks options, creates and frees slots and threads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "base/cpu.h"
#include "base/text.h"
#include "base/threads.h"
#include "op/resize/taps_kept.h"
#include "pipe/gate.h"
#include "pipe/jpeg_threads.h"
#include "pipe/loader.h"
#include "pipe/marks_kept.h"
#include "pipe/notify.h"
#include "pipe/opening.h"
#include "pipe/pool.h"
#include "pipe/run.h"
#include "pipe/targets.h"
#include "pipe/tuning.h"
#include "pipe/worker.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WORKERS_MAX = 1024,
    PREFETCH_FIRST = 2,        /* batches kept ready by default */
    READ_AHEAD_EACH = 8,       /* samples per worker */
    DEPTH_TIMES = 4,           /* tuning may multiply the read-ahead by at most this, */
    DEPTH_MOST = 2048,         /* but not beyond this */
    TINY_SAMPLES = 256,        /* datasets this small are tested for whether threads pay off */
    TINY_EPOCH_NS = 5000000,   /* an epoch this short is over before threads could help */
    TAPS_MOST = 4 << 20,       /* bytes of taps that are kept: about 800 sizes, resized to 224, */
    TAPS_PART = 256,           /* but at most this fraction of max_memory */
};

/* ---- closing ------------------------------------------------------------------------------------- */

static void free_loader(struct stoker_loader *loader)
{
    while (loader->slots)
        st_pool_remove(loader, loader->slots);
    if (loader->device)
        loader->device->kind->close(loader->device);
    st_columns_plan_free(&loader->columns);
    pthread_cond_destroy(&loader->work);
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->gate.room);
    pthread_cond_destroy(&loader->tuning.rest);
    pthread_cond_destroy(&loader->rescue.answer);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

void st_batch_release(const struct stoker_batch *batch, const uintptr_t *stream)
{
    if (!batch)
        return;
    struct st_slot *slot = (struct st_slot *)(uintptr_t)batch; /* the batch is the slot's first member */
    struct stoker_loader *loader = slot->loader;
    if (loader->owner != getpid())
        return; /* a forked child: the memory belongs to the parent, and the lock may be held there */
    st_slot_release(slot, stream);
    if (atomic_load(&slot->memory.bytes) - st_slot_bytes(&slot->shape) > loader->opt.max_memory / 8)
        st_slot_shrink(slot);
    pthread_mutex_lock(&loader->lock);
    loader->lent--;
    st_pool_return(loader, slot);
    st_gate_wake(loader);
    const bool last = loader->closed && loader->lent == 0;
    pthread_cond_signal(&loader->work);
    st_jpeg_threads_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    if (last)
        free_loader(loader);
}

void st_batch_mark(const struct stoker_batch *batch, uintptr_t stream)
{
    if (!batch)
        return;
    struct st_slot *slot = (struct st_slot *)(uintptr_t)batch;
    if (slot->loader->owner == getpid())
        st_slot_mark(slot, stream);
}

void st_loader_close(struct stoker_loader *loader)
{
    if (!loader || loader->owner != getpid())
        return; /* in a forked child no threads run, and the memory is freed with the process */
    st_loader_stop(loader);
    pthread_mutex_lock(&loader->lock);
    loader->closing.set = true;
    pthread_cond_broadcast(&loader->work);
    pthread_cond_broadcast(&loader->tuning.rest);
    st_jpeg_threads_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    for (uint32_t k = 0; k < loader->threads; k++)
        pthread_join(loader->worker[k].thread, NULL);
    st_jpeg_threads_close(loader);
    st_reader_close(loader->reader);
    for (uint32_t k = 0; loader->worker && (k < loader->worker_count || k == 0); k++)
        st_worker_free(&loader->worker[k]);
    free(loader->worker);
    st_taps_kept_free(loader->taps);
    st_marks_kept_free(loader->marks);
    free(loader->ledger);
    free(loader->epoch.sizes);
    st_order_close(loader->order);
    st_pipeline_drop(loader->pipe);
    st_dataset_drop(loader->data);

    pthread_mutex_lock(&loader->lock);
    loader->closed = true;
    const bool last = loader->lent == 0;
    pthread_mutex_unlock(&loader->lock);
    if (last)
        free_loader(loader); /* otherwise, releasing the last batch does it */
}

/* ---- opening ------------------------------------------------------------------------------------- */

static int check_options(struct stoker_loader_options *opt, struct stoker_error *err)
{
    if (opt->batch_size == 0)
        return st_fail(err, STOKER_EINVAL, "batch_size is 0; it must be at least 1");
    if (opt->workers < -1 || opt->workers > WORKERS_MAX)
        return st_fail(err, STOKER_EINVAL, "workers is %d; allowed are -1 (auto) to %d", opt->workers,
                       WORKERS_MAX);
    if (opt->pillow != 12 && opt->pillow != 13)
        return st_fail(err, STOKER_EINVAL, "pillow is %u; allowed are 12 and 13", opt->pillow);
    const struct {
        const char *name;
        unsigned value, most;
    } choices[] = {{"on_error", (unsigned)opt->on_error, STOKER_ON_ERROR_REPLACE},
                   {"fidelity", (unsigned)opt->fidelity, STOKER_FIDELITY_FAST},
                   {"layout", (unsigned)opt->layout, STOKER_LAYOUT_NHWC},
                   {"ragged", (unsigned)opt->ragged, STOKER_RAGGED_PAD},
                   {"dtype", (unsigned)opt->dtype, STOKER_DTYPE_BF16},
                   {"augment_on", (unsigned)opt->augment_on, STOKER_PLACE_DEVICE},
                   {"jpeg_hardware", (unsigned)opt->jpeg_hardware, STOKER_JPEG_HARDWARE_OFF}};
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
        if (choices[k].value > choices[k].most)
            return st_fail(err, STOKER_EINVAL, "%s is %u; allowed are 0 to %u", choices[k].name,
                           choices[k].value, choices[k].most);
    if (opt->prefetch == 0)
        opt->prefetch = PREFETCH_FIRST;
    return 0;
}

/* Whether the options are valid for sounds. */
static int check_sounds(const struct stoker_loader_options *opt, struct stoker_error *err)
{
    if ((opt->dtype_given && opt->dtype != STOKER_DTYPE_F32) || opt->layout != STOKER_LAYOUT_NCHW)
        return st_fail(err, STOKER_EINVAL,
                       "sounds are returned as float32, channels first: omit dtype and layout");
    return 0;
}

static uint64_t first_sample_ns(struct stoker_loader *loader)
{
    struct st_worker *worker = &loader->worker[0];
    struct stoker_error ignored;
    struct st_bytes bytes;
    const uint64_t began = st_now_ns();
    st_slot_begin(loader->slots); /* a second run must not take a second piece of the slot's heap */
    if (st_read_sample(loader->data, 0, &worker->bytes, &bytes, &ignored) == 0)
        (void)st_run_sample(worker, bytes, 0, 0, loader->slots, 0, &ignored);
    return st_now_ns() - began;
}

/* Whether an epoch of so few samples is over before threads could help. If making the first sample seems
 * too slow, it is made again: the first time it may have touched new memory or lost its CPU to another
 * process. */
static bool threads_would_not_pay(struct stoker_loader *loader)
{
    if (loader->dataset_count == 0)
        return true;
    if (loader->dataset_count > TINY_SAMPLES)
        return false;
    const uint64_t each = TINY_EPOCH_NS / loader->dataset_count;
    return first_sample_ns(loader) < each || first_sample_ns(loader) < each;
}

/* Only the first two with a device: memory that is slow to pin is added while batches are already being
 * made. */
static int open_slots(struct stoker_loader *loader, struct stoker_error *err)
{
    const uint32_t wanted = loader->device || loader->shape.pinned ? 2 : st_pool_wanted(loader);
    int rc = 0;
    for (uint32_t k = 0; !rc && k < wanted && st_pool_has_room(loader); k++)
        rc = st_pool_add(loader, err);
    if (!rc && !loader->slots)
        return st_fail(err, STOKER_ELIMIT,
                       "a batch of %u sample%s takes %.1f MB, too much for max_memory (%.1f MB), of "
                       "which batches may take a half: take smaller batches or raise it",
                       loader->opt.batch_size, st_s(loader->opt.batch_size),
                       (double)st_slot_bytes(&loader->shape) / 1e6,
                       (double)loader->opt.max_memory / 1e6);
    return rc;
}

/* Without them, the taps are made for every row. */
static void open_taps(struct stoker_loader *loader)
{
    const uint64_t part = loader->opt.max_memory / TAPS_PART;
    if (!loader->shape.raw)
        return;
    loader->taps = st_taps_kept_new(part < TAPS_MOST ? part : TAPS_MOST, &loader->gate.budget);
}

/* Without them, every JPEG is decoded from its start. */
static void open_marks(struct stoker_loader *loader)
{
    if (!loader->pipe->sounds && !loader->shape.imageless)
        loader->marks =
            st_marks_kept_new(loader->dataset_count, loader->opt.max_memory / ST_GATE_MARKS_PART,
                              &loader->gate.budget);
}

static int open_workers(struct stoker_loader *loader, struct stoker_error *err)
{
    /* The training thread sleeps most of the time, and workers yield to it: it needs no CPU reserved for
     * it. */
    const uint32_t count = loader->opt.workers >= 0 ? (uint32_t)loader->opt.workers : st_cpu_share();

    loader->worker = st_calloc(count ? count : 1, sizeof *loader->worker);
    if (!loader->worker)
        return st_fail(err, STOKER_ENOMEM, "no memory for %u workers", count);
    loader->worker_count = count;
    st_gate_open(loader);
    open_taps(loader);
    open_marks(loader);
    for (uint32_t k = 0; k < count || k == 0; k++)
        st_worker_equip(&loader->worker[k], loader);
    const int rc = st_model_learn(loader, err);
    if (rc)
        return rc;
    if (loader->opt.workers < 0 && threads_would_not_pay(loader))
        loader->worker_count = 0;
    return 0;
}

static int open_reader(struct stoker_loader *loader, struct stoker_error *err)
{
    uint32_t depth = loader->opt.read_ahead ? loader->opt.read_ahead : st_reader_depth(loader->data);
    if (depth < READ_AHEAD_EACH * loader->worker_count)
        depth = READ_AHEAD_EACH * loader->worker_count;
    depth += 2 * st_jpeg_threads_tickets(loader);
    depth = depth < 2 ? 2 : depth;
    uint32_t most = depth;
    if (!loader->opt.read_ahead && loader->worker_count && depth < DEPTH_MOST)
        most = depth < DEPTH_MOST / DEPTH_TIMES ? DEPTH_TIMES * depth : DEPTH_MOST;
    const int rc = st_reader_open(&loader->reader, loader->data,
                                  loader->worker_count ? ST_READER_AUTO : ST_READER_INLINE, most, err);
    if (rc)
        return rc;
    st_reader_limit(loader->reader, depth);
    st_tuning_plan(loader, depth, most);
    loader->gate.read = (struct st_account){.budget = &loader->gate.budget, .kind = ST_MEMORY_READ};
    st_reader_budget(loader->reader, loader->opt.max_memory / ST_GATE_READ_PART, &loader->gate.read);
    st_reader_sample_limit(loader->reader, loader->gate.sample_limit);
    return STOKER_OK;
}

static int start_threads(struct stoker_loader *loader, struct stoker_error *err)
{
    for (; loader->threads < loader->worker_count; loader->threads++) {
        struct st_worker *worker = &loader->worker[loader->threads];
        const int failed = st_thread_start(&worker->thread, st_worker_main, worker, "stoker-worker");
        if (failed)
            return st_fail_errno(err, failed, "worker thread %u of %u could not be started",
                                 loader->threads + 1, loader->worker_count);
    }
    return 0;
}

/* Condition variables use the monotonic clock, which nobody can set. */
static int open_locks(struct stoker_loader *loader)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr))
        return STOKER_ENOMEM;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int failed = pthread_mutex_init(&loader->lock, NULL);
    failed |= pthread_cond_init(&loader->work, &attr);
    failed |= pthread_cond_init(&loader->ready, &attr);
    failed |= pthread_cond_init(&loader->gate.room, &attr);
    failed |= pthread_cond_init(&loader->tuning.rest, &attr);
    failed |= pthread_cond_init(&loader->rescue.answer, &attr);
    pthread_condattr_destroy(&attr);
    return failed ? STOKER_ENOMEM : 0;
}

/* Each view is a row. */
static int set_views(struct stoker_loader *loader, struct stoker_error *err)
{
    struct stoker_loader_options *opt = &loader->opt;
    const uint32_t views = loader->pipe->shape.views, samples = opt->batch_size;
    if (views <= 1)
        return 0;
    if (opt->on_error != STOKER_ON_ERROR_RAISE)
        return st_fail(err, STOKER_EINVAL,
                       "views: a bad sample has to be an error (on_error), since other samples would "
                       "take the places of its views");
    if (samples > UINT32_MAX / views)
        return st_fail(err, STOKER_EINVAL, "batch_size is %u, with %u views of each sample: too many",
                       samples, views);
    st_order_set_views(loader->order, views, samples);
    opt->batch_size = samples * views;
    return 0;
}

static int open_order(struct stoker_loader *loader, struct stoker_error *err)
{
    struct stoker_loader_options *opt = &loader->opt;
    const struct stoker_order_options order = {.size = sizeof order,
                                               .kind = opt->order,
                                               .seed = opt->seed,
                                               .rank = opt->rank,
                                               .world = opt->world,
                                               .drop_uneven = opt->drop_uneven,
                                               .epoch_fixed = opt->epoch_fixed,
                                               .weights = opt->weights,
                                               .draws = opt->draws};
    opt->weights = NULL; /* the caller's: the order copies them */
    const int rc = st_order_open(&loader->order, loader->dataset_count, &order, err);
    return rc ? rc : set_views(loader, err);
}

/* At the start: when a sample turns out to be bad, there may be no memory left. Its pages are not
 * touched before they are written. */
static int open_ledger(struct stoker_loader *loader, struct stoker_error *err)
{
    loader->ledger = st_calloc(ST_LEDGER_SIZE, sizeof *loader->ledger);
    return loader->ledger ? 0 : st_fail(err, STOKER_ENOMEM, "no memory for the list of bad samples");
}

int st_loader_open(struct stoker_loader **out, struct stoker_dataset *data, struct stoker_pipeline *pipe,
                   const struct stoker_loader_options *opt, const struct st_devices *devices,
                   struct stoker_error *err)
{
    *out = NULL;
    struct stoker_loader *loader = st_calloc(1, sizeof *loader);
    if (!loader || open_locks(loader)) {
        free(loader);
        return st_fail(err, STOKER_ENOMEM, "no memory for a loader");
    }
    loader->opt = *opt;
    loader->owner = getpid();
    loader->data = st_dataset_hold(data);
    loader->pipe = st_pipeline_hold(pipe);
    loader->dataset_count = st_dataset_count(data);

    int rc = check_options(&loader->opt, err);
    if (!rc)
        rc = st_gate_data(loader, err);
    if (!rc && loader->opt.pinned_limit == 0)
        loader->opt.pinned_limit = loader->opt.max_memory;
    if (!rc && pipe->sounds)
        rc = check_sounds(opt, err);
    if (!rc)
        rc = st_finish_init(&loader->finish, &pipe->finish,
                            opt->dtype_given ? opt->dtype : pipe->finish.dtype, opt->layout,
                            pipe->shape.channels, err);
    if (!rc)
        rc = open_ledger(loader, err);
    if (!rc)
        rc = open_order(loader, err);
    if (!rc)
        rc =
            st_columns_plan(&loader->columns, data, pipe->sounds ? ST_FIELD_AUDIO : ST_FIELD_IMAGE, err);
    if (!rc)
        rc = st_targets_plan(&loader->columns, pipe, loader->finish.dtype, opt->masks, opt->boxes, err);
    if (!rc)
        rc = st_loader_place(loader, devices, err);
    st_tuning_plan_prefetch(loader, opt->prefetch == 0);
    if (!rc)
        rc = st_jpeg_threads_open(loader, devices ? devices->jpeg_hw : NULL, err);
    if (!rc)
        rc = open_slots(loader, err);
    if (!rc)
        rc = open_workers(loader, err);
    if (!rc)
        rc = open_reader(loader, err);
    if (!rc)
        rc = start_threads(loader, err);
    if (!rc)
        st_jpeg_threads_start(loader);
    if (rc) {
        st_loader_close(loader);
        return rc;
    }
    *out = loader;
    return 0;
}
