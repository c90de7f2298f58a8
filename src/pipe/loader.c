/* loader.c - starts epochs, delivers batches in order, and reports statistics
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/loader.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/interrupt.h"
#include "pipe/failure.h"
#include "pipe/gate.h"
#include "pipe/jpeg_threads.h"
#include "pipe/notify.h"
#include "pipe/pool.h"
#include "pipe/tuning.h"
#include "pipe/worker.h"
#include "source/known/known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int st_loader_check_owner(const struct stoker_loader *loader, struct stoker_error *err)
{
    if (loader->owner == getpid())
        return 0;
    return st_fail(
        err, STOKER_EFORK,
        "this loader was opened by process %ld, and threads do not survive fork: open another one in "
        "this process",
        (long)loader->owner);
}

/* ---- epochs -------------------------------------------------------------------------------------- */

static uint64_t ticket_sample(void *context, uint64_t ticket)
{
    const struct stoker_loader *loader = context;
    return st_order_at(loader->order, ticket);
}

void st_loader_stop(struct stoker_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    const bool was = loader->epoch.running;
    loader->epoch.running = false;
    atomic_store(&loader->stopping, true);
    pthread_cond_broadcast(&loader->work);
    st_gate_wake(loader);
    st_jpeg_threads_wake(loader);
    pthread_cond_broadcast(&loader->rescue.answer);
    pthread_mutex_unlock(&loader->lock);
    if (!was)
        return;
    st_reader_cancel(loader->reader);

    pthread_mutex_lock(&loader->lock);
    while (loader->busy)
        pthread_cond_wait(&loader->ready, &loader->lock);
    for (struct st_slot *slot = loader->slots; slot; slot = slot->next)
        if (slot->state == ST_SLOT_FILLING || slot->state == ST_SLOT_READY) {
            st_pool_give(loader, slot);
            st_slot_forget_failures(slot);
        }
    loader->filling = NULL;
    pthread_mutex_unlock(&loader->lock);
    st_reader_stop(loader->reader);
}

int st_loader_start(struct stoker_loader *loader, const struct stoker_epoch *given, uint64_t base,
                    struct stoker_error *err)
{
    struct stoker_epoch epoch = {0};
    struct st_epoch_plan plan = {0};
    int rc = st_loader_check_owner(loader, err);
    if (rc)
        return rc;
    if (given)
        epoch = *given;
    st_loader_stop(loader);
    const uint64_t began = st_now_ns();
    rc = st_order_start(loader->order, epoch.epoch, base, epoch.indices, epoch.index_count, err);
    if (!rc)
        rc = st_order_repeats(loader->order, epoch.repeated, epoch.first_position, err);
    if (!rc)
        rc = st_epoch_plan(loader->order, &loader->opt, &epoch, base, &plan, err);
    if (!rc)
        rc = st_reader_start(loader->reader, plan.tickets, ticket_sample, loader, err);
    if (rc) {
        free(plan.sizes);
        return rc;
    }
    pthread_mutex_lock(&loader->lock);
    free(loader->epoch.sizes);
    loader->epoch = plan;
    loader->next_ticket = loader->next_batch = loader->next_row = 0;
    loader->delivered = loader->delivered_samples = loader->failed_samples = 0;
    loader->count.epoch_bad = 0;
    loader->broken.code = loader->no_more.code = 0;
    loader->interrupted = false;
    atomic_store(&loader->stopping, false);
    loader->epoch.started_ns = began;
    loader->epoch.running = true;
    loader->tuning.returned_ns = loader->tuning.late_ns = 0;
    st_steer_epoch(&loader->jpeg.steer);
    st_tuning_hurry(loader);
    pthread_cond_broadcast(&loader->work);
    st_jpeg_threads_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    return 0;
}

/* ---- batches ------------------------------------------------------------------------------------- */

static struct st_slot *due_slot(const struct stoker_loader *loader)
{
    for (struct st_slot *slot = loader->slots; slot; slot = slot->next)
        if (slot->state == ST_SLOT_READY && slot->number == loader->delivered)
            return slot;
    return NULL;
}

/* Nothing is in progress and nothing can be begun, because the consumer holds all the memory. */
static bool all_lent(const struct stoker_loader *loader)
{
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        if (slot->state == ST_SLOT_FILLING || slot->state == ST_SLOT_READY)
            return false;
    return !loader->taking && !st_pool_can_give(loader);
}

static int all_lent_error(const struct stoker_loader *loader, struct stoker_error *err)
{
    const double megabytes = (double)st_pool_memory(loader) / 1e6;
    if (loader->no_more.code)
        return st_fail(err, STOKER_ELIMIT,
                       "all slots (%u, %.1f MB) are lent out, and no more can be allocated: release "
                       "batches, or copy what you keep (%.800s)",
                       loader->slot_count, megabytes, loader->no_more.message);
    return st_fail(err, STOKER_ELIMIT,
                   "all slots (%u, %.1f MB) are lent out: release batches, copy what is kept, or raise "
                   "max_memory (%.1f MB, of which batches may take a half)",
                   loader->lent, megabytes, (double)loader->opt.max_memory / 1e6);
}

