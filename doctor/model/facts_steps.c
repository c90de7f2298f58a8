/* facts_steps.c - which steps are measured, and their durations, stalls, waits and queue
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include "base/err.h"

#include <string.h>

enum { WARM_UP_LEAST = 5, WARM_UP_PER = 20, STEPS_LEAST = 3 };

/* The first interval after the warm-up: 5 steps or 5 % of all, and everything before the first step of
 * the optimizer. At most half of a very short run; nothing if the beginning of the run
 * was overwritten. */
static uint32_t warm_up(const struct dr_part *part, uint32_t ordinary)
{
    const struct dr_intervals *intervals = &part->intervals;
    if (part->trainer->events_lost)
        return 0;
    uint32_t skip = ordinary / WARM_UP_PER > WARM_UP_LEAST ? ordinary / WARM_UP_PER : WARM_UP_LEAST;
    skip = skip < ordinary / 2 ? skip : ordinary / 2;
    uint32_t at = 0;
    for (; at < intervals->count && skip; at++)
        skip -= dr_is_ordinary(&intervals->all[at]);
    return at > intervals->first_stepped ? at : intervals->first_stepped;
}

/* The idle time of the GPU where it was measured; steps whose event was not read get the usual share of
 * their wait. */
static void settle_stalls(struct dr_part *part)
{
    double stall = 0, wait = 0;
    for (uint32_t k = 0; k < part->intervals.count; k++) {
        const struct dr_interval *interval = &part->intervals.all[k];
        if (interval->stall_known)
            stall += interval->step.stall, wait += interval->step.wait, part->facts->has_gpu = true;
    }
    const double usual = wait > 0 ? fmin(stall / wait, 1) : 0;
    for (uint32_t k = 0; part->facts->has_gpu && k < part->intervals.count; k++) {
        struct dr_interval *interval = &part->intervals.all[k];
        if (!interval->stall_known)
            interval->step.stall = usual * interval->step.wait;
        if (interval->closed)
            interval->step.stall = fmin(interval->step.stall, interval->step.seconds);
    }
}

/* Batches that were made and taken, but whose steps are not there: their events were overwritten by
 * later ones, or watching the training process ended early. Workers go on noting what they make. */
static double steps_lost(const struct dr_part *part)
{
    double made = 0;
    for (uint32_t k = 0; k < part->run->processes; k++) {
        const struct dr_process *process = &part->run->process[k];
        for (uint64_t n = 0; dr_is_maker(part, process) && n < process->event_count; n++)
            made += process->events[n].kind == DR_FETCH &&
                    process->events[n].loader == part->intervals.loader;
    }
    const double ahead = (double)part->facts->loader.workers * part->facts->loader.prefetch;
    const bool ended = part->facts->watch_error || part->trainer->events_lost;
    return ended && made > part->intervals.count + ahead ? made - part->intervals.count : 0;
}

/* The steps to measure; a run too short for any uses its whole time. */
static int take_steps(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    const struct dr_intervals *intervals = &part->intervals;
    uint32_t ordinary = 0, count = 0;
    for (uint32_t k = 0; k < intervals->count; k++)
        ordinary += dr_is_ordinary(&intervals->all[k]);
    facts->confidence_steps = ordinary;
    facts->steps_seen = intervals->count;
    facts->steps_lost = steps_lost(part);
    part->rows = (struct dr_rows){0, part->run->machine.ticks};
    if (ordinary < STEPS_LEAST)
        return STOKER_OK;
    part->first = warm_up(part, ordinary);
    struct dr_step *steps = dr_blocks_new(part->blocks, ordinary, sizeof *steps);
    if (!steps)
        return st_fail(part->err, STOKER_ENOMEM, "out of memory for %u steps", ordinary);
    double early = 0, early_stall = 0;
    for (uint32_t k = 0; k < intervals->count; k++) {
        const struct dr_interval *interval = &intervals->all[k];
        if (k < part->first) {
            early += interval->closed ? interval->step.seconds : 0;
            early_stall += interval->closed ? interval->step.stall : 0;
        } else if (dr_is_ordinary(interval)) {
            if (!count)
                part->from_ns = interval->step.start_ns;
            part->to_ns = interval->end_ns;
            steps[count++] = interval->step;
        }
    }
    if (!count)
        return STOKER_OK;
    facts->steps = steps;
    facts->step_count = count;
    facts->confidence_steps = count;
    facts->warm_up_steps = part->first;
    facts->warm_up_stall_share = dr_share(early_stall, early);
    part->rows = dr_rows_between(part->run, part->from_ns, part->to_ns);
    return STOKER_OK;
}

