/* gate.c - admits workers that need much memory, and lets others wait until memory is freed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "pipe/loader.h"

/* Parts of max_memory. Batches take up to a half (pool.c), reading ahead an eighth (open.c). */
enum {
    SMALL_PART = 8,        /* for small samples of all workers, and what workers keep */
    DATA_PART = 8,         /* chunks of files that the dataset caches */
    LEAST_KEPT = 256 << 10 /* minimum that a worker may keep */
};

/* A waiting worker, and the row that it waits for. */
struct st_gate_wait {
    struct st_gate_wait *next;
    uint64_t batch;
    uint32_t row;
    bool reads;           /* before a read: `bytes` is updated while it waits */
    uint64_t bytes, most; /* what it needs; the limit for all, unless its batch is due */
};

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
    return gate->small > LEAST_KEPT ? gate->small : LEAST_KEPT;
}

void st_gate_open(struct stoker_loader *loader)
{
    struct st_gate *gate = &loader->gate;
    const uint64_t limit = loader->opt.max_memory,
                   threads = loader->worker_count + loader->engines.count;
    const uint64_t slots = st_pool_regular(loader),
                   rest = limit - limit / ST_GATE_READ_PART - limit / SMALL_PART;
    gate->budget.limit = limit;
    gate->threads = (uint32_t)threads;
    gate->small = limit / SMALL_PART / (threads ? threads : 1);
    gate->sample_limit = rest > slots ? rest - slots : 0;
    gate->read_limit = gate->sample_limit > kept_most(gate) ? gate->sample_limit : kept_most(gate);
}

void st_gate_equip(struct st_worker *worker)
{
    struct st_gate *gate = &worker->loader->gate;
    struct st_account *memory = &worker->memory;
    const uint64_t keep = kept_most(gate);
    memory->budget = &gate->budget;
    memory->kind = ST_MEMORY_SCRATCH;
    memory->limit = gate->sample_limit + keep;
    worker->work.arena.account = worker->bytes.account = worker->pieces.account = memory;
    worker->work.arena.keep = keep;
    worker->bytes.limit = gate->read_limit;
}

int st_gate_refused(struct st_worker *worker, int rc, struct stoker_error *err)
{
    const struct st_gate *gate = &worker->loader->gate;
    const uint64_t read = worker->bytes.refused, needed = read ? read : worker->memory.refused;
    worker->bytes.refused = worker->memory.refused = 0;
    if (rc != STOKER_ENOMEM || !needed)
        return rc;
    worker->too_large = true;
    return st_fail(
        err, STOKER_ELIMIT,
        "this sample takes %.1f MB %s, but of max_memory (%.1f MB) one sample may take "
        "%.1f MB beside the batches: raise max_memory, or make the batches smaller",
        (double)needed / 1e6, read ? "to read" : "or more to make",
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

static bool is_oldest(const struct st_gate *gate, const struct st_gate_wait *wait)
{
    for (const struct st_gate_wait *other = gate->queue; other; other = other->next)
        if (other->batch < wait->batch || (other->batch == wait->batch && other->row < wait->row))
            return false;
    return true;
}

/* The size to expect of a read: the recent maximum. The first read is alone in the gate, since it
 * expects the limit. */
static uint64_t expected(const struct st_gate *gate)
{
    const uint64_t largest = atomic_load_explicit(&gate->largest_read, memory_order_relaxed);
    return !largest || largest > gate->sample_limit ? gate->sample_limit : largest;
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
static bool may_pass(struct st_worker *worker, struct st_gate_wait *wait)
{
    struct stoker_loader *loader = worker->loader;
    struct st_gate *gate = &loader->gate;
    const bool due = wait->batch == loader->delivered || !loader->worker_count;
    if (wait->reads)
        wait->bytes = expected(gate);
    if (try_promise(worker, wait->bytes, due && !wait->reads ? gate->budget.limit : wait->most))
        return true;
    if (!due || atomic_load(&gate->inside) || !is_oldest(gate, wait))
        return false;
    st_account_promise(&worker->memory, wait->bytes);
    return true;
}

static void unlink_wait(struct st_gate *gate, const struct st_gate_wait *wait)
{
    struct st_gate_wait **at = &gate->queue;
    while (*at != wait)
        at = &(*at)->next;
    *at = wait->next;
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
        st_pool_shed(loader);
        if (may_pass(worker, wait))
            break;
        pthread_cond_wait(&gate->room, &loader->lock);
    }
    unlink_wait(gate, wait);
    atomic_fetch_sub(&gate->waiting, 1);
    if (!rc)
        atomic_fetch_add(&gate->inside, 1);
    pthread_mutex_unlock(&loader->lock);
    return rc;
}

static int enter(struct st_worker *worker, struct st_gate_wait wait, struct stoker_error *err)
{
    struct st_gate *gate = &worker->loader->gate;
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
    worker->waited_ns += st_now_ns() - began;
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
    const uint64_t most = gate->budget.limit / 4 * 3; /* the rest is for samples that are already read */
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
    /* An estimate is no reason to refuse a sample: that happens when it allocates too much. */
    const bool much = bytes > gate->sample_limit || own > gate->sample_limit - bytes;
    const uint64_t all = much ? gate->sample_limit : bytes + own;
    if (all <= gate->small)
        return STOKER_OK;
    return enter(worker, (struct st_gate_wait){NULL, slot->number, row, false, all, most}, err);
}

int st_gate_batch(struct st_worker *worker, const struct st_slot *slot, struct stoker_error *err)
{
    const struct st_gate *gate = &worker->loader->gate;
    if (!st_slot_grows(slot))
        return STOKER_OK;
    const uint64_t bytes =
        atomic_load(&slot->memory.bytes) - st_slot_bytes(&slot->shape) - slot->stacked.capacity;
    if (bytes <= gate->budget.limit / 4)
        return STOKER_OK;
    worker->too_large = true;
    return st_fail(
        err, STOKER_ELIMIT,
        "with this sample its batch of %u takes %.1f MB, more than a quarter of max_memory (%.1f MB), "
        "which is what a batch of samples of different sizes may take: raise it, or take smaller "
        "batches",
        slot->shape.rows, (double)bytes / 1e6, (double)gate->budget.limit / 1e6);
}

void st_gate_leave(struct st_worker *worker)
{
    struct stoker_loader *loader = worker->loader;
    struct st_gate *gate = &loader->gate;
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
