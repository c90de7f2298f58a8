/* gate.c - admits workers that need much memory, and lets others wait until memory is freed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/gate.h"

#include "base/clock.h"
#include "pipe/alone.h"
#include "pipe/failure.h"
#include "pipe/pool.h"

/* Parts of max_memory. Batches take up to a half (pool.c), reading ahead an eighth (open.c). */
enum {
    SMALL_PART = 8,    /* for small samples of all workers, and what workers keep */
    DATA_PART = 8,     /* chunks of files that the dataset caches */
    LEAST = 256 << 10, /* minimum that a worker may keep, and that a sample may take */
};

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- limits --------------------------------------------------------------------------------------- */

int st_gate_data(struct stoker_loader *loader, struct stoker_error *err)
{
    struct st_gate *gate = &loader->gate;
    uint64_t *limit = &loader->opt.max_memory;
    gate->data_fixed = st_dataset_memory(loader->data);
    if (*limit && gate->data_fixed > *limit / 2)
        return st_fail(
            err, STOKER_ELIMIT,
            "the dataset holds %.1f MB in memory, more than a half of max_memory (%.1f MB): raise it, "
            "or unpack the archives",
            (double)gate->data_fixed / 1e6, (double)*limit / 1e6);
    *limit = *limit ? *limit - gate->data_fixed : st_budget_default("");
    gate->data = (struct st_account){.budget = &gate->budget, .kind = ST_MEMORY_DATA};
    st_dataset_keep(loader->data, *limit / DATA_PART);
    return STOKER_OK;
}

void st_gate_look(struct stoker_loader *loader)
{
    struct st_gate *gate = &loader->gate;
    const uint64_t now = st_dataset_memory(loader->data), fixed = gate->data_fixed;
    st_account_change(&gate->data, NULL, atomic_load(&gate->data.bytes), now > fixed ? now - fixed : 0);
}

void st_gate_stats(const struct stoker_loader *loader, struct stoker_stats *out)
{
    const struct st_gate *gate = &loader->gate;
    const struct st_budget *budget = &gate->budget;
    out->memory_allowed = budget->limit + gate->data_fixed;
    out->memory_held = atomic_load(&budget->allocated) + gate->data_fixed;
    out->memory_peak = atomic_load(&budget->peak) + gate->data_fixed;
    out->scratch_bytes = atomic_load(&budget->by[ST_MEMORY_SCRATCH]);
    out->read_bytes = atomic_load(&budget->by[ST_MEMORY_READ]);
    out->data_bytes = atomic_load(&budget->by[ST_MEMORY_DATA]) + gate->data_fixed;
}

/* What a worker may keep from sample to sample. */
static uint64_t kept_most(const struct st_gate *gate)
{
    return larger(gate->small, LEAST);
}

void st_gate_open(struct stoker_loader *loader)
{
    struct st_gate *gate = &loader->gate;
    const uint64_t limit = loader->opt.max_memory,
                   threads = loader->worker_count + loader->jpeg.count;
    /* Everything except what cannot be put down. The eighth for small samples can be. */
    const uint64_t taken = st_pool_regular(loader) + limit / ST_GATE_READ_PART +
                           limit / ST_GATE_MARKS_PART +
                           (loader->data->source->keep ? limit / DATA_PART : 0);
    const uint64_t rest = limit > taken ? limit - taken : 0, all = larger(rest, LEAST);
    gate->budget.limit = limit;
    gate->threads = (uint32_t)threads;
    gate->small = limit / SMALL_PART / (threads ? threads : 1);
    gate->sample_limit = all;
    gate->shared_limit = all - (limit / SMALL_PART < all / 4 ? limit / SMALL_PART : all / 4);
}

void st_gate_equip(struct st_worker *worker)
{
    struct st_gate *gate = &worker->loader->gate;
    struct st_account *memory = &worker->memory;
    memory->budget = &gate->budget;
    memory->kind = ST_MEMORY_SCRATCH;
    memory->limit = gate->shared_limit;
    worker->work.arena.account = worker->bytes.account = worker->pieces.account = memory;
    worker->work.arena.keep = kept_most(gate);
    worker->bytes.limit = gate->sample_limit;
}

