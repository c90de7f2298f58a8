/* intervals.c - turns the events of a training process into steps, and finds the training loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdlib.h>

enum { LOADERS = 1024, LOOK_BACK = 256 };

struct score {
    uint64_t calls, training, stepped;
};

struct reading {
    struct dr_intervals *out;
    bool flagged; /* only calls with gradients enabled belong to training */
    uint32_t epoch;
};

/* The loader whose batches are followed by steps of the optimizer; without an optimizer, the most used
 * one. */
static uint16_t pick_loader(const struct dr_process *trainer, struct score *scores, uint64_t *steps)
{
    uint16_t last = 0, best = 0;
    bool called = false;
    *steps = 0;
    for (uint64_t k = 0; k < trainer->event_count; k++) {
        const struct dr_event *event = &trainer->events[k];
        if (event->kind == DR_NEXT && event->loader < LOADERS) {
            last = event->loader;
            called = true;
            scores[last].calls++;
            scores[last].training += (event->b & DR_NEXT_TRAINING) != 0;
        } else if (event->kind == DR_STEP && called) {
            scores[last].stepped++;
            (*steps)++;
        }
    }
    for (uint16_t k = 1; k < LOADERS; k++) {
        const struct score *one = &scores[k], *other = &scores[best];
        if (one->stepped != other->stepped     ? one->stepped > other->stepped
            : one->training != other->training ? one->training > other->training
                                               : one->calls > other->calls)
            best = k;
    }
    return best;
}

static struct dr_interval *current(const struct reading *reading)
{
    return reading->out->count ? &reading->out->all[reading->out->count - 1] : NULL;
}

/* The interval that contains this time; events may be written late, so it also searches a little way
 * back. */
static struct dr_interval *interval_at(const struct reading *reading, uint64_t ns)
{
    for (uint32_t back = 0; back < reading->out->count && back < LOOK_BACK; back++) {
        struct dr_interval *interval = &reading->out->all[reading->out->count - 1 - back];
        if (interval->step.start_ns <= ns)
            return interval;
    }
    return NULL;
}

static void close_interval(struct dr_interval *interval, uint64_t ns)
{
    if (!interval || interval->closed || ns < interval->step.start_ns)
        return;
    interval->closed = true;
    interval->end_ns = ns;
    interval->step.seconds = (double)(ns - interval->step.start_ns) / 1e9;
    /* Calls from several threads may overlap. */
    interval->step.wait = fmin(interval->step.wait, interval->step.seconds);
    if (!interval->stall_known)
        interval->step.stall = interval->step.wait;
}

/* The loop was left before the end of the loader, at an unknown time. */
static void cut_interval(struct dr_interval *interval, uint64_t ns)
{
    if (!interval || interval->closed)
        return;
    interval->cut = true;
    close_interval(interval, ns);
}

static void begin_interval(struct reading *reading, const struct dr_event *event)
{
    struct dr_intervals *out = reading->out;
    if (event->b & DR_NEXT_FIRST)
        cut_interval(current(reading), event->start_ns);
    close_interval(current(reading), event->start_ns);
    if ((event->b & DR_NEXT_FIRST) && out->count)
        reading->epoch++;
    const double seconds = (double)event->dur_ns / 1e9;
    out->all[out->count++] = (struct dr_interval){
        .step = {.start_ns = event->start_ns,
                 .wait = seconds,
                 .stall = seconds,
                 .ready = event->a,
                 .flags = (uint8_t)event->b,
                 .batch = event->batch},
        .taken_ns = event->start_ns + event->dur_ns,
        .epoch = reading->epoch,
        .next_cpu = (double)(event->b >> 8) / 1e6,
    };
}

/* next() of another loader, or of this one during an evaluation. */
static void other_call(struct reading *reading, const struct dr_event *event)
{
    struct dr_interval *interval = current(reading);
    if (!interval)
        return;
    if (event->b & DR_NEXT_TRAINING)
        interval->other_calls++;
    else
        interval->eval_calls++;
    if (!interval->eval_from_ns || event->start_ns < interval->eval_from_ns)
        interval->eval_from_ns = event->start_ns;
    interval->eval_to_ns = event->start_ns + event->dur_ns;
}

/* The start identifies the call; the batch index alone could belong to another epoch. */
static struct dr_interval *stalled_call(const struct reading *reading, const struct dr_event *event)
{
    struct dr_interval *by_batch = NULL;
    for (uint32_t back = 0; back < reading->out->count && back < LOOK_BACK; back++) {
        struct dr_interval *interval = &reading->out->all[reading->out->count - 1 - back];
        if (interval->step.start_ns == event->start_ns)
            return interval;
        if (!by_batch && interval->step.batch == event->batch && !interval->stall_known)
            by_batch = interval;
    }
    return by_batch;
}

static void stalled(struct reading *reading, const struct dr_event *event)
{
    struct dr_interval *interval = stalled_call(reading, event);
    if (!interval || interval->stall_known)
        return;
    interval->stall_known = true;
    interval->step.stall = (double)event->dur_ns / 1e9;
}

/* Work besides model and data. It may lie in next(), whose own event is written when it returns: so all
 * intervals are there first. In next() it is a part of the wait, which only concerns the sampler. */
