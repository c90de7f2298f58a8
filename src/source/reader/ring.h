/* ring.h - internals of the reader: a ring of berths, and the backends that fill them
 *
 * Ticket t uses berth t % depth. A berth's turn is a ticket and a state in one word. The state
 * determines its owner, and only the owner advances it: FREE (nobody) > READING (the backend) > READY
 * (nobody) > LENT (the caller of get) > FREE for t + depth. A caller that finds its ticket FREE reads it
 * itself, and the berth advances directly to t + depth: that takes one atomic operation and no lock, so
 * that callers whose bytes are in memory never contend.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_READER_RING_H
#define ST_SOURCE_READER_RING_H

#include "source/reader/reader.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

enum st_berth_state { ST_BERTH_FREE, ST_BERTH_READING, ST_BERTH_READY, ST_BERTH_LENT };

struct st_berth {
    _Atomic uint64_t turn;    /* see st_turn */
    _Atomic uint32_t waiters; /* for `moved`: callers for this ticket or for one of later rounds */
    pthread_cond_t moved;
    /* Used by the owner: */
    int code;   /* READY: the result of the read */
    bool slept; /* the read blocked */
    struct st_bytes bytes;
    struct st_buffer buffer;
    uint64_t charge,
        guess; /* its share of the budget, and the estimated part of that; guarded by the lock */
    struct stoker_error err;
};

/* A turn: the ticket, how many of the berth's following tickets have passed it and were read elsewhere
 * (6 bits), and the state (2 bits), which is advanced by adding 1. */
enum { ST_PASSED_MOST = 63, ST_TURN_PASS = 4 };
static inline uint64_t st_turn(uint64_t ticket, enum st_berth_state state)
{
    return ticket << 8 | (uint64_t)state;
}
static inline uint64_t st_turn_ticket(uint64_t turn) { return turn >> 8; }
static inline uint64_t st_turn_passed(uint64_t turn) { return turn >> 2 & ST_PASSED_MOST; }
static inline bool st_turn_is(uint64_t turn, uint64_t ticket, enum st_berth_state state)
{
    return st_turn_ticket(turn) == ticket && (turn & 3) == (uint64_t)state;
}

/* Fills the berths. `wake` is called with the lock held. */
struct st_backend {
    const char *name;
    int (*open)(struct st_reader *reader, struct stoker_error *err);
    void (*wake)(struct st_reader *reader);   /* there is something to read or to cancel */
    void (*close)(struct st_reader *reader);  /* ends the threads; safe after a failed open */
    void (*forget)(struct st_reader *reader); /* in a forked child, where there are no threads */
};
extern const struct st_backend st_backend_pool;
extern const struct st_backend st_backend_uring; /* if the build has liburing */

struct st_reader {
    struct stoker_dataset *data;
    const struct st_backend *backend; /* NULL: get reads itself, or points into memory */
    void *backend_state;
    const char *name;
    bool memory, remote, eager;
    pid_t owner;
    uint32_t depth; /* number of berths */
    struct st_berth *berths;
    uint64_t count; /* number of tickets in this epoch */
    st_reader_plan *plan;
    void *plan_context;

    atomic_bool cancelled, ahead; /* ahead: the backend reads; written with the lock held */
    atomic_bool held;             /* the limit delayed the backend since the last check */
    _Atomic int32_t waiting;      /* how often reads block: see ring.c */
    _Atomic uint64_t watched;     /* reads while reading ahead */
    _Atomic uint64_t largest;     /* bytes of the largest recent sample */

    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t quiet; /* nothing is in flight */
    bool closing;
    uint32_t limit, wake_at; /* the most berths in use; how many must become free to wake the backend */
    uint64_t next;           /* the next ticket for the backend */
    uint64_t beginnings; /* how often reading ahead has started */
    uint32_t in_flight, filled,
        freed; /* filled: in flight or ready; freed: berths since the last wake */
    uint64_t budget, charged, guessed;
    struct st_account *account; /* for the buffers; NULL: not counted */
    uint64_t sample_limit;      /* of each buffer; 0: none */
    uint32_t spares;
    struct st_buffer *spare; /* a stack of unused buffers, the last used on top */
    uint64_t spare_bytes;
    struct st_reader_stats stats;
    struct stoker_error no_uring; /* code != 0: why the backend is not io_uring */
};

