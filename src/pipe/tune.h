/* tune.h - tunes the numbers of active workers, batches kept ready and samples read ahead while an epoch
 * runs
 *
 * Numbers that the caller left open are adjusted by observation: whether batches are ready when asked
 * for, and what workers spend their time on. This changes when a sample is made, never its contents nor
 * the order.
 *
 * The decision is a pure function of the observations, without threads or clocks; tuning.h connects it
 * to a loader.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_TUNE_H
#define ST_PIPE_TUNE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- the decision --------------------------------------------------------------------------------- */

enum st_lever_name { ST_TUNE_WORKERS, ST_TUNE_PREFETCH, ST_TUNE_DEPTH, ST_TUNE_LEVERS };

/* For how long a lever is not moved in one direction, in windows: doubled after each move that did not
 * help. */
struct st_tune_hold {
    uint64_t until;
    uint32_t length;
};

struct st_lever {
    uint32_t now, least, most; /* least = most: fixed by the caller */
    uint32_t floor;            /* fewer than this were not enough */
    bool released;             /* the last move that was kept went down */
    struct st_tune_hold up, down;
};

/* What was observed in one window. Times are in seconds; those of workers are summed over all
 * workers. */
struct st_tune_seen {
    double seconds; /* wall time of the consumer, waiting included */
    double late;    /* of that, waiting for batches that were not ready */
    double samples; /* delivered */
    double work, read,
        memory; /* workers' time: decoding and augmenting; reading; waiting for memory */
    double cpu; /* utilisation of this process's share of the CPUs, 0 to 1 */
    bool read_held;         /* the read-ahead depth kept the reader from reading further */
    uint32_t prefetch_room; /* number of batches that fit into memory ahead of the consumer */
};

/* Running mean and variance of recent values. */
struct st_tune_mean {
    double count, mean, squares;
};

struct st_tune {
    struct st_lever lever[ST_TUNE_LEVERS];
    uint64_t windows;
    uint32_t skip;     /* windows to ignore: they cover two settings, or a start */
    uint32_t late_run; /* consecutive windows in which the consumer waited */
    struct st_tune_mean late, period,
        needed; /* per sample; number of busy workers: all since the last move */
    struct {
        bool on;
        enum st_lever_name lever;
        uint32_t from;
        struct st_tune_mean late, share; /* per sample; as a fraction of the consumer's time */
    } trial;
    struct { /* the consumer's own time per sample, to detect a change of its speed */
        double usual;
        uint32_t changed; /* consecutive windows that differ */
        struct st_tune_hold wake;
    } consumer;
    uint32_t moves, reverted;
    const char *limit; /* the bottleneck of the loader, in words */
    char last[160];    /* the last move, in words; "": none so far */
};

/* A lever that is at `now` and may be moved between `least` and `most`. */
void st_tune_lever(struct st_tune *tune, enum st_lever_name name, uint32_t least, uint32_t now,
                   uint32_t most);
/* Ends a window; true if a lever was moved. At most one is. */
bool st_tune_window(struct st_tune *tune, const struct st_tune_seen *seen);

/* ---- its state in a loader ------------------------------------------------------------------------ */

/* Guarded by the loader's lock, once threads run. */
struct st_tuning {
    struct st_tune tune;
    pthread_cond_t rest;   /* workers that are not needed wait here */
    bool hurry;            /* all workers are needed until no further batch can be begun */
    uint64_t late_ns;      /* when the consumer started to wait for the next batch; 0: it does not
                              wait */
    double cpus;           /* this process's share */
    uint64_t returned_ns;  /* when the last batch of this epoch was delivered; 0: none yet */
    double usual;          /* recent seconds per batch */
    bool paused;           /* the consumer has just paused, e.g. for an evaluation */
    double window_seconds; /* minimum length */
    struct {               /* the current window */
        double seconds, late, samples;
        uint32_t batches;
        uint64_t work_ns, read_ns, memory_ns, cpu_ns, began_ns; /* counters at its start */
    } window;
};

static inline uint32_t st_tuned(const struct st_tuning *tuning, enum st_lever_name name)
{
    return tuning->tune.lever[name].now;
}

#endif