static void add_cost(const struct dr_intervals *out, const struct dr_event *event)
{
    uint32_t from = 0, to = out->count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (out->all[middle].step.start_ns <= event->start_ns)
            from = middle + 1;
        else
            to = middle;
    }
    if (!from)
        return;
    struct dr_interval *interval = &out->all[from - 1];
    struct dr_step *step = &interval->step;
    const bool after = interval->last && event->start_ns >= interval->end_ns;
    const double seconds = (double)event->dur_ns / 1e9;
    if (event->start_ns < interval->taken_ns)
        step->sampler += event->kind == DR_SAMPLE && event->loader == out->loader ? seconds : 0;
    else if (event->kind == DR_SAVE)
        *(after ? &interval->gap_save : &step->save) += seconds;
    else if (event->kind == DR_GC)
        *(after ? &interval->gap_gc : &step->gc) += seconds;
    else if (event->kind == DR_LOG && !after)
        step->logging += seconds;
}

/* Any other event of the training process. */
static void add_part(struct reading *reading, const struct dr_event *event)
{
    struct dr_interval *interval = interval_at(reading, event->start_ns);
    const double seconds = (double)event->dur_ns / 1e9;
    if (!interval)
        return;
    struct dr_step *step = &interval->step;
    const bool after = interval->last && event->start_ns >= interval->end_ns;
    switch (event->kind) {
    case DR_STEP:
        step->optimizer += seconds;
        interval->optimizer_steps++;
        break;
    case DR_COPY:
        step->copy += after ? 0 : seconds;
        break;
    case DR_SYNC:
        step->sync += after ? 0 : seconds;
        break;
    default:
        break;
    }
}

static void read_event(struct reading *reading, const struct dr_event *event)
{
    const bool ours = event->loader == reading->out->loader;
    struct dr_interval *interval = current(reading);
    switch (event->kind) {
    case DR_NEXT:
        if (ours && (!reading->flagged || (event->b & DR_NEXT_TRAINING)))
            begin_interval(reading, event);
        else
            other_call(reading, event);
        break;
    case DR_STALL:
        if (ours)
            stalled(reading, event);
        break;
    case DR_EPOCH:
        if (ours && interval && !interval->closed && event->start_ns >= interval->taken_ns) {
            close_interval(interval, event->start_ns);
            interval->last = true;
        } else if (!ours && interval && interval->eval_calls) /* with what it did to its last batch */
            interval->eval_to_ns = event->start_ns + event->dur_ns;
        break;
    case DR_ITER:
        if (ours)
            cut_interval(interval, event->start_ns);
        else if (interval) {
            interval->other_began = true;
            if (!interval->eval_from_ns)
                interval->eval_from_ns = event->start_ns;
        }
        break;
    default:
        add_part(reading, event);
        break;
    }
}

/* An evaluation: more calls of other loaders than usual in a step (two loaders may feed one step). */
static int mark_interrupted(struct dr_intervals *out, struct dr_blocks *blocks, struct stoker_error *err)
{
    double *calls = dr_blocks_new(blocks, out->count, sizeof *calls);
    if (!calls)
        return st_fail(err, STOKER_ENOMEM, "out of memory for %u steps", out->count);
    for (uint32_t k = 0; k < out->count; k++)
        calls[k] = out->all[k].eval_calls;
    const double usual_eval = dr_percentile(calls, out->count, 0.5);
    for (uint32_t k = 0; k < out->count; k++)
        calls[k] = out->all[k].other_calls;
    const double usual = dr_percentile(calls, out->count, 0.5);
    for (uint32_t k = 0; k < out->count; k++) {
        struct dr_interval *interval = &out->all[k];
        interval->interrupted =
            interval->eval_calls > usual_eval || interval->other_calls >= usual + 3;
        if (interval->eval_calls && interval->other_began &&
            interval->eval_to_ns > interval->eval_from_ns)
            interval->step.eval = (double)(interval->eval_to_ns - interval->eval_from_ns) / 1e9;
    }
    return STOKER_OK;
}

bool dr_is_ordinary(const struct dr_interval *interval)
{
    const bool after = interval->last && interval->eval_from_ns >= interval->end_ns;
    return interval->closed && !interval->cut && !(interval->step.flags & DR_NEXT_FIRST) &&
           (!interval->interrupted || after);
}

int dr_intervals_of(struct dr_intervals *out, const struct dr_process *trainer, struct dr_blocks *blocks,
                    struct stoker_error *err)
{
    struct score *scores = st_calloc(LOADERS, sizeof *scores);
    *out = (struct dr_intervals){.accumulation = NAN};
    if (!scores)
        return st_fail(err, STOKER_ENOMEM, "out of memory for %llu events",
                       (unsigned long long)trainer->event_count);
    out->loader = pick_loader(trainer, scores, &out->optimizer_steps);
    const struct score score = scores[out->loader];
    free(scores);
    out->all = dr_blocks_new(blocks, score.calls, sizeof *out->all);
    if (!out->all)
        return st_fail(err, STOKER_ENOMEM, "out of memory for %llu steps",
                       (unsigned long long)score.calls);
    struct reading reading = {.out = out, .flagged = score.training > score.calls / 4};
    for (uint64_t k = 0; k < trainer->event_count; k++)
        read_event(&reading, &trainer->events[k]);
    for (uint64_t k = 0; k < trainer->event_count; k++)
        add_cost(out, &trainer->events[k]);
    uint64_t steps = 0;
    bool seen = false;
    for (uint32_t k = 0; k < out->count; k++) {
        steps += out->all[k].optimizer_steps > 0;
        if (!seen && out->all[k].optimizer_steps)
            out->first_stepped = k, seen = true;
    }
    if (seen)
        out->accumulation = (double)(out->count - out->first_stepped) / (double)steps;
    return mark_interrupted(out, blocks, err);
}
