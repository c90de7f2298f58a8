/* tune.c - adapts the numbers of active workers, batches kept ready and samples read ahead to the run
 *
 * Observations cover a window of half a second or more. If the consumer waits, there are three possible
 * causes, told apart by what the workers do meanwhile: they wait for reads (read further ahead), they
 * are idle at times (keep more batches ready), or all of them are busy (the CPUs are the limit, and
 * nothing helps). If the consumer never waits, workers that are not needed are released, so that they do
 * not disturb the training process.
 *
 * Only one lever moves at a time. A move up is kept if the consumer's waiting drops by more than the
 * noise of the measurements, a move down if the waiting does not grow; otherwise it is undone, and the
 * lever is left alone twice as long as the last time. So the number of moves grows with the logarithm of
 * the run's length. Released workers come back at once when the consumer waits: that returns to a safe
 * setting and needs no trial.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {                  /* in windows */
       SETTLE = 1,      /* ignored after a move, because they cover two settings */
       LEARN = 4,       /* observed before the first trial, and at least in each trial */
       TRIAL_MOST = 24, /* maximum length of a trial whose effect is hidden by noise */
       MEMORY = 32,     /* older observations are gradually forgotten */
       HOLD_FIRST = 8,  /* how long a lever is left alone at first */
       HOLD_KEPT = 64,  /* how long a move that has helped is not undone */
       HOLD_MOST = 4096,
       WAKE_FIRST = 32, /* minimum time between two changes of the consumer's speed that count */
       WAKE_MOST = 1024,
       CHANGED = 3,  /* consecutive windows that establish a new speed of the consumer */
       LATE_RUN = 2, /* consecutive windows with waiting that bring the workers back */
};

#define READY_SHARE   0.002 /* of the consumer's time: less waiting than this counts as none */
#define LATE_SHARE    0.01  /* more than this brings released workers back, */
#define LATE_AT_ONCE  0.10  /* and more than this does so after a single window */
#define WORTH_SHARE   0.03  /* waiting that justifies a trial */
#define GAIN_LEAST    0.02  /* what a trial must gain, as a fraction of the time */
#define SPOILS_TRIAL  0.03  /* waiting in a single window that ends the trial of a release */
#define SYMPTOM_SHARE 0.10  /* of the workers' time: waiting for reads, or idle */
#define MEMORY_SHARE  0.05  /* of the workers' time: waiting for memory */
#define CPU_FULL      0.95
#define CHANGE_SHARE  0.25        /* of the time per sample: the consumer's speed has changed */
#define HEADROOM      (4.0 / 3.0) /* workers kept per worker that is busy on average */

static void add(struct st_tune_mean *mean, double value)
{
    if (mean->count >= MEMORY) {
        mean->count /= 2;
        mean->squares /= 2;
    }
    const double off = value - mean->mean;
    mean->count++;
    mean->mean += off / mean->count;
    mean->squares += off * (value - mean->mean);
}

/* The squared standard error of the mean. */
static double error_squared(const struct st_tune_mean *mean)
{
    return mean->count > 1 ? mean->squares / (mean->count - 1) / mean->count : 0;
}

static void hold_off(const struct st_tune *tune, struct st_tune_hold *hold, uint32_t least)
{
    const uint32_t length = hold->length > least ? hold->length : least;
    hold->until = tune->windows + length;
}

static void hold_longer(const struct st_tune *tune, struct st_tune_hold *hold, uint32_t most)
{
    hold->length = hold->length < most / 2 ? 2 * hold->length : most;
    hold->until = tune->windows + hold->length;
}

/* Shortens the hold: levers that have rarely failed may be tried again soon, those that failed often
 * later. */
static void forgive(const struct st_tune *tune, struct st_tune_hold *hold)
{
    hold->length = hold->length / 4 > HOLD_FIRST ? hold->length / 4 : HOLD_FIRST;
    hold->until = tune->windows;
}

