/* ring.h - the inside of the reader: a ring of berths, and the engines that fill them
 *
 * Ticket t lives in berth t % depth. A berth's state names its owner, and only the owner moves it on:
 * FREE (nobody) > READING (the engine) > READY (nobody) > LENT (the caller of get) > FREE for t + depth.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_READER_RING_H
#define ST_SOURCE_READER_RING_H

#include "source/reader/reader.h"

#include <pthread.h>
#include <sys/types.h>

enum st_berth_state { ST_BERTH_FREE, ST_BERTH_READING, ST_BERTH_READY, ST_BERTH_LENT };

struct st_berth {
    uint64_t ticket; /* the one it holds, or is free for */
    enum st_berth_state state;
    int code;         /* READY: how the reading went */
    bool slept;       /* the reading had to wait for the store */
    uint32_t waiters; /* for `moved`: who asked for this ticket, and who for one of the next rounds */
    pthread_cond_t moved;
    struct st_bytes bytes;
    struct st_buffer buffer;
    uint64_t counted; /* of the buffer's capacity, in the stats */
    struct stoker_error err;
};

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
    bool memory, remote; /* where samples are, all or some of them */
    pid_t owner;
    uint32_t depth;
    struct st_berth *berths;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t quiet; /* nothing is in flight any more */
    bool cancelled, closing;
    atomic_bool stopped; /* as `cancelled`, for those who wait without the lock */
    uint64_t count, next; /* tickets of this epoch; the next one to read */
    st_reader_plan *plan;
    void *plan_context;
    uint32_t in_flight, free_berths, wake_at; /* the engine is woken when so many berths are free */
    bool crowded;  /* no CPU is free for reading ahead */
    uint32_t calm; /* reads in a row that did not have to wait */
    struct st_reader_stats stats;
};

/* For engines. With the lock held: whether there is a berth to read into; that berth, or NULL. */
bool st_ring_ready(struct st_reader *reader);
struct st_berth *st_ring_take(struct st_reader *reader);
/* Without it: reads the berth's sample in this thread. */
int st_ring_read(struct st_reader *reader, struct st_berth *berth, struct st_bytes *out,
                 struct stoker_error *err);
/* How often this thread has gone to sleep by itself, not to be confused with losing its CPU. */
long st_times_slept(void);
/* Without it: begins to read a berth on a server, and those of the next tickets that lie behind it, by one request, and
 * does not wait for it. False: this one is not to be read so. *left: a berth that was taken too, and is left to
 * the caller; NULL: none. */
bool st_ring_send(struct st_reader *reader, struct st_berth *berth, struct st_berth **left);
/* Without it: the berth's bytes are there, or its err says why not. */
void st_ring_put(struct st_reader *reader, struct st_berth *berth, int code);
static inline uint64_t st_ring_sample(const struct st_reader *reader, const struct st_berth *berth)
{
    return reader->plan(reader->plan_context, berth->ticket);
}

/* Reads a part of a file into the buffer. */
int st_fetch(const struct st_extent *extent, struct st_buffer *buffer, struct stoker_error *err);
/* Asks the source where a sample lies; refuses numbers past the last. */
int st_locate(const struct stoker_dataset *data, uint64_t sample, struct st_extent *out,
              struct stoker_error *err);

#endif
