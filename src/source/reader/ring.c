/* ring.c - decides who reads which ticket, when to read ahead, and how much
 *
 * Reading ahead costs CPU time and the cache locality of the worker that decodes, so it pays only if
 * reads block. So each caller first reads for itself and observes whether it slept. The counter
 * `waiting` rises by SLEPT with each read that slept and falls by one with each that did not; reading
 * ahead starts at AHEAD and stops at BACK, so that one sleeping read in SLEPT is enough to sustain it.
 * At 0 reads are not even observed, until one takes long.
 *
 * A backend may report that a read slept although its file is in memory: io_uring hands every read to
 * the kernel's threads where the file system cannot tell whether it would block, or once a store has
 * seemed to. So after every RECHECK reads, callers read for themselves again and observe; if reads do
 * sleep, reading ahead resumes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/reader/ring.h"
#include "base/clock.h"
#include "base/interrupt.h"

#include <sys/resource.h>

enum {
    SLEPT = 64,
    AHEAD = 128,
    BACK = 32,
    MOST = 256,
    AT_START = 64, /* at the start of an epoch: one read that sleeps is enough */
    ALERT = 32,    /* a read took long: observe this many */
    RECHECK = 16384,
};
#define LONG_READ_NS 50000u
/* Smaller buffers are never considered oversized. */
#define SMALL_BUFFER (1u << 20)

/* ---- whether reads block ---------------------------------------------------------------------- */