static bool is_held(const struct st_tune *tune, const struct st_tune_hold *hold)
{
    return tune->windows < hold->until;
}

void st_tune_lever(struct st_tune *tune, enum st_lever_name name, uint32_t least, uint32_t now,
                   uint32_t most)
{
    tune->lever[name] = (struct st_lever){.now = now,
                                          .least = least,
                                          .most = most,
                                          .floor = least,
                                          .up = {0, HOLD_FIRST},
                                          .down = {HOLD_FIRST, HOLD_FIRST}};
    tune->skip = SETTLE + 1; /* the first window also covers the start-up */
    tune->consumer.wake.length = WAKE_FIRST;
    tune->limit = "nothing observed yet";
}

static void move(struct st_tune *tune, enum st_lever_name name, uint32_t to, const char *why)
{
    static const char *const names[] = {"workers", "batches kept ready", "samples read ahead"};
    struct st_lever *lever = &tune->lever[name];
    snprintf(tune->last, sizeof tune->last, "%s %u -> %u: %s", names[name], lever->now, to, why);
    lever->now = to;
    tune->moves++;
    tune->skip = SETTLE;
    tune->late_run = 0;
    tune->late = tune->period = tune->needed = (struct st_tune_mean){0};
}

/* As move, but keeps the earlier observations, which the trial is compared with. */
static void move_in_trial(struct st_tune *tune, enum st_lever_name name, uint32_t to, const char *why)
{
    const struct st_tune_mean late = tune->late, period = tune->period;
    move(tune, name, to, why);
    tune->late = late;
    tune->period = period;
}

static void try_move(struct st_tune *tune, enum st_lever_name name, uint32_t to, const char *why)
{
    memset(&tune->trial, 0, sizeof tune->trial);
    tune->trial.on = true;
    tune->trial.lever = name;
    tune->trial.from = tune->lever[name].now;
    move_in_trial(tune, name, to, why);
}

static void keep(struct st_tune *tune)
{
    struct st_lever *lever = &tune->lever[tune->trial.lever];
    const bool down = lever->now < tune->trial.from;
    hold_off(tune, &lever->down, down ? HOLD_FIRST : HOLD_KEPT);
    lever->released = down;
    tune->trial.on = false;
    tune->late = tune->period = tune->needed = (struct st_tune_mean){0};
}

static void undo(struct st_tune *tune, const char *why)
{
    struct st_lever *lever = &tune->lever[tune->trial.lever];
    const bool down = lever->now < tune->trial.from;
    if (down)
        lever->floor = lever->now + 1 + lever->now / 4;
    hold_longer(tune, down ? &lever->down : &lever->up, HOLD_MOST);
    tune->trial.on = false;
    tune->reverted++;
    move(tune, tune->trial.lever, tune->trial.from, why);
}

/* ---- a trial -------------------------------------------------------------------------------------- */

/* Judges a move down: true if the lever was moved back. */
static bool judge_release(struct st_tune *tune, double share)
{
    const struct st_tune_mean *seen = &tune->trial.share;
    if (share > SPOILS_TRIAL || (seen->count >= LEARN && seen->mean > LATE_SHARE)) {
        undo(tune, "with fewer the consumer had to wait");
        return true;
    }
    if (seen->count >= LEARN)
        keep(tune);
    return false;
}

/* Judges a move up. */
static bool judge_gain(struct st_tune *tune)
{
    const struct st_tune_mean *before = &tune->late, *seen = &tune->trial.late;
    const double period = tune->period.mean;
    const double gain = (before->mean - seen->mean) / period;
    const double error = sqrt(error_squared(before) + error_squared(seen)) / period;
    if (seen->count < LEARN)
        return false;
    const bool last = seen->count >= TRIAL_MOST,
               helps = gain > GAIN_LEAST && gain > (last ? 1 : 2) * error;
    if (helps) {
        keep(tune);
    } else if (last || gain + 2 * error < GAIN_LEAST) {
        undo(tune, "more did not help");
        return true;
    }
    return false;
}

