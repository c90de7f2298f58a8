/* facts_ranks.c - compares ranks: which one waits for data while the others wait for it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include "base/err.h"

#include <stdio.h>

enum { RANKS = 1024 };

struct rank {
    const struct dr_process *process;
    struct dr_intervals intervals;
    uint32_t at, last; /* position in the merge of all ranks; steps in which this rank was the last */
};

static uint64_t key_of(const struct dr_interval *interval)
{
    return (uint64_t)interval->epoch << 32 | interval->step.batch;
}

/* Moves to the batch with this key; false: this rank does not have it. */
static bool walk_to(struct rank *rank, uint64_t key)
{
    while (rank->at < rank->intervals.count && key_of(&rank->intervals.all[rank->at]) < key)
        rank->at++;
    return rank->at < rank->intervals.count && key_of(&rank->intervals.all[rank->at]) == key;
}

struct merged {
    double steps, seconds, lost;
};

/* One step of all ranks: which one was the last, and by how much it waited longer than the others. */
static void merge_step(struct merged *merged, struct rank *ranks, uint32_t count)
{
    uint32_t last = 0;
    uint64_t latest = 0;
    double most = 0, all = 0;
    bool ordinary = true;
    for (uint32_t n = 0; n < count; n++) {
        const struct dr_interval *interval = &ranks[n].intervals.all[ranks[n].at];
        if (interval->taken_ns > latest)
            latest = interval->taken_ns, last = n;
        most = fmax(most, interval->step.stall);
        all += interval->step.stall;
        ordinary =
            ordinary && dr_is_ordinary(interval) && ranks[n].at >= ranks[n].intervals.first_stepped;
    }
    ranks[last].last++;
    merged->steps++;
    if (ordinary) {
        merged->seconds += ranks[0].intervals.all[ranks[0].at].step.seconds;
        merged->lost += most - (all - most) / (count - 1);
    }
}

/* Goes through the steps that all ranks have. Counts for each rank those in which it was the last to get
 * its batch, so that the others waited. */
static struct merged merge(struct rank *ranks, uint32_t count)
{
    struct merged merged = {0};
    for (uint32_t k = 0; k < ranks[0].intervals.count; k++) {
        const uint64_t key = key_of(&ranks[0].intervals.all[k]);
        uint32_t seen = 0;
        while (seen < count && walk_to(&ranks[seen], key))
            seen++;
        if (seen == count)
            merge_step(&merged, ranks, count);
    }
    return merged;
}

/* A rank that waits for others in the all-reduce gets its batches in time, however slowly they are made:
 * the time in which they are made does not depend on the others. */
static double pace_of(const struct dr_run *run, const struct rank *rank)
{
    const int trainer = (int)(rank->process - run->process);
    char key[64];
    struct dr_sum made = {0};
    snprintf(key, sizeof key, "loader.%u.workers", rank->intervals.loader);
    const double workers = dr_said_number(rank->process, key);
    for (uint32_t k = 0; k < run->processes; k++) {
        const struct dr_process *maker = &run->process[k];
        if (maker != rank->process && (maker->role != DR_WORKER || maker->trainer != trainer))
            continue;
        for (uint64_t n = 0; n < maker->event_count; n++)
            if (maker->events[n].kind == DR_FETCH && maker->events[n].loader == rank->intervals.loader)
                dr_sum_add(&made, (double)maker->events[n].dur_ns / 1e9);
    }
    return dr_sum_mean(&made) / (workers >= 1 ? workers : 1);
}

static void one_rank(struct dr_rank_facts *out, const struct dr_run *run, const struct rank *rank,
                     double steps)
{
    double count = 0, all = 0, stall = 0, wait = 0;
    bool gpu = false;
    const struct dr_intervals *intervals = &rank->intervals;
    for (uint32_t k = 0; k < intervals->count; k++)
        gpu |= intervals->all[k].stall_known;
    for (uint32_t k = intervals->first_stepped; k < intervals->count; k++) {
        const struct dr_interval *interval = &intervals->all[k];
        if (!dr_is_ordinary(interval) || (gpu && !interval->stall_known))
            continue;
        count++;
        all += interval->step.seconds;
        wait += interval->step.wait;
        stall += fmin(interval->step.stall, interval->step.seconds);
    }
    *out = (struct dr_rank_facts){.rank = rank->process->rank,
                                  .step = dr_share(all, count),
                                  .stall_share = dr_share(stall, all),
                                  .wait_share = dr_share(wait, all)};
    out->wait_before_others = dr_share(rank->last, steps);
    out->pace = pace_of(run, rank);
}

int dr_facts_ranks(struct dr_part *part)
{
    const struct dr_run *run = part->run;
    uint32_t count = 0;
    for (uint32_t k = 0; k < run->processes; k++)
        count += run->process[k].role == DR_TRAINER && run->process[k].rank >= 0 &&
                 run->process[k].event_count;
    if (count < 2)
        return STOKER_OK;
    count = count < RANKS ? count : RANKS;
    struct rank *ranks = dr_blocks_new(part->blocks, count, sizeof *ranks);
    struct dr_rank_facts *out = dr_blocks_new(part->blocks, count, sizeof *out);
    if (!ranks || !out)
        return st_fail(part->err, STOKER_ENOMEM, "out of memory for %u ranks", count);
    bool whole = true; /* if events were lost, epochs of different ranks do not match */
    for (uint32_t k = 0, n = 0; k < run->processes && n < count; k++) {
        const struct dr_process *process = &run->process[k];
        if (process->role != DR_TRAINER || process->rank < 0 || !process->event_count)
            continue;
        ranks[n].process = process;
        whole &= !process->events_lost;
        const int rc = dr_intervals_of(&ranks[n++].intervals, process, part->blocks, part->err);
        if (rc)
            return rc;
    }
    const struct merged merged = whole ? merge(ranks, count) : (struct merged){NAN, NAN, NAN};
    for (uint32_t k = 0; k < count; k++)
        one_rank(&out[k], run, &ranks[k], merged.steps);
    part->facts->rank_skew = dr_share(merged.lost, merged.seconds);
    part->facts->ranks = out;
    part->facts->rank_count = count;
    return STOKER_OK;
}
