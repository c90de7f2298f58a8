/* simulate.c - tries settings on measured times: replays, intervals, gains, the best settings
 *
 * The estimate replays the batches in the measured order. Its interval comes from replays of randomly
 * drawn blocks, with a fixed seed: the same run gives the same numbers. If the measured run is longer
 * than such a replay, the spread shrinks with the square root of the ratio, as for a mean.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/simulate.h"

#include "base/mem.h"
#include "doctor/model/facts.h"
#include "doctor/model/random.h"
#include "doctor/model/replay.h"

#include <stdlib.h>

enum {
    MOST_BATCHES = 2000,  /* batches in the replay for the estimate */
    LEAST_BATCHES = 400,  /* fewer measured ones are repeated */
    DRAWN_BATCHES = 400,  /* batches in a replay for the interval */
    DRAWN = 20,           /* replays for an interval */
    SEARCH_BATCHES = 800, /* batches in a replay of the search for the best settings */
    MOST_WORKERS = 4096,
    MOST_PREFETCH = 16,
};
static const double LONGEST = 1e6; /* seconds: longer measured times are clipped */
static const double GOOD_ENOUGH = 1.02;
static const double ENGINE_HANDS_OVER = 1e-4; /* seconds of next() with a ready batch of the engine */

static double sane(double seconds) { return seconds > 0 ? fmin(seconds, LONGEST) : 0; }

/* The times of `count` batches, in its own memory. */
struct tape {
    double *wall, *cpu, *step;
    uint32_t count;
};

static bool tape_new(struct tape *tape, uint32_t count)
{
    tape->count = count;
    tape->wall = st_calloc((uint64_t)count * 3, sizeof(double));
    tape->cpu = tape->wall + count;
    tape->step = tape->cpu + count;
    return tape->wall;
}

static void tape_set(struct tape *tape, uint32_t at, const struct dr_trace *trace, uint32_t batch,
                     uint32_t step)
{
    const double cpu = sane(trace->cpu ? trace->cpu[batch] : 0);
    const double wall = sane(trace->wall[batch]);
    tape->wall[at] = fmax(wall * (1 - fmin(sane(trace->queued_share), 1)), fmin(cpu, wall));
    tape->cpu[at] = sane(cpu * fmax(trace->all_threads, 1));
    const double own = sane((trace->step ? trace->step[step]
                                         : trace->step_of[step].seconds - trace->step_of[step].wait) -
                            sane(trace->step_watch));
    tape->step[at] =
        fmax(own * (1 - fmin(sane(trace->step_queued), 1)), fmin(sane(trace->step_cpu), own));
}

/* In the measured order, from the first one on. */
static void tape_as_measured(struct tape *tape, const struct dr_trace *trace)
{
    for (uint32_t k = 0; k < tape->count; k++)
        tape_set(tape, k, trace, k % trace->batches, k % trace->steps);
}

/* Blocks that start anywhere: batches close in time are similar. */
static void tape_draw(struct tape *tape, const struct dr_trace *trace, struct dr_random *random)
{
    const uint32_t least = trace->batches < trace->steps ? trace->batches : trace->steps;
    const uint32_t block = dr_block_length(least);
    for (uint32_t k = 0; k < tape->count;) {
        const uint32_t batch = dr_random_below(random, trace->batches);
        const uint32_t step = dr_random_below(random, trace->steps);
        for (uint32_t n = 0; n < block && k < tape->count; n++, k++)
            tape_set(tape, k, trace, (batch + n) % trace->batches, (step + n) % trace->steps);
    }
}

/* What is taken from a step whose waits for a CPU have been removed. */
static double less_of(const struct dr_trace *trace, const struct dr_plan *plan)
{
    return plan->step_less * (1 - fmin(sane(trace->step_queued), 1));
}

/* What is left of a step without some work. Work that takes long in some steps makes these long: as a
 * share of each, nothing is taken from steps that have less of it. */
static double share_left(const struct tape *tape, const struct dr_trace *trace,
                         const struct dr_plan *plan)
{
    double sum = 0;
    for (uint32_t k = 0; k < tape->count; k++)
        sum += tape->step[k];
    sum *= plan->step_scale;
    const double less = less_of(trace, plan) * tape->count;
    return sum > less ? 1 - less / sum : 0;
}