static void means(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    const double count = facts->step_count;
    double all = 0, stall = 0, wait = 0, copy = 0, sync = 0, optimizer = 0, cpu = 0, calls = 0;
    for (uint32_t k = 0; k < facts->step_count; k++) {
        const struct dr_step *step = &facts->steps[k];
        all += step->seconds, stall += step->stall, wait += step->wait;
        copy += step->copy, sync += step->sync, optimizer += step->optimizer;
    }
    for (uint32_t k = part->first; k < part->intervals.count; k++)
        if (dr_is_ordinary(&part->intervals.all[k]))
            cpu += part->intervals.all[k].next_cpu, calls++;
    facts->step = all / count;
    facts->stall = stall / count;
    facts->stall_share = dr_share(stall, all);
    facts->wait = wait / count;
    facts->wait_share = dr_share(wait, all);
    facts->compute = facts->step - facts->stall;
    facts->copy = copy / count;
    facts->sync = sync / count;
    facts->optimizer = optimizer / count;
    facts->main_cpu_in_next = cpu / calls;
    facts->samples_per_second = dr_share(facts->loader.batch_size, facts->step);
    facts->accumulation = part->intervals.accumulation;
}

/* The mean of one part of the steps, and the share of the steps that have it. */
static void cost(const struct dr_facts *facts, size_t part, double *seconds, double *steps)
{
    double sum = 0, with = 0;
    for (uint32_t k = 0; k < facts->step_count; k++) {
        const struct dr_step *step = &facts->steps[k];
        double value;
        memcpy(&value, (const char *)step + part, sizeof value);
        sum += fmin(value, fmax(step->seconds - step->wait, 0));
        with += value > 0;
    }
    *seconds = sum / facts->step_count;
    *steps = with / facts->step_count;
}

static void costs(struct dr_facts *facts)
{
    double sampler = 0;
    cost(facts, offsetof(struct dr_step, save), &facts->save, &facts->save_steps);
    cost(facts, offsetof(struct dr_step, gc), &facts->gc, &facts->gc_steps);
    cost(facts, offsetof(struct dr_step, logging), &facts->logging, &facts->logging_steps);
    cost(facts, offsetof(struct dr_step, eval), &facts->eval, &facts->eval_steps);
    for (uint32_t k = 0; k < facts->step_count; k++)
        sampler += fmin(facts->steps[k].sampler, facts->steps[k].wait);
    facts->sampler = sampler / facts->step_count;
}

static void queue(struct dr_facts *facts)
{
    struct dr_sum ready = {0};
    double known = 0, found = 0, behind = 0, wait = 0, wait_behind = 0;
    for (uint32_t k = 0; k < facts->step_count; k++) {
        const struct dr_step *step = &facts->steps[k];
        if (step->ready != DR_UNKNOWN)
            dr_sum_add(&ready, step->ready);
        if (step->ready == DR_UNKNOWN && !(step->flags & (DR_NEXT_READY | DR_NEXT_BEHIND)))
            continue;
        known++;
        found += (step->flags & DR_NEXT_READY) != 0;
        behind += (step->flags & DR_NEXT_BEHIND) != 0;
        wait += step->wait;
        wait_behind += step->flags & DR_NEXT_BEHIND ? step->wait : 0;
    }
    facts->readiness = dr_share(found, known);
    facts->behind_share = dr_share(behind, known);
    facts->behind_wait = dr_share(wait_behind, wait);
    facts->ready_mean = dr_sum_mean(&ready);
}

int dr_facts_steps(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    settle_stalls(part);
    const int rc = take_steps(part);
    if (rc || !facts->step_count)
        return rc;
    means(part);
    costs(facts);
    queue(facts);
    const uint32_t count = facts->step_count;
    double *one = dr_blocks_new(part->blocks, 2 * (uint64_t)count, sizeof *one), *other = one + count;
    if (!one)
        return st_fail(part->err, STOKER_ENOMEM, "out of memory for %u steps", count);
    for (uint32_t k = 0; k < count; k++)
        one[k] = facts->steps[k].wait;
    facts->wait_period = dr_period(one, count);
    for (uint32_t k = 0; k < count; k++)
        one[k] = facts->steps[k].seconds - facts->steps[k].wait;
    facts->own_fast = dr_percentile(one, count, 0.01);
    facts->own_least = one[0];
    for (uint32_t k = 0; k < count; k++)
        one[k] = facts->steps[k].stall, other[k] = facts->steps[k].seconds;
    if (!dr_ratio_interval(one, other, count, &facts->stall_share_low, &facts->stall_share_high))
        return st_fail(part->err, STOKER_ENOMEM, "out of memory for %u steps", count);
    double late = 0, high;
    for (uint32_t k = 0; k < count; k++)
        late += one[k] = facts->steps[k].flags & DR_NEXT_READY ? 0 : facts->steps[k].stall;
    facts->late_share = dr_share(late, facts->step * count);
    if (!dr_ratio_interval(one, other, count, &facts->late_share_low, &high))
        return st_fail(part->err, STOKER_ENOMEM, "out of memory for %u steps", count);
    facts->step_p50 = dr_percentile(other, count, 0.5);
    facts->step_p99 = dr_percentile(other, count, 0.99);
    return STOKER_OK;
}