void st_gate_charge(struct st_worker *worker, struct st_bytes bytes)
{
    const struct st_gate *gate = &worker->loader->gate;
    const uint64_t limit =
        worker->alone ? gate->sample_limit + worker->beside : gate->shared_limit;
    const uintptr_t at = (uintptr_t)bytes.data, own = (uintptr_t)worker->bytes.data;
    const bool here = worker->bytes.data && at >= own && at - own <= worker->bytes.capacity;
    const bool counted = here || !worker->loader->reader || st_reader_in_memory(worker->loader->reader);
    const uint64_t elsewhere = counted ? 0 : st_buffer_room(&worker->bytes, bytes.size);
    worker->memory.limit = limit > elsewhere ? limit - elsewhere : 1;
}

int st_gate_refused(struct st_worker *worker, int rc, struct stoker_error *err)
{
    const struct st_gate *gate = &worker->loader->gate;
    const uint64_t read = worker->bytes.refused, made = worker->memory.refused;
    worker->bytes.refused = worker->memory.refused = 0;
    if (rc != STOKER_ENOMEM)
        return rc;
    if (!read && !worker->alone) { /* others may have taken what it was refused */
        worker->again = worker->wants_alone = true;
        return rc;
    }
    if (!read && !made)
        return rc;
    const uint64_t elsewhere = gate->sample_limit - worker->memory.limit; /* less `beside`: may wrap */
    worker->over_memory = true;
    return st_fail(
        err, STOKER_ELIMIT,
        "this sample takes %.1f MB %s, but of max_memory (%.1f MB) one sample may take "
        "%.1f MB beside the batches: raise max_memory, or make the batches smaller",
        (double)(read ? read : made + elsewhere) / 1e6, read ? "to read" : "or more to make",
        (double)(gate->budget.limit + gate->data_fixed) / 1e6, (double)gate->sample_limit / 1e6);
}

int st_gate_not_read(struct st_worker *worker, uint64_t sample, int rc, struct stoker_error *err)
{
    const int outcome = st_gate_refused(worker, rc, err);
    if (outcome != rc)
        st_bad_name(worker->loader, sample, err);
    return outcome;
}

/* ---- admission ------------------------------------------------------------------------------------ */

/* The size to expect of a read: the recent maximum. The first read is alone in the gate, since it
 * expects the limit. */
static uint64_t expected(const struct st_gate *gate)
{
    const uint64_t largest = atomic_load_explicit(&gate->largest_read, memory_order_relaxed);
    return !largest || largest > gate->shared_limit ? gate->shared_limit : largest;
}

/* The limit for all that is held, which leaves room for those that do not ask: the reader, and small
 * samples of the workers outside. */
static uint64_t most_now(const struct st_gate *gate)
{
    const uint64_t limit = gate->budget.limit, ahead = limit / ST_GATE_READ_PART;
    const uint64_t read = atomic_load_explicit(&gate->budget.by[ST_MEMORY_READ], memory_order_relaxed);
    const uint32_t inside = atomic_load_explicit(&gate->inside, memory_order_relaxed);
    return limit - (read < ahead ? ahead - read : 0) -
           (inside < gate->threads ? (gate->threads - inside) * gate->small : 0);
}

/* Promises the worker `bytes` if the total is then at most `most`. */
static bool try_promise(struct st_worker *worker, uint64_t bytes, uint64_t most)
{
    const uint64_t now = most_now(&worker->loader->gate);
    return st_account_try(&worker->memory, bytes, most < now ? most : now);
}

/* Lock held. */
static bool is_due(const struct stoker_loader *loader, const struct st_gate_wait *wait)
{
    return wait->batch == loader->delivered || !loader->worker_count;
}

/* Lock held. */
static bool may_pass(struct st_worker *worker, struct st_gate_wait *wait)
{
    struct stoker_loader *loader = worker->loader;
    struct st_gate *gate = &loader->gate;
    if (wait->reads)
        wait->bytes = expected(gate);
    return try_promise(worker, wait->bytes,
                       is_due(loader, wait) && !wait->reads ? gate->budget.limit : wait->most);
}