/* Waits for the batch that is due, but may return early. Lock held. */
static int wait_ready(struct stoker_loader *loader, const struct timespec *until,
                      struct stoker_error *err)
{
    if (loader->worker_count == 0)
        return st_worker_step(&loader->worker[0]) || loader->broken.code || all_lent(loader)
                   ? 0
                   : st_fail(err, STOKER_EINVAL, "no work is left in this epoch");
    if (!until) {
        pthread_cond_wait(&loader->ready, &loader->lock);
        return 0;
    }
    if (pthread_cond_timedwait(&loader->ready, &loader->lock, until) == ETIMEDOUT && !due_slot(loader))
        return st_fail(err, STOKER_ETIMEOUT, "no batch was ready within %u ms: raise the timeout",
                       loader->opt.timeout_ms);
    return 0;
}

static struct timespec time_limit(const struct stoker_loader *loader)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += loader->opt.timeout_ms / 1000;
    until.tv_nsec += loader->opt.timeout_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

/* Answers the workers, and looks for the batch that is due. If the program's function interrupts next,
 * no batch is given: the caller would not take it. */
static bool is_due(struct stoker_loader *loader, struct st_slot **out)
{
    const bool called = st_rescue_serve(loader) || !loader->worker_count;
    *out = called && loader->interrupted ? NULL : due_slot(loader);
    return *out;
}

static int wait_due(struct stoker_loader *loader, struct st_slot **out, struct stoker_error *err)
{
    if (is_due(loader, out))
        return 0;
    const struct timespec until = time_limit(loader);
    st_tuning_late(loader);
    while (!is_due(loader, out)) {
        int rc = 0;
        if (loader->interrupted) {
            loader->interrupted = false;
            return st_fail(err, STOKER_ECANCELED, "interrupted while waiting for a batch");
        }
        if (loader->broken.code && !loader->busy) { /* batches in progress are still delivered */
            if (err)
                *err = loader->broken;
            return loader->broken.code;
        }
        if (all_lent(loader))
            return all_lent_error(loader, err);
        if ((rc = wait_ready(loader, loader->opt.timeout_ms ? &until : NULL, err)))
            return rc;
        if (st_was_interrupted()) /* even if the batch is ready: the caller will not take it */
            return st_fail(err, STOKER_ECANCELED,
                           "interrupted: the epoch stops, and a state saved now resumes at this batch");
    }
    return 0;
}

/* Hands the batch that is due to the consumer. Lock held. */
static int deliver(struct stoker_loader *loader, struct st_slot *slot, const struct stoker_batch **out,
                   struct stoker_error *err)
{
    const int rc = st_bad_deliver(loader, slot, err);
    st_slot_forget_failures(slot);
    if (loader->delivered++ == 0)
        loader->count.first_batch_ns = st_now_ns() - loader->epoch.started_ns;
    loader->delivered_samples += slot->batch.count;
    if (rc) {
        loader->failed_samples = slot->batch.count;
        st_pool_give(loader, slot);
    } else {
        slot->state = ST_SLOT_LENT;
        loader->lent++;
        loader->count.batches++;
        loader->count.samples += slot->batch.count;
        *out = &slot->batch;
    }
    st_jpeg_threads_wake(loader);
    st_gate_wake(loader); /* the next batch is due */
    return rc;
}

int st_loader_next(struct stoker_loader *loader, const struct stoker_batch **out,
                   struct stoker_error *err)
{
    struct st_slot *slot = NULL;
    uint32_t depth = 0;
    *out = NULL;
    int rc = st_loader_check_owner(loader, err);
    if (rc)
        return rc;
    const uint64_t began = st_now_ns();
    pthread_mutex_lock(&loader->lock);
    loader->failed_samples = 0; /* by asking again, the caller skips the failed batch */
    if (!loader->epoch.running)
        rc = st_fail(err, STOKER_EINVAL, "no epoch has been started: call stoker_loader_start first");
    else if (loader->delivered == loader->epoch.batches)
        rc = STOKER_END;
    else if (!(rc = wait_due(loader, &slot, err)))
        rc = deliver(loader, slot, out, err);
    if (*out) {
        depth = st_tuning_delivered(loader, (*out)->count);
    } else if (rc != STOKER_ETIMEOUT) { /* after a timeout the caller is still waiting */
        loader->tuning.late_ns = 0;
    }
    loader->count.wait_ns += st_now_ns() - began;
    pthread_mutex_unlock(&loader->lock);
    /* One ready batch fewer: another may be begun. Signalled after unlocking, since the woken thread
     * needs the lock. */
    pthread_cond_signal(&loader->work);
    if (depth)
        st_reader_limit(loader->reader, depth);
    if (rc == STOKER_ECANCELED && st_was_interrupted())
        st_loader_stop(loader); /* a sample was abandoned halfway */
    return rc;
}