long st_times_slept(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

static void set_ahead(struct st_reader *reader, bool ahead)
{
    pthread_mutex_lock(&reader->lock);
    const bool begins = ahead && !reader->ahead;
    atomic_store(&reader->ahead, ahead);
    reader->beginnings += begins;
    if (begins && st_ring_ready(reader))
        reader->backend->wake(reader);
    pthread_mutex_unlock(&reader->lock);
}

/* Whether it is time for callers to check again. */
static bool recheck_due(struct st_reader *reader)
{
    return (atomic_fetch_add_explicit(&reader->watched, 1, memory_order_relaxed) + 1) % RECHECK == 0;
}

void st_ring_watch(struct st_reader *reader, bool slept)
{
    /* Separate load and store: losing an update to another thread is harmless. */
    const int32_t before = atomic_load_explicit(&reader->waiting, memory_order_relaxed);
    if (!reader->backend || reader->eager || (!slept && before == 0))
        return;
    const int32_t raised = before + SLEPT < MOST ? before + SLEPT : MOST;
    const int32_t now = slept ? raised : before - 1;
    atomic_store_explicit(&reader->waiting, now, memory_order_relaxed);
    const bool ahead = atomic_load_explicit(&reader->ahead, memory_order_relaxed);
    if (ahead ? now <= BACK : now >= AHEAD)
        set_ahead(reader, !ahead);
    else if (ahead && !reader->remote && recheck_due(reader)) {
        atomic_store_explicit(&reader->waiting, AT_START, memory_order_relaxed);
        set_ahead(reader, false);
    }
}

static void note_size(struct st_reader *reader, uint64_t ticket, uint64_t bytes)
{
    const uint64_t largest = atomic_load_explicit(&reader->largest, memory_order_relaxed);
    if (bytes > largest)
        atomic_store_explicit(&reader->largest, bytes, memory_order_relaxed);
    else if (ticket % 64 == 0) /* let an old maximum decay */
        atomic_store_explicit(&reader->largest, largest - largest / 64, memory_order_relaxed);
}

static bool is_oversized(const struct st_reader *reader, const struct st_buffer *buffer)
{
    return !buffer->borrowed && buffer->capacity > SMALL_BUFFER &&
           buffer->capacity / 4 > atomic_load_explicit(&reader->largest, memory_order_relaxed);
}

int st_ring_read(struct st_reader *reader, uint64_t ticket, struct st_buffer *buffer,
                 struct st_bytes *out, bool *slept, struct stoker_error *err)
{
    const bool watched = atomic_load_explicit(&reader->waiting, memory_order_relaxed) > 0;
    if (is_oversized(reader, buffer))
        st_buffer_free(buffer);
    const long times = watched ? st_times_slept() : 0;
    const uint64_t began = st_now_ns();
    const int rc = st_read_until(reader->data, reader->plan(reader->plan_context, ticket),
                                 &reader->cancelled, buffer, out, err);
    if (!rc)
        note_size(reader, ticket, out->size);
    if (!watched && reader->backend && st_now_ns() - began > LONG_READ_NS)
        atomic_store_explicit(&reader->waiting, ALERT, memory_order_relaxed);
    *slept = watched && st_times_slept() > times;
    return rc;
}

/* ---- the budget ---------------------------------------------------------------------------------- */

/* Estimates what a read of unknown size needs: as much as the largest recent one, and the whole budget
 * before the first. */
static uint64_t expected(const struct st_reader *reader)
{
    const uint64_t largest = atomic_load_explicit(&reader->largest, memory_order_relaxed);
    if (!largest)
        return reader->budget == UINT64_MAX ? 0 : reader->budget;
    return largest + largest / 4 + 4096; /* what st_buffer_reserve would allocate */
}

static bool fits(const struct st_reader *reader)
{
    return reader->charged == 0 ||
           (reader->charged < reader->budget && expected(reader) <= reader->budget - reader->charged);
}

/* Charges the berth's buffer and its estimated growth to the budget. */
static void charge(struct st_reader *reader, struct st_berth *berth, uint64_t guess)
{
    reader->charged += berth->buffer.capacity + guess - berth->charge;
    reader->guessed += guess - berth->guess;
    berth->charge = berth->buffer.capacity + guess;
    berth->guess = guess;
    reader->stats.buffer_bytes = reader->charged - reader->guessed + reader->spare_bytes;
    if (reader->stats.buffer_bytes > reader->stats.buffer_bytes_max)
        reader->stats.buffer_bytes_max = reader->stats.buffer_bytes;
}

/* What a read may take: more than is expected, where the budget has room for that at full depth. A
 * sample that takes more is read a second time, by the caller who needs it. */
static uint64_t roomy(const struct st_reader *reader)
{
    enum { TIMES = 4, USUAL = 1 << 20 }; /* sources may ask for a usual size before they know */
    const uint64_t need = expected(reader), each = reader->budget / (reader->limit ? reader->limit : 1);
    if (reader->budget == UINT64_MAX || each <= need)
        return need;
    const uint64_t most = need < each / TIMES ? TIMES * need : each;
    return most < USUAL ? (each < USUAL ? each : USUAL) : most;
}

/* Gives the berth a buffer, the most recently used one. */
static void assign_buffer(struct st_reader *reader, struct st_berth *berth)
{
    if (reader->spares && !berth->buffer.data) {
        berth->buffer = reader->spare[--reader->spares];
        reader->spare_bytes -= berth->buffer.capacity;
    }
    if (!berth->buffer.data)
        berth->buffer.account = reader->account;
    berth->buffer.limit = reader->sample_limit;
    berth->buffer.refused = 0;
    const uint64_t need = roomy(reader);
    charge(reader, berth, need > berth->buffer.capacity ? need - berth->buffer.capacity : 0);
    while (reader->spares && reader->charged + reader->spare_bytes > reader->budget) {
        reader->spare_bytes -= reader->spare[--reader->spares].capacity;
        st_buffer_free(&reader->spare[reader->spares]);
    }
}

/* Reading ahead takes no more than was charged for it: a larger sample is left to the caller. */
static void limit_ahead(const struct st_reader *reader, struct st_berth *berth)
{
    if (reader->budget == UINT64_MAX)
        return;
    const uint64_t most = berth->charge < reader->budget ? berth->charge : reader->budget;
    if (!berth->buffer.limit || most < berth->buffer.limit)
        berth->buffer.limit = most > 1 ? most : 1;
}

bool st_ring_leaves(const struct st_reader *reader, struct st_berth *berth)
{
    const bool ahead = berth->code == STOKER_ENOMEM && berth->buffer.refused &&
                       berth->buffer.limit != reader->sample_limit;
    berth->buffer.limit = reader->sample_limit;
    berth->buffer.refused = ahead ? 0 : berth->buffer.refused;
    return ahead;
}

/* Takes the buffer back; frees it if it does not fit into the budget. */
static void reclaim_buffer(struct st_reader *reader, struct st_berth *berth)
{
    struct st_buffer buffer = berth->buffer;
    berth->buffer = (struct st_buffer){0};
    charge(reader, berth, 0);
    const uint64_t held = reader->charged + reader->spare_bytes;
    if (!buffer.data || is_oversized(reader, &buffer) || held > reader->budget ||
        buffer.capacity > reader->budget - held) {
        st_buffer_free(&buffer);
        return;
    }
    reader->spare_bytes += buffer.capacity;
    reader->stats.buffer_bytes += buffer.capacity;
    reader->spare[reader->spares++] = buffer;
}

/* ---- berths -------------------------------------------------------------------------------------- */

/* After a state change made without the lock. */
static void tell_waiters(struct st_reader *reader, struct st_berth *berth)
{
    if (!atomic_load(&berth->waiters))
        return;
    pthread_mutex_lock(&reader->lock);
    pthread_cond_broadcast(&berth->moved);
    pthread_mutex_unlock(&reader->lock);
}

/* After a state change made with the lock held. */
static void announce(struct st_berth *berth)
{
    if (atomic_load(&berth->waiters))
        pthread_cond_broadcast(&berth->moved);
}

/* The turn that follows this one. */
static uint64_t next_turn(const struct st_reader *reader, uint64_t turn)
{
    return st_turn(st_turn_ticket(turn) + (st_turn_passed(turn) + 1) * reader->depth, ST_BERTH_FREE);
}

bool st_ring_ready(struct st_reader *reader)
{
    if (!reader->ahead || reader->cancelled)
        return false;
    for (; reader->next < reader->count; reader->next++) {
        const uint64_t turn = atomic_load(&st_ring_berth(reader, reader->next)->turn);
        const uint64_t ticket = st_turn_ticket(turn);
        if (st_turn_is(turn, reader->next, ST_BERTH_FREE)) {
            if (reader->filled >= reader->limit)
                atomic_store_explicit(&reader->held, true, memory_order_relaxed);
            return reader->filled < reader->limit && fits(reader);
        }
        if (ticket < reader->next && reader->next >= st_turn_ticket(next_turn(reader, turn)))
            return false; /* the ring is full */
        /* Callers are ahead of the backend; they will read tickets that it skips themselves. */
        if (ticket > reader->next)
            reader->next = ticket - reader->depth;
    }
    return false;
}

struct st_berth *st_ring_take(struct st_reader *reader)
{
    while (st_ring_ready(reader)) {
        struct st_berth *berth = st_ring_berth(reader, reader->next);
        uint64_t turn = atomic_load(&berth->turn);
        if (!st_turn_is(turn, reader->next, ST_BERTH_FREE) ||
            !atomic_compare_exchange_strong(&berth->turn, &turn, turn + 1))
            continue; /* a caller of get was faster, or passed this berth */
        reader->next++;
        assign_buffer(reader, berth);
        limit_ahead(reader, berth);
        reader->filled++;
        reader->stats.ahead++;
        if (++reader->in_flight > reader->stats.in_flight_max)
            reader->stats.in_flight_max = reader->in_flight;
        return berth;
    }
    return NULL;
}

/* The last read in flight may be all that keeps the reader open: the reader must not be accessed after
 * unlocking. */
void st_ring_put(struct st_reader *reader, struct st_berth *berth, int code)
{
    const bool first = !atomic_load_explicit(&reader->largest, memory_order_relaxed);
    if (!code)
        note_size(reader, st_turn_ticket(berth->turn), berth->bytes.size);
    st_ring_watch(reader, berth->slept);
    pthread_mutex_lock(&reader->lock);
    berth->code = code;
    charge(reader, berth, 0);
    atomic_fetch_add(&berth->turn, 1); /* READY */
    announce(berth);
    if (--reader->in_flight == 0)
        pthread_cond_broadcast(&reader->quiet);
    if (first && st_ring_ready(reader))
        reader->backend->wake(reader); /* the size of samples is known now */
    pthread_mutex_unlock(&reader->lock);
}

/* The backend has not reached this ticket: perhaps it is asleep. */
static void nudge_backend(struct st_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    if (reader->backend && st_ring_ready(reader))
        reader->backend->wake(reader);
    pthread_mutex_unlock(&reader->lock);
}

bool st_ring_claim(struct st_reader *reader, struct st_berth *berth, uint64_t turn, bool keep)
{
    const uint64_t then = keep ? turn + (ST_BERTH_LENT - ST_BERTH_FREE) : next_turn(reader, turn);
    if (!atomic_compare_exchange_strong(&berth->turn, &turn, then))
        return false;
    if (keep) {
        pthread_mutex_lock(&reader->lock);
        assign_buffer(reader, berth);
        reader->filled++;
        pthread_mutex_unlock(&reader->lock);
    } else {
        tell_waiters(reader, berth);
    }
    if (atomic_load_explicit(&reader->ahead, memory_order_relaxed))
        nudge_backend(reader);
    return true;
}

bool st_ring_pass(struct st_reader *reader, struct st_berth *berth, uint64_t turn, uint64_t ticket)
{
    if (st_turn_ticket(next_turn(reader, turn)) != ticket || st_turn_passed(turn) == ST_PASSED_MOST ||
        !atomic_compare_exchange_strong(&berth->turn, &turn, turn + ST_TURN_PASS))
        return false;
    tell_waiters(reader, berth); /* the next ticket may be waiting to pass too */
    return true;
}

void st_ring_keep(struct st_reader *reader, struct st_berth *berth)
{
    pthread_mutex_lock(&reader->lock);
    charge(reader, berth, 0);
    pthread_mutex_unlock(&reader->lock);
}

void st_ring_release(struct st_reader *reader, struct st_berth *berth)
{
    pthread_mutex_lock(&reader->lock);
    reclaim_buffer(reader, berth);
    reader->filled--;
    reader->freed++;
    uint64_t turn = atomic_load(&berth->turn);
    while (!atomic_compare_exchange_weak(&berth->turn, &turn, next_turn(reader, turn)))
        ; /* another ticket passed just now */
    announce(berth);
    /* Only when several are free, so that the backend is not woken for each file; get handles the
     * rest. */
    if (reader->backend && (reader->freed >= reader->wake_at || reader->freed * 4 >= reader->filled) &&
        st_ring_ready(reader)) {
        reader->freed = 0;
        reader->backend->wake(reader);
    }
    pthread_mutex_unlock(&reader->lock);
}

bool st_ring_await(struct st_reader *reader, struct st_berth *berth, uint64_t turn)
{
    bool ends = false;
    pthread_mutex_lock(&reader->lock);
    atomic_fetch_add(&berth->waiters, 1);
    while (!reader->cancelled && atomic_load(&berth->turn) == turn && !ends)
        ends = st_interrupt_wait(&berth->moved, &reader->lock);
    atomic_fetch_sub(&berth->waiters, 1);
    pthread_mutex_unlock(&reader->lock);
    return !ends;
}

void st_ring_start(struct st_reader *reader)
{
    for (uint32_t i = 0; i < reader->depth; i++) {
        reclaim_buffer(reader, &reader->berths[i]);
        atomic_store(&reader->berths[i].turn, st_turn(i, ST_BERTH_FREE));
    }
    reader->next = 0;
    reader->filled = reader->freed = 0;
    reader->beginnings++;
    /* Servers are always slow; for files the first read will tell. */
    atomic_store(&reader->waiting, !reader->backend ? 0 : reader->remote ? MOST : AT_START);
    atomic_store(&reader->ahead, reader->backend && (reader->eager || reader->remote));
}
