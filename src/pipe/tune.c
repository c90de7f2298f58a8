/* tune.c - moves workers, batches kept ready and the depth of reading ahead to what the run needs
 *
 * Seen is a window of half a second or more. Where the consumer waits, there are three causes to be told
 * apart by what the workers do meanwhile: they wait for reads (read further ahead), they are idle now
 * and then (keep more batches ready), or all of them work (the CPUs are the limit, and nothing helps).
 * Where it never waits, workers that are not needed are released, to leave the training process alone.
 *
 * Only one lever moves at a time. A move up is kept if the consumer waits less by more than the noise of
 * what was measured, a move down if it does not wait more; otherwise it is undone, and the lever is left
 * alone twice as long as the last time. So the moves of a run grow with the logarithm of its length.
 * Released workers come back at once when the consumer waits: that is a return to what is safe, and
 * needs no trial.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {                  /* windows */
       SETTLE = 1,      /* are not looked at behind a move: they show two settings */
       LEARN = 4,       /* seen before the first trial, and in each at least */
       TRIAL_MOST = 24, /* in one trial, where noise hides what it does */
       MEMORY = 32,     /* older ones are forgotten by and by */
       HOLD_FIRST = 8,  /* a lever is left alone */
       HOLD_KEPT = 64,  /* what a trial has shown to help is not given back before */
       HOLD_MOST = 4096,
       WAKE_FIRST = 32, /* between two changes of the consumer's speed that count */
       WAKE_MOST = 1024,
       CHANGED = 3,  /* in a row show another speed of the consumer, if it changed */
       LATE_RUN = 2, /* in a row with waiting bring the workers back */
};

#define READY_SHARE   0.002 /* of the consumer's time: less waiting than this is none */
#define LATE_SHARE    0.01  /* more than this brings released workers back */
#define LATE_AT_ONCE  0.10  /* and this, without looking twice */
#define WORTH_SHARE   0.03  /* waiting that is worth a trial */
#define GAIN_LEAST    0.02  /* that a trial must bring, as a part of the time */
#define SPOILS_TRIAL  0.03  /* waiting in one window that ends a release */
#define SYMPTOM_SHARE 0.10  /* of the workers' time: that they wait for reads; that they are idle */
#define MEMORY_SHARE  0.05  /* or for memory */
#define CPU_FULL      0.95
#define CHANGE_SHARE  0.25        /* of a sample's time: the consumer's speed has changed */
#define HEADROOM      (4.0 / 3.0) /* workers kept for each that is busy on the average */

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

/* The square of the error of the mean. */
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

/* Who has failed seldom so far may begin anew; who has failed often has learned something. */
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
    tune->skip = SETTLE + 1; /* the first also shows how everything begins */
    tune->consumer.wake.length = WAKE_FIRST;
    tune->limit = "nothing was seen yet";
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

/* The same; what was seen before stays, for a trial to be compared with. */
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

/* A move down: true if a lever was moved back. */
static bool judge_release(struct st_tune *tune, double share)
{
    const struct st_tune_mean *seen = &tune->trial.share;
    if (share > SPOILS_TRIAL || (seen->count >= LEARN && seen->mean > LATE_SHARE)) {
        undo(tune, "with less the consumer had to wait");
        return true;
    }
    if (seen->count >= LEARN)
        keep(tune);
    return false;
}

/* A move up. */
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

/* The consumer waits, and released workers are at rest. */
static bool bring_back(struct st_tune *tune)
{
    struct st_lever *workers = &tune->lever[ST_TUNE_WORKERS];
    workers->floor = workers->now + 1 + workers->now / 4;
    hold_longer(tune, &workers->down, HOLD_MOST);
    move(tune, ST_TUNE_WORKERS, workers->most, "the consumer had to wait");
    return true;
}

/* What was given back is wanted again: giving it back was no good. */
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
        tune->limit = "memory: workers wait for it, so that max_memory would have to be raised";
        return false;
    }
    if (seen->cpu > CPU_FULL) {
        tune->limit = "the CPUs: all of this process's share are busy";
        return false;
    }
    tune->limit = reads ? "reads: workers wait for the store"
                  : idle > SYMPTOM_SHARE * all
                      ? "unsteady times: workers are idle at times, and the consumer waits at others"
                      : "the workers: all of them are busy";
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
    tune->limit = "nothing: batches are ready before they are asked for";
    return (to <= workers->now - (workers->now + 7) / 8 &&
            try_less(tune, ST_TUNE_WORKERS, to, "every batch was ready, and workers were idle")) ||
           try_less(tune, ST_TUNE_PREFETCH, tune->lever[ST_TUNE_PREFETCH].now * 2 / 3,
                    "every batch was ready") ||
           try_less(tune, ST_TUNE_DEPTH, tune->lever[ST_TUNE_DEPTH].now / 2, "every batch was ready");
}

/* Another speed of the consumer makes what was learned void: levers that did not help may help now. How
 * often that may happen is bounded too. */
static bool woke_up(struct st_tune *tune, const struct st_tune_seen *seen)
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

/* Batches have become larger, and memory has no room for as many as are kept ready. */
static bool make_room(struct st_tune *tune, const struct st_tune_seen *seen)
{
    struct st_lever *prefetch = &tune->lever[ST_TUNE_PREFETCH];
    const uint32_t most = seen->prefetch_room > prefetch->least ? seen->prefetch_room : prefetch->least;
    if (prefetch->now <= most)
        return false;
    if (tune->trial.lever == ST_TUNE_PREFETCH)
        tune->trial.on = false;
    hold_longer(tune, &prefetch->up, HOLD_MOST);
    (tune->trial.on ? move_in_trial : move)(tune, ST_TUNE_PREFETCH, most, "memory has no room for more");
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
    if (woke_up(tune, seen)) {
        const bool was = tune->trial.on;
        if (was) { /* it compares two consumers now: as if it had not been */
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