/* ---- batches on a device ------------------------------------------------------------------------- */

static struct st_slot *slot_of(const struct stoker_batch *batch)
{
    return (struct st_slot *)(uintptr_t)batch; /* the batch is the slot's first member */
}

int st_batch_join(const struct stoker_batch *batch, uintptr_t stream, struct stoker_error *err)
{
    struct st_slot *slot = slot_of(batch);
    struct st_device *device = slot->shape.device;
    const int rc = device ? st_loader_check_owner(slot->loader, err) : 0;
    if (rc || !device)
        return rc;
    return device->kind->join(device, slot->on_device, stream, err);
}

int st_batch_sync(const struct stoker_batch *batch, struct stoker_error *err)
{
    struct st_slot *slot = slot_of(batch);
    struct st_device *device = slot->shape.device;
    const int rc = device ? st_loader_check_owner(slot->loader, err) : 0;
    if (rc || !device)
        return rc;
    return device->kind->sync(device, slot->on_device, err);
}

/* -------------------------------------------------------------------------------------------------- */

void st_loader_interrupt(struct stoker_loader *loader)
{
    if (loader->owner != getpid())
        return;
    pthread_mutex_lock(&loader->lock);
    loader->interrupted = true;
    pthread_cond_broadcast(&loader->ready);
    pthread_mutex_unlock(&loader->lock);
}

void st_loader_on_failure(struct stoker_loader *loader, stoker_failure_callback *callback,
                          void *context)
{
    pthread_mutex_lock(&loader->lock);
    loader->rescue.callback = callback;
    loader->rescue.context = context;
    pthread_mutex_unlock(&loader->lock);
}

uint64_t st_loader_files(struct stoker_loader *loader, uint32_t codec, uint32_t path)
{
    pthread_mutex_lock(&loader->lock);
    uint64_t files = st_jpeg_threads_files(loader, codec, path);
    pthread_mutex_unlock(&loader->lock);
    for (uint32_t k = 0; k < loader->worker_count || k == 0; k++)
        files += atomic_load_explicit(&loader->worker[k].work.decoder.files[codec][path],
                                      memory_order_relaxed);
    return files;
}

void st_loader_stats(struct stoker_loader *loader, struct stoker_stats *out)
{
    struct st_reader_stats reader;
    st_reader_stats(loader->reader, &reader);
    pthread_mutex_lock(&loader->lock);
    out->batches = loader->count.batches;
    out->samples = loader->count.samples;
    out->bad = loader->count.bad;
    out->wait_ns = loader->count.wait_ns;
    out->first_batch_ns = loader->count.first_batch_ns;
    out->slots = loader->slot_count;
    out->slots_lent = loader->lent;
    out->workers = loader->worker_count;
    out->slot_bytes = st_pool_memory(loader);
    out->pinned_bytes = st_pool_pinned(loader);
    out->pinned_note = loader->pinned_note.code ? loader->pinned_note.message : NULL;
    out->copied_bytes = loader->count.copied;
    out->augment_on = loader->shape.raw ? STOKER_PLACE_DEVICE : STOKER_PLACE_CPU;
    st_jpeg_threads_stats(loader, out);
    out->jpeg_hardware_open = loader->jpeg.ready;
    out->jpeg_hardware_known = loader->jpeg.known ? st_known_count(loader->jpeg.known) : 0;
    st_tuning_stats(loader, out);
    pthread_mutex_unlock(&loader->lock);
    out->reads_in_flight_max = reader.in_flight_max;
    out->reader = reader.backend;
    out->reader_note = reader.note;
    st_gate_stats(loader, out);
    for (uint32_t k = 0; k < loader->worker_count || k == 0; k++) {
        struct st_worker *worker = &loader->worker[k];
        out->memory_wait_ns += atomic_load_explicit(&worker->memory_wait_ns, memory_order_relaxed);
        out->bytes += atomic_load_explicit(&worker->read_bytes, memory_order_relaxed);
        out->raw_rows += atomic_load_explicit(&worker->raw_rows, memory_order_relaxed);
        out->resized_rows += atomic_load_explicit(&worker->resized_rows, memory_order_relaxed);
        for (int stage = 0; stage < STOKER_STAGE_COUNT; stage++)
            out->stage_ns[stage] += atomic_load_explicit(&worker->stage_ns[stage], memory_order_relaxed);
    }
}

bool st_loader_bad(struct stoker_loader *loader, uint64_t k, struct stoker_bad_sample *out)
{
    pthread_mutex_lock(&loader->lock);
    const uint64_t all = loader->count.bad, first = all > ST_LEDGER_SIZE ? all - ST_LEDGER_SIZE : 0;
    const bool there = k < all - first;
    if (there)
        *out = loader->ledger[(first + k) % ST_LEDGER_SIZE];
    pthread_mutex_unlock(&loader->lock);
    return there;
}