static bool judge(struct st_tune *tune, const struct st_tune_seen *seen)
{
    const bool down = tune->lever[tune->trial.lever].now < tune->trial.from;
    const double share = seen->late / seen->seconds;
    add(&tune->trial.late, seen->late / seen->samples);
    add(&tune->trial.share, share);
    return down ? judge_release(tune, share) : judge_gain(tune);
}

/* ---- between trials ------------------------------------------------------------------------------- */

/* The consumer waits while released workers are resting. */
static bool bring_back(struct st_tune *tune)
{
    struct st_lever *workers = &tune->lever[ST_TUNE_WORKERS];
    workers->floor = workers->now + 1 + workers->now / 4;
    hold_longer(tune, &workers->down, HOLD_MOST);
    move(tune, ST_TUNE_WORKERS, workers->most, "the consumer had to wait");
    return true;
}

/* Something that was released is needed again: releasing it was a mistake. */
static void note_return(struct st_tune *tune, struct st_lever *lever)
{
    if (lever->released)
        hold_longer(tune, &lever->down, HOLD_MOST);
    lever->released = false;
}

static bool try_more(struct st_tune *tune, enum st_lever_name name, uint32_t to, const char *why)
{
    struct st_lever *lever = &tune->lever[name];
    to = to < lever->most ? to : lever->most;
    if (to <= lever->now || is_held(tune, &lever->up))
        return false;
    note_return(tune, lever);
    try_move(tune, name, to, why);
    return true;
}

/* The consumer waits. */
static bool relieve(struct st_tune *tune, const struct st_tune_seen *seen)
{
    const struct st_lever *workers = &tune->lever[ST_TUNE_WORKERS],
                          *prefetch = &tune->lever[ST_TUNE_PREFETCH],
                          *depth = &tune->lever[ST_TUNE_DEPTH];
    const double all = workers->now * seen->seconds;
    const double idle = all - seen->work - seen->read - seen->memory;
    const bool reads = seen->read > SYMPTOM_SHARE * all && seen->read_held;
    if (seen->memory > MEMORY_SHARE * all) {
        tune->limit = "memory: workers wait for it; raise max_memory";
        return false;
    }
    if (seen->cpu > CPU_FULL) {
        tune->limit = "CPU: this process's share of the CPUs is fully used";
        return false;
    }
    tune->limit = reads ? "reads: workers wait for storage"
                  : idle > SYMPTOM_SHARE * all
                      ? "uneven load: workers are idle at some times, and the consumer waits at others"
                      : "workers: all of them are busy";
    if (reads && try_more(tune, ST_TUNE_DEPTH, 2 * depth->now, "workers waited for reads"))
        return true;
    const uint32_t more = prefetch->now + (prefetch->now > 1 ? prefetch->now / 2 : 1);
    return idle > SYMPTOM_SHARE * all &&
           try_more(tune, ST_TUNE_PREFETCH, more < seen->prefetch_room ? more : seen->prefetch_room,
                    "the consumer waited while workers were idle at other times");
}

static bool try_less(struct st_tune *tune, enum st_lever_name name, uint32_t to, const char *why)
{
    const struct st_lever *lever = &tune->lever[name];
    to = to > lever->floor ? to : lever->floor;
    if (to >= lever->now || is_held(tune, &lever->down))
        return false;
    try_move(tune, name, to, why);
    return true;
}

/* The consumer never waits. */
static bool release(struct st_tune *tune)
{
    const struct st_lever *workers = &tune->lever[ST_TUNE_WORKERS];
    const uint32_t half = workers->now / 2, needed = (uint32_t)ceil(tune->needed.mean * HEADROOM);
    const uint32_t to = needed > half ? needed : half;
    tune->limit = "nothing: batches are ready before they are needed";
    return (to <= workers->now - (workers->now + 7) / 8 &&
            try_less(tune, ST_TUNE_WORKERS, to, "every batch was ready, and workers were idle")) ||
           try_less(tune, ST_TUNE_PREFETCH, tune->lever[ST_TUNE_PREFETCH].now * 2 / 3,
                    "every batch was ready") ||
           try_less(tune, ST_TUNE_DEPTH, tune->lever[ST_TUNE_DEPTH].now / 2, "every batch was ready");
}

