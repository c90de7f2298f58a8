/* jpeg_steer.h - divides the work between a GPU's JPEG hardware and the CPUs
 *
 * Observations in, decisions out: without threads, locks or clocks, like tune.h. A thread that drives
 * the hardware says what it sees and is told how many tickets to take, and how many of their files it
 * decodes itself; workers are told how many of them rest meanwhile. None of this changes a batch: it
 * only decides who makes which row, and when.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_JPEG_STEER_H
#define ST_PIPE_JPEG_STEER_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ST_STEER_CHUNK_MOST = 64, /* tickets that a thread takes at once */
    ST_STEER_SHARES = 64,     /* unit of a thread's own share of the files */
};

/* What the threads of a loader share. All zero at the start; guarded by the loader's lock. */
struct st_steer {
    bool engaged;           /* the hardware does the work that there is, and some workers rest */
    uint64_t worked_ns;     /* when a thread last took tickets */
    uint64_t awaited_ns;    /* when the consumer last got a batch for which it had waited long */
    uint64_t rest_until;    /* tickets before this one are left to the workers */
    uint64_t slow_until_ns; /* and all until then, because the hardware is slow */
};

/* Nanoseconds that a chunk took. */
struct st_steer_times {
    uint64_t all, all_cpu; /* in total: elapsed, and of the thread's CPU time */
    uint64_t here;         /* elapsed, for the files that the thread decoded itself */
};

/* One thread that drives the hardware. All zero at the start. */
struct st_steer_thread {
    uint32_t share;              /* of ST_STEER_SHARES files: those that it decodes itself */
    uint32_t share_fastest;      /* the share with which hardware and thread make most */
    uint64_t busy_ns, busy_rows; /* of the hardware, and of this thread for it, lately: their rate */
    bool started;                /* it has made a chunk */
    bool tries;   /* it was too slow, and takes a chunk to see whether it still is */
    bool awaited; /* the consumer waited when it took its last chunk */
};

/* What is seen when a thread asks for work. */
struct st_steer_seen {
    uint64_t now_ns, next_ticket;
    uint32_t thread;        /* which one asks */
    uint32_t cpus;          /* that this process may use */
    uint32_t open;          /* threads that drive the hardware */
    uint32_t workers;       /* on CPUs, */
    uint32_t wanted;        /* and how many of them work where the hardware does not */
    double worker_rate;     /* rows per second of one worker; 0: unknown */
    uint32_t batch_size, prefetch;
    uint32_t ready; /* batches */
    double begun;   /* batches that are begun and not delivered, in parts too */
    bool waits;     /* the consumer, for the next batch */
};

/* ---- for threads that drive the hardware ----------------------------------------------------- */

/* Whether the next tickets are left to the workers: their files are not known to be sound, or the
 * hardware is slow. */
bool st_steer_passes(const struct st_steer *steer, uint64_t next_ticket, uint64_t now_ns);
/* Whether enough batches are ready for this thread to rest. */
bool st_steer_is_ahead(const struct st_steer_seen *seen);
/* Whether threads give way to the consumer, because they work on its CPU. */
bool st_steer_yields(uint32_t cpus, uint32_t threads);
struct st_steer_choice {
    uint32_t tickets; /* to take; 0: the workers have the next ones */
    bool engages;     /* whether workers rest meanwhile, or none do: st_steer_engage */
};
/* What the thread does with the `left` next tickets, of which there are some. Of the first of them, up
 * to ST_STEER_CHUNK_MOST, the hardware may decode `known`. Sets the thread's share. */
struct st_steer_choice st_steer_choose(struct st_steer *steer, struct st_steer_thread *thread,
                                       const struct st_steer_seen *seen, uint32_t left, uint32_t known);
/* The chunk is made; `given`: how many of its files the hardware was given. */
void st_steer_made(struct st_steer *steer, struct st_steer_thread *thread,
                   const struct st_steer_times *times, uint32_t given, uint64_t next_ticket);
/* Of a chunk's `count` files for the hardware, how many the thread decodes itself. */
uint32_t st_steer_own(const struct st_steer_thread *thread, uint32_t count);

/* ---- for the loader -------------------------------------------------------------------------- */

void st_steer_epoch(struct st_steer *steer);
/* The consumer got a batch for which it had waited for most of the time since the last one. */
void st_steer_awaited(struct st_steer *steer, uint64_t now_ns);
/* How many of the `wanted` workers work. */
uint32_t st_steer_workers(const struct st_steer *steer, uint32_t wanted, uint32_t cpus, uint32_t open);
/* Begins, continues or ends a time in which workers rest. True: it has ended, they may work. */
bool st_steer_engage(struct st_steer *steer, bool engages, uint64_t now_ns);
/* Whether they rest although the hardware has not been used for a while. */
bool st_steer_is_idle(const struct st_steer *steer, uint64_t now_ns);

#endif
