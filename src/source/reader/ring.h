/* ring.h - the inside of the reader: a ring of berths, and the engines that fill them
 *
 * Ticket t lives in berth t % depth. A berth's turn is a ticket and a state in one word. The state names
 * its owner, and only the owner moves it on: FREE (nobody) > READING (the engine) > READY (nobody) >
 * LENT (the caller of get) > FREE for t + depth. Who finds the ticket that it wants FREE reads it
 * itself, and the berth goes straight on to t + depth: that takes one atomic step and no lock, so that
 * callers whose bytes are in memory never meet.
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
    _Atomic uint64_t turn; /* of st_turn */
    _Atomic uint32_t
        waiters; /* for `moved`: who asked for this ticket, and who for one of the next rounds */
    pthread_cond_t moved;
    /* the owner's: */
    int code;   /* READY: how the reading went */
    bool slept; /* the reading had to wait for the store */
    struct st_bytes bytes;
    struct st_buffer buffer;
    uint64_t charge, guess; /* what of the budget it takes, and of that is guessed; under the lock */
    struct stoker_error err;
};

/* A turn: the ticket, how many of the tickets that the berth would be free for next have passed it and
 * were read elsewhere (6 bits), and the state (2 bits), which adding 1 moves on. */
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

/* What fills the berths. `wake` is called with the lock held. */
struct st_engine {
    const char *name;
    int (*open)(struct st_reader *reader, struct stoker_error *err);
    void (*wake)(struct st_reader *reader);   /* there is something to read, or to stop */
    void (*close)(struct st_reader *reader);  /* ends the threads; safe after a failed open */
    void (*forget)(struct st_reader *reader); /* in a forked child, where there are no threads */
};
extern const struct st_engine st_engine_pool;
extern const struct st_engine st_engine_uring; /* where the build has liburing */

struct st_reader {
    struct stoker_dataset *data;
    const struct st_engine *engine; /* NULL: get reads, or points into memory */
    void *engine_state;
    const char *name;
    bool memory, remote, eager;
    pid_t owner;
    uint32_t depth; /* of berths */
    struct st_berth *berths;
    uint64_t count; /* tickets of this epoch */
    st_reader_plan *plan;
    void *plan_context;

    atomic_bool cancelled, ahead; /* ahead: the engine reads; changed under the lock */
    atomic_bool held;             /* by the limit, since someone looked */
    _Atomic int32_t waiting;      /* how much reads wait for the store: ring.c */
    _Atomic uint64_t largest;     /* bytes of the largest sample lately */

    pthread_mutex_t lock; /* all below */
    pthread_cond_t quiet; /* nothing is in flight any more */
    bool closing;
    uint32_t limit, wake_at; /* of berths in use; the engine is woken when so many have become free */
    uint64_t next;       /* the next ticket for the engine */
    uint64_t beginnings; /* how often reading ahead began */
    uint32_t in_flight, filled,
        freed; /* filled: in flight or ready; freed: berths since the last wake */
    uint64_t budget, charged, guessed;
    struct st_account *account; /* of the buffers; NULL: nobody counts */
    uint32_t spares;
    struct st_buffer *spare; /* buffers that no berth needs now, the last used on top */
    uint64_t spare_bytes;
    struct st_reader_stats stats;
    struct stoker_error refused; /* code != 0: why the engine is not io_uring */
};

static inline struct st_berth *st_ring_berth(struct st_reader *reader, uint64_t ticket)
{
    return &reader->berths[ticket % reader->depth];
}
static inline uint64_t st_ring_sample(const struct st_reader *reader, const struct st_berth *berth)
{
    return reader->plan(reader->plan_context, st_turn_ticket(berth->turn));
}

/* ---- for engines -------------------------------------------------------------------------------- */

/* With the lock held: whether there is a berth to read into; that berth, or NULL. */
bool st_ring_ready(struct st_reader *reader);
struct st_berth *st_ring_take(struct st_reader *reader);
/* Without it: begins to read a berth on a server, and those of the next tickets that lie behind it, by one request,
 * and does not wait for it. False: this one is not to be read so. *left: a berth that was taken too, and is left
 * to the caller; NULL: none. */
bool st_ring_send(struct st_reader *reader, struct st_berth *berth, struct st_berth **left);
/* Without it: the berth's bytes are there, or its err says why not. */
void st_ring_put(struct st_reader *reader, struct st_berth *berth, int code);
/* How often this thread has gone to sleep by itself, not to be confused with losing its CPU. */
long st_times_slept(void);

/* ---- for the callers of get ---------------------------------------------------------------------- */

/* The ticket whose turn it is, FREE, is this caller's to read; false when someone was faster. With
 * `keep` the berth stays its own until st_ring_release, and its buffer may be used. */
bool st_ring_claim(struct st_reader *reader, struct st_berth *berth, uint64_t turn, bool keep);
/* The berth is still an earlier ticket's: this one is left out of its turns, for the caller to read.
 * False: it has to wait. */
bool st_ring_pass(struct st_reader *reader, struct st_berth *berth, uint64_t turn, uint64_t ticket);
/* What was claimed to keep is read. */
void st_ring_keep(struct st_reader *reader, struct st_berth *berth);
/* The berth is free for its next ticket. */
void st_ring_release(struct st_reader *reader, struct st_berth *berth);
/* Until the berth's turn is another one, or the reader is cancelled. False: this thread was interrupted. */
bool st_ring_await(struct st_reader *reader, struct st_berth *berth, uint64_t turn);
/* Reads a sample in this thread, and notes whether that had to wait. */
int st_ring_read(struct st_reader *reader, uint64_t ticket, struct st_buffer *buffer,
                 struct st_bytes *out, bool *slept, struct stoker_error *err);
/* A read slept or did not: what follows from it. Without the lock. */
void st_ring_watch(struct st_reader *reader, bool slept);
/* An epoch begins, with the lock held. */
void st_ring_start(struct st_reader *reader);

/* ---- fetch.c ------------------------------------------------------------------------------------- */

/* No image needs more; a sparse file of a terabyte must not fill the memory. */
#define ST_SAMPLE_MAX (4ull << 30)
/* Reads a part of a file into the buffer. */
int st_fetch(const struct st_extent *extent, struct st_buffer *buffer, struct stoker_error *err);
/* Asks the source where a sample lies; refuses numbers past the last. */
int st_locate(const struct stoker_dataset *data, uint64_t sample, struct st_extent *out,
              struct stoker_error *err);

#endif
