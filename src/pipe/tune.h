/* tune.h - how many workers work, how many batches are kept ready and how far is read ahead, while an
 * epoch runs
 *
 * What the caller has left open is moved by what is seen: whether batches are ready when they are asked
 * for, and what the workers' time goes into. It changes when a sample is made, never what it is, nor the
 * order.
 *
 * The first part is a pure function of what was seen, without threads and clocks; the second joins it to
 * a loader.
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

/* How long a lever is left alone in one direction: twice as long after each move that did not help. In
 * windows. */
struct st_tune_hold {
    uint64_t until;
    uint32_t length;
};

struct st_lever {
    uint32_t now, least, most; /* least = most: it is not ours to move */
    uint32_t floor;            /* fewer than this did not do */
    bool released;             /* the last move that was kept went down */
    struct st_tune_hold up, down;
};

/* What one window showed. Times are in seconds, those of workers summed over them. */
struct st_tune_seen {
    double seconds; /* that the consumer took, with what it waited */
    double late;    /* of that it waited for batches that were not ready */
    double samples; /* delivered */
    double work, read,
        memory; /* of the workers: to decode and augment; to read, or wait for it; to wait for memory */
    double cpu; /* of the CPUs that are this process's share, the part in use */
    bool read_held;         /* the depth kept the reader from reading on */
    uint32_t prefetch_room; /* batches ahead that memory has room for */
};

/* Mean and variance of what was seen lately. */
struct st_tune_mean {
    double count, mean, squares;
};

struct st_tune {
    struct st_lever lever[ST_TUNE_LEVERS];
    uint64_t windows;
    uint32_t skip;     /* windows that show two settings, or a beginning */
    uint32_t late_run; /* windows in a row in which the consumer waited */
    struct st_tune_mean late, period,
        needed; /* a sample's; workers that were busy: since the last move */
    struct {
        bool on;
        enum st_lever_name lever;
        uint32_t from;
        struct st_tune_mean late, share; /* a sample's; of the consumer's time */
    } trial;
    struct { /* the consumer's own time for a sample, by which a change of its speed is noticed */
        double usual;
        uint32_t changed; /* windows in a row that differ */
        struct st_tune_hold wake;
    } consumer;
    uint32_t moves, reverted;
    const char *limit; /* what holds the loader back, in words */
    char last[160];    /* the last move, in words; "": there was none */
};

/* A lever at `now`, that may be moved from `least` to `most`. */
void st_tune_lever(struct st_tune *tune, enum st_lever_name name, uint32_t least, uint32_t now,
                   uint32_t most);
/* The end of a window: true if a lever was moved. At most one is. */
bool st_tune_window(struct st_tune *tune, const struct st_tune_seen *seen);

/* ---- in a loader ---------------------------------------------------------------------------------- */

struct stoker_loader;
struct stoker_stats;
struct st_worker;

/* All with the loader's lock held, unless it says otherwise. */
struct st_tuning {
    struct st_tune tune;
    pthread_cond_t rest;   /* workers that are not needed wait here */
    bool hurry;            /* all are, until there is nothing left to begin */
    uint64_t late_ns;      /* since when the consumer waits for the batch that is due; 0: it does not */
    double cpus;           /* that are this process's share */
    uint64_t returned_ns;  /* when the last batch of this epoch was handed out; 0: it is the first */
    double usual;          /* seconds from batch to batch, lately */
    bool paused;           /* the consumer has just done something else */
    double window_seconds; /* at least */
    struct {               /* the window under way */
        double seconds, late, samples;
        uint32_t batches;
        uint64_t work_ns, read_ns, memory_ns, cpu_ns, began_ns; /* as they were at its beginning */
    } window;
};

/* While the loader is opened, without the lock: what may be moved. The first before there are slots;
 * `moves`: the caller has left the number of batches to the loader. */
void st_tuning_plan_prefetch(struct stoker_loader *loader, bool moves);
void st_tuning_plan(struct stoker_loader *loader, uint32_t depth, uint32_t depth_most);
/* The most bytes of max_memory that moved batches may take: batches that differ in size take no more
 * than that. */
uint64_t st_tuning_batches(const struct stoker_loader *loader);

static inline uint32_t st_tuned(const struct st_tuning *tuning, enum st_lever_name name)
{
    return tuning->tune.lever[name].now;
}

/* Sets a lever, whatever it was moved to. The reader is told by the caller, without the lock:
 * st_reader_limit. */
void st_tuning_set(struct stoker_loader *loader, enum st_lever_name name, uint32_t value);
/* An epoch begins: every worker helps until enough batches are under way. */
void st_tuning_hurry(struct stoker_loader *loader);
/* The batch that is due is asked for and is not ready: the same. */
void st_tuning_late(struct stoker_loader *loader);
/* It is handed out. Not 0: how far the reader is to read ahead from now on, which the caller tells it
 * without the lock (st_reader_limit). */
uint32_t st_tuning_delivered(struct stoker_loader *loader, uint32_t samples);
/* Whether the worker is not needed now. */
bool st_tuning_rests(const struct st_worker *worker);
void st_tuning_stats(const struct stoker_loader *loader, struct stoker_stats *out);

#endif