/* What-ifs of stages: factors on the waiting and on the CPU part. */
static void scale_into(struct tape *to, const struct tape *from, const struct dr_trace *trace,
                       const struct dr_plan *plan)
{
    const bool alone = (!plan->workers || plan->engine) && trace->threads_transfer;
    const double left = plan->step_less > 0 ? share_left(from, trace, plan) : 1;
    for (uint32_t k = 0; k < from->count; k++) {
        const double waiting = fmax(from->wall[k] - from->cpu[k], 0);
        const double on_cpu = from->wall[k] - waiting;
        to->wall[k] = sane(waiting * plan->wall_scale + on_cpu * plan->cpu_scale);
        to->cpu[k] = sane((alone ? on_cpu : from->cpu[k]) * plan->cpu_scale);
        to->step[k] = sane(from->step[k] * plan->step_scale * left);
    }
}

struct result {
    double step, wait_share, readiness, cpus;
};

/* Without ends of epochs, the first quarter, in which the queue fills, does not count. If epochs are
 * longer than the replay, its remainder represents the missing part. */
static bool replay(struct result *out, const struct tape *tape, struct tape *room,
                   const struct dr_trace *trace, const struct dr_plan *plan)
{
    scale_into(room, tape, trace, plan);
    const uint32_t epoch = trace->epoch_batches, count = tape->count;
    struct dr_plan usable = *plan;
    usable.workers = plan->workers < MOST_WORKERS ? plan->workers : MOST_WORKERS;
    usable.cpus = plan->cpus > 0 ? plan->cpus : INFINITY;
    const struct dr_replay in = {.wall = room->wall,
                                 .cpu = room->cpu,
                                 .step = room->step,
                                 .count = count,
                                 .step_cpu = sane(trace->step_cpu - less_of(trace, plan)),
                                 .hand_over = fmin(sane(trace->hand_over),
                                                   plan->engine ? ENGINE_HANDS_OVER : INFINITY),
                                 .pin = plan->engine ? 0 : sane(trace->pin),
                                 .put = sane(trace->put),
                                 .start_worker = sane(trace->start_worker),
                                 .epoch_batches = epoch};
    struct dr_replayed done;
    if (!dr_replay(&done, &in, &usable))
        return false;
    const uint32_t rest = count - dr_replay_early(&in);
    const double late = done.seconds - done.early_seconds;
    double seconds = done.seconds, wait = done.wait, steps = count, ready = done.ready;
    if (!epoch) {
        seconds = late, wait -= done.early_wait, steps = rest, ready -= done.early_ready;
    } else if (epoch > count) {
        const double more = (double)(epoch - count) / rest;
        seconds += more * late, wait += more * (done.wait - done.early_wait);
        ready += more * (done.ready - done.early_ready), steps = epoch;
    }
    *out = (struct result){.step = seconds / steps, .readiness = ready / steps};
    out->wait_share = seconds > 0 ? wait / seconds : 0;
    out->cpus = done.seconds > 0 ? done.cpu / done.seconds : 0;
    return true;
}

static bool usable(const struct dr_trace *trace)
{
    return trace && trace->batches && trace->steps && trace->wall && (trace->step || trace->step_of);
}

static uint32_t tape_length(const struct dr_trace *trace, uint32_t most)
{
    const uint32_t measured = trace->batches > trace->steps ? trace->batches : trace->steps;
    return measured < LEAST_BATCHES ? LEAST_BATCHES : measured < most ? measured : most;
}

/* The estimate: the step with plan `then`, or, with `now`, the speed-up. */
static bool estimate(double *value, struct result *result, const struct tape *tape, struct tape *room,
                     const struct dr_trace *trace, const struct dr_plan *now, const struct dr_plan *then)
{
    struct result before;
    if (!replay(result, tape, room, trace, then))
        return false;
    *value = result->step;
    if (!now)
        return true;
    if (!replay(&before, tape, room, trace, now) || !(result->step > 0))
        return false;
    *value = before.step / result->step;
    return true;
}

/* The 95 % interval around `mid`, by replays of drawn blocks. Both plans use the same draws, so that
 * common effects cancel. */
static struct dr_range spread(double mid, const struct dr_trace *trace, const struct dr_plan *now,
                              const struct dr_plan *then)
{
    struct dr_range range = {NAN, mid, NAN};
    struct tape tape, room = {0};
    if (!tape_new(&tape, DRAWN_BATCHES))
        return range;
    struct dr_random random = {.state = 13};
    double sum = 0, squares = 0;
    bool good = tape_new(&room, DRAWN_BATCHES);
    for (int k = 0; good && k < DRAWN; k++) {
        struct result result;
        double value;
        tape_draw(&tape, trace, &random);
        good = estimate(&value, &result, &tape, &room, trace, now, then);
        if (good)
            sum += value, squares += value * value;
    }
    free(tape.wall);
    free(room.wall);
    if (!good)
        return range;
    const uint32_t measured = trace->batches < trace->steps ? trace->batches : trace->steps;
    const double variance = fmax(squares / DRAWN - sum / DRAWN * (sum / DRAWN), 0) * DRAWN / (DRAWN - 1);
    const double half = 1.96 * sqrt(variance * DRAWN_BATCHES / measured);
    return (struct dr_range){fmax(mid - half, 0), mid, mid + half};
}