/* A change of the consumer's speed invalidates what was learned: levers that did not help may help now.
 * How often this can happen is limited, too. */
static bool consumer_changed(struct st_tune *tune, const struct st_tune_seen *seen)
{
    const double own = (seen->seconds - seen->late) / seen->samples, all = seen->seconds / seen->samples;
    if (tune->consumer.usual == 0)
        tune->consumer.usual = own;
    const double off = own - tune->consumer.usual,
                 most = all > tune->consumer.usual ? all : tune->consumer.usual;
    if (fabs(off) < CHANGE_SHARE * most) {
        tune->consumer.usual += off / MEMORY;
        tune->consumer.changed = 0;
        return false;
    }
    if (++tune->consumer.changed < CHANGED || is_held(tune, &tune->consumer.wake))
        return false;
    hold_longer(tune, &tune->consumer.wake, WAKE_MOST);
    tune->consumer.usual = own;
    tune->consumer.changed = 0;
    for (int k = 0; k < ST_TUNE_LEVERS; k++) {
        struct st_lever *lever = &tune->lever[k];
        lever->floor = lever->least;
        forgive(tune, &lever->up);
        forgive(tune, &lever->down);
    }
    return true;
}

static void observe(struct st_tune *tune, const struct st_tune_seen *seen)
{
    add(&tune->late, seen->late / seen->samples);
    add(&tune->period, seen->seconds / seen->samples);
    add(&tune->needed, (seen->work + seen->read + seen->memory) / seen->seconds);
}

/* Batches have become larger, and memory no longer has room for as many as are kept ready. */
static bool make_room(struct st_tune *tune, const struct st_tune_seen *seen)
{
    struct st_lever *prefetch = &tune->lever[ST_TUNE_PREFETCH];
    const uint32_t most = seen->prefetch_room > prefetch->least ? seen->prefetch_room : prefetch->least;
    if (prefetch->now <= most)
        return false;
    if (tune->trial.lever == ST_TUNE_PREFETCH)
        tune->trial.on = false;
    hold_longer(tune, &prefetch->up, HOLD_MOST);
    (tune->trial.on ? move_in_trial : move)(tune, ST_TUNE_PREFETCH, most, "no memory for more");
    return true;
}

bool st_tune_window(struct st_tune *tune, const struct st_tune_seen *seen)
{
    const struct st_lever *workers = &tune->lever[ST_TUNE_WORKERS];
    tune->windows++;
    if (!(seen->seconds > 0) || !(seen->samples > 0))
        return false;
    if (make_room(tune, seen))
        return true;
    if (tune->skip) {
        tune->skip--;
        return false;
    }
    if (consumer_changed(tune, seen)) {
        const bool was = tune->trial.on;
        if (was) { /* the trial would compare two different consumers: cancel it */
            tune->trial.on = false;
            move(tune, tune->trial.lever, tune->trial.from,
                 "the consumer's speed changed during the trial");
        }
        tune->late = tune->period = tune->needed = (struct st_tune_mean){0};
        return was;
    }
    if (tune->trial.on)
        return judge(tune, seen);
    observe(tune, seen);
    const double share = seen->late / seen->seconds;
    tune->late_run = share > LATE_SHARE ? tune->late_run + 1 : 0;
    if (workers->now < workers->most && (tune->late_run >= LATE_RUN || share > LATE_AT_ONCE))
        return bring_back(tune);
    if (tune->late.count < LEARN)
        return false;
    const double usual = tune->late.mean / tune->period.mean;
    if (usual > WORTH_SHARE)
        return relieve(tune, seen);
    return usual < READY_SHARE && release(tune);
}