/* Whether it does not fit although nobody is inside, and is needed next. Lock held. */
static bool is_stuck(const struct stoker_loader *loader, const struct st_gate_wait *wait)
{
    return is_due(loader, wait) && !atomic_load(&loader->gate.inside) &&
           st_wait_is_oldest(loader->gate.queue, wait);
}

/* The oldest sample does not fit. Before anything was read, nobody can hold much: it passes, and the
 * others learn what to expect. Otherwise it has to be made alone. */
static int pass_stuck(struct st_worker *worker, const struct st_gate_wait *wait,
                      struct stoker_error *err)
{
    if (wait->reads && !atomic_load(&worker->loader->gate.largest_read)) {
        st_account_promise(&worker->memory, wait->bytes);
        return STOKER_OK;
    }
    worker->again = worker->wants_alone = true;
    return st_fail(err, STOKER_ECANCELED, "the sample does not fit beside others");
}

/* To be called with the worker outside. */
static int wait_for_room(struct st_worker *worker, struct st_gate_wait *wait, struct stoker_error *err)
{
    struct stoker_loader *loader = worker->loader;
    struct st_gate *gate = &loader->gate;
    int rc = STOKER_OK;
    pthread_mutex_lock(&loader->lock);
    wait->next = gate->queue;
    gate->queue = wait;
    atomic_fetch_add(&gate->waiting, 1); /* before the check, so that workers that leave later see it */
    st_gate_wake(loader);                /* others may be waiting for this worker to be outside */
    while (!may_pass(worker, wait)) {
        if (loader->threads && !loader->epoch.running) {
            worker->stopped = true;
            rc = st_fail(err, STOKER_ECANCELED, "the epoch was stopped");
            break;
        }
        if (atomic_load(&gate->turns) && st_alone_waits_for(worker)) {
            worker->again = true;
            rc = st_fail(err, STOKER_ECANCELED, "another sample is made alone first");
            break;
        }
        st_pool_shed(loader);
        if (may_pass(worker, wait))
            break;
        if (is_stuck(loader, wait)) {
            rc = pass_stuck(worker, wait, err);
            break;
        }
        pthread_cond_wait(&gate->room, &loader->lock);
    }
    st_wait_unlink(&gate->queue, wait);
    atomic_fetch_sub(&gate->waiting, 1);
    if (!rc)
        atomic_fetch_add(&gate->inside, 1);
    pthread_mutex_unlock(&loader->lock);
    return rc;
}

static int enter(struct st_worker *worker, struct st_gate_wait wait, struct stoker_error *err)
{
    struct st_gate *gate = &worker->loader->gate;
    if (worker->alone)
        return STOKER_OK;
    if (worker->inside)
        atomic_fetch_sub(&gate->inside, 1);
    worker->inside = false;
    if (!atomic_load(&gate->waiting) && try_promise(worker, wait.bytes, wait.most)) {
        atomic_fetch_add(&gate->inside, 1);
        worker->inside = true;
        return STOKER_OK;
    }
    const uint64_t began = st_now_ns();
    const int rc = wait_for_room(worker, &wait, err);
    if (!wait.reads) /* the first reads wait for the size of one, not for memory */
        st_wait_noted(worker, began);
    worker->inside = !rc;
    return rc;
}

int st_gate_read(struct st_worker *worker, const struct st_slot *slot, uint32_t row,
                 struct stoker_error *err)
{
    struct st_gate *gate = &worker->loader->gate;
    const uint64_t bytes = expected(gate);
    if (bytes <= gate->small || st_reader_in_memory(worker->loader->reader))
        return STOKER_OK;
    const uint64_t most = gate->budget.limit / 2; /* the rest is for samples that are already read */
    return enter(worker, (struct st_gate_wait){NULL, slot->number, row, true, bytes, most}, err);
}