static bool as_measured(double *value, struct result *result, const struct dr_trace *trace,
                        const struct dr_plan *now, const struct dr_plan *then, uint32_t most)
{
    struct tape tape, room = {0};
    const uint32_t count = tape_length(trace, most);
    bool good = tape_new(&tape, count);
    if (!good)
        return false;
    good = tape_new(&room, count);
    if (good) {
        tape_as_measured(&tape, trace);
        good = estimate(value, result, &tape, &room, trace, now, then);
    }
    free(tape.wall);
    free(room.wall);
    return good;
}

void dr_simulate(struct dr_outcome *out, const struct dr_trace *trace, const struct dr_plan *plan)
{
    struct result result;
    double mid;
    *out = (struct dr_outcome){{NAN, NAN, NAN}, NAN, NAN, NAN};
    if (!usable(trace) || !as_measured(&mid, &result, trace, NULL, plan, MOST_BATCHES))
        return;
    out->step = spread(mid, trace, NULL, plan);
    out->wait_share = result.wait_share;
    out->readiness = result.readiness;
    out->cpus = result.cpus;
}

struct dr_range dr_gain(const struct dr_trace *trace, const struct dr_plan *now,
                        const struct dr_plan *then, double ceiling)
{
    struct result result;
    double mid;
    if (!usable(trace) || !as_measured(&mid, &result, trace, now, then, MOST_BATCHES))
        return (struct dr_range){NAN, NAN, NAN};
    struct dr_range range = spread(mid, trace, now, then);
    if (dr_known(ceiling)) {
        range.low = fmin(range.low, ceiling);
        range.mid = fmin(range.mid, ceiling);
        range.high = fmin(range.high, ceiling);
    }
    return range;
}

static bool fits(const struct dr_plan *plan, uint64_t most_batches)
{
    const uint64_t workers = plan->shared_samples ? 1 : plan->workers;
    return !plan->workers || workers * ((uint64_t)plan->prefetch + 1) <= most_batches;
}

/* The settings to try: every number of workers up to 16, then steps of about an eighth; the current
 * prefetch and its doublings, or the largest that fits. */
static uint32_t next_workers(uint32_t workers)
{
    return workers < 16 ? workers + 1 : workers + workers / 8;
}

static uint32_t first_prefetch(const struct dr_plan *now, struct dr_plan plan, uint64_t most_batches)
{
    plan.prefetch = now->workers && now->prefetch > 1 ? now->prefetch : 2;
    while (plan.prefetch > 1 && !fits(&plan, most_batches))
        plan.prefetch--;
    return plan.prefetch;
}

/* Goes through all settings in order of cost. With a `limit` of NaN: finds the lowest step time, *least.
 * Otherwise: finds the first plan within the limit, *plan. */
static void search(struct dr_plan *plan, double *least, double limit, const struct dr_trace *trace,
                   const struct dr_plan *now, uint32_t most_workers, uint64_t most_batches)
{
    struct dr_plan tried = *now;
    for (tried.workers = 0; tried.workers <= most_workers; tried.workers = next_workers(tried.workers)) {
        tried.prefetch = first_prefetch(now, tried, most_batches);
        for (; fits(&tried, most_batches); tried.prefetch *= 2) {
            struct result result;
            double step;
            if (!as_measured(&step, &result, trace, NULL, &tried, SEARCH_BATCHES))
                return;
            *least = fmin(*least, step);
            if (step <= limit) {
                *plan = tried;
                return;
            }
            if (!tried.workers || tried.prefetch * 2 > MOST_PREFETCH)
                break;
        }
    }
}

struct dr_plan dr_best_plan(const struct dr_trace *trace, const struct dr_plan *now,
                            uint32_t most_workers, uint64_t most_batches)
{
    struct dr_plan best = *now;
    if (!usable(trace))
        return best;
    const uint32_t most = most_workers < MOST_WORKERS ? most_workers : MOST_WORKERS;
    double least = INFINITY;
    search(&best, &least, NAN, trace, now, most, most_batches);
    search(&best, &least, least * GOOD_ENOUGH, trace, now, most, most_batches);
    return best;
}