static inline struct st_berth *st_ring_berth(struct st_reader *reader, uint64_t ticket)
{
    return &reader->berths[ticket % reader->depth];
}
static inline uint64_t st_ring_sample(const struct st_reader *reader, const struct st_berth *berth)
{
    return reader->plan(reader->plan_context, st_turn_ticket(berth->turn));
}

/* ---- for backends -------------------------------------------------------------------------------- */

/* Call with the lock held. Whether there is a berth to read into; takes that berth, or returns NULL. */
bool st_ring_ready(struct st_reader *reader);
struct st_berth *st_ring_take(struct st_reader *reader);
/* Call without the lock. Starts one request for a berth on a server, and for those of the following
 * tickets whose bytes are adjacent, without waiting for it. False: this berth cannot be read this way.
 * *left: a berth that was taken too and is left to the caller; NULL: none. */
bool st_ring_send(struct st_reader *reader, struct st_berth *berth, struct st_berth **left);
/* Call without the lock. The berth's bytes are there, or its err says why not. */
void st_ring_put(struct st_reader *reader, struct st_berth *berth, int code);
/* How often this thread has blocked (voluntary context switches, not preemption). */
long st_times_slept(void);

/* ---- for the callers of get ---------------------------------------------------------------------- */

/* Whether the backend failed only because the sample is larger than what it may read ahead; the berth's
 * buffer may then hold it. */
bool st_ring_leaves(const struct st_reader *reader, struct st_berth *berth);
/* Claims the current ticket, which is FREE, for this caller to read; false if another thread was faster.
 * With `keep` the caller owns the berth until st_ring_release and may use its buffer. */
bool st_ring_claim(struct st_reader *reader, struct st_berth *berth, uint64_t turn, bool keep);
/* While the berth belongs to an earlier ticket, takes this ticket out of the berth's turns, for the
 * caller to read. False: it has to wait. */
bool st_ring_pass(struct st_reader *reader, struct st_berth *berth, uint64_t turn, uint64_t ticket);
/* The ticket claimed with `keep` has been read. */
void st_ring_keep(struct st_reader *reader, struct st_berth *berth);
/* Frees the berth for its next ticket. */
void st_ring_release(struct st_reader *reader, struct st_berth *berth);
/* Waits until the berth's turn changes or the reader is cancelled. False: this thread was
 * interrupted. */
bool st_ring_await(struct st_reader *reader, struct st_berth *berth, uint64_t turn);
/* Reads a sample in this thread, and reports whether that blocked. */
int st_ring_read(struct st_reader *reader, uint64_t ticket, struct st_buffer *buffer,
                 struct st_bytes *out, bool *slept, struct stoker_error *err);
/* Takes into account whether a read slept. Call without the lock. */
void st_ring_watch(struct st_reader *reader, bool slept);
/* Prepares an epoch. Call with the lock held. */
void st_ring_start(struct st_reader *reader);

/* ---- fetch.c ------------------------------------------------------------------------------------- */

/* No sample needs more; a sparse file of a terabyte must not fill the memory. */
#define ST_SAMPLE_MAX (4ull << 30)
/* Reads a part of a file into the buffer. */
int st_fetch(const struct st_extent *extent, struct st_buffer *buffer, struct stoker_error *err);
/* Asks the source where a sample is; fails for numbers past the last. */
int st_locate(const struct stoker_dataset *data, uint64_t sample, struct st_extent *out,
              struct stoker_error *err);

#endif