void st_gate_was_read(struct st_worker *worker, uint64_t bytes)
{
    enum { FORGETS = 64 };
    struct st_gate *gate = &worker->loader->gate;
    const uint64_t largest = atomic_load_explicit(&gate->largest_read, memory_order_relaxed);
    const uint64_t forgotten = largest - largest / FORGETS;
    /* Equal sizes store nothing, so that workers do not contend for the cache line. */
    if (bytes > largest || !largest)
        atomic_store_explicit(&gate->largest_read, bytes ? bytes : 1, memory_order_relaxed);
    else if (bytes < largest && largest > gate->small && largest >= FORGETS)
        atomic_store_explicit(&gate->largest_read, forgotten > bytes ? forgotten : bytes + 1,
                              memory_order_relaxed);
    if (worker->inside) /* it stays inside with what it has */
        st_account_promise(&worker->memory, 0);
}

int st_gate_decode(struct st_worker *worker, const struct st_slot *slot, uint32_t row, uint64_t bytes,
                   struct stoker_error *err)
{
    struct st_gate *gate = &worker->loader->gate;
    const uint64_t own = worker->bytes.capacity + worker->pieces.capacity + worker->work.arena.wanted;
    const uint64_t most = st_slot_grows(slot) ? gate->budget.limit / 2 : gate->budget.limit;
    uint64_t all;
    /* An estimate is no reason to refuse a sample: that happens when it allocates too much. */
    if (!worker->alone && (!st_add(bytes, own, &all) || all > gate->shared_limit)) {
        worker->again = worker->wants_alone = true;
        return st_fail(err, STOKER_ECANCELED, "the sample is too large to be made beside others");
    }
    if (worker->alone || all <= gate->small)
        return STOKER_OK;
    return enter(worker, (struct st_gate_wait){NULL, slot->number, row, false, all, most}, err);
}

int st_gate_row(struct st_worker *worker, uint64_t bytes, struct stoker_error *err)
{
    const uint64_t limit = worker->loader->gate.budget.limit;
    if (bytes <= limit / 4)
        return STOKER_OK;
    worker->over_memory = true;
    return st_fail(err, STOKER_ELIMIT,
                   "this sample takes %.1f MB in its batch, but of max_memory (%.1f MB) a batch of "
                   "samples of different sizes may take a quarter: raise max_memory, or end the "
                   "pipeline with a fixed size",
                   (double)bytes / 1e6, (double)limit / 1e6);
}

int st_gate_batch(struct st_worker *worker, struct st_slot *slot, uint32_t row,
                  struct stoker_error *err)
{
    const uint64_t limit = worker->loader->gate.budget.limit, own = st_slot_row_bytes(slot, row);
    const int rc = st_gate_row(worker, own, err);
    if (rc)
        return rc;
    /* Rows count once they are made: a sample that fails takes nothing from the others. */
    if (atomic_fetch_add(&slot->rows_bytes, own) + own <= limit / 4)
        return STOKER_OK;
    worker->too_large = true;
    return st_fail(err, STOKER_ELIMIT,
                   "its batch of %u takes more than %.1f MB, a quarter of max_memory (%.1f MB), which "
                   "is what a batch of samples of different sizes may take: raise it, or take smaller "
                   "batches",
                   slot->shape.rows, (double)(limit / 4) / 1e6, (double)limit / 1e6);
}

void st_gate_leave(struct st_worker *worker)
{
    struct stoker_loader *loader = worker->loader;
    struct st_gate *gate = &loader->gate;
    worker->memory.limit = gate->shared_limit;
    if (worker->alone)
        st_alone_end(worker);
    if (!worker->inside)
        return;
    worker->inside = false;
    st_account_promise(&worker->memory, 0);
    atomic_fetch_sub(&gate->inside, 1);
    if (!atomic_load(&gate->waiting))
        return;
    pthread_mutex_lock(&loader->lock);
    st_gate_wake(loader);
    pthread_mutex_unlock(&loader->lock);
}

void st_gate_wake(struct stoker_loader *loader)
{
    if (atomic_load(&loader->gate.waiting))
        pthread_cond_broadcast(&loader->gate.room);
}
