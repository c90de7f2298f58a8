/* straggler.c - ST225: one rank waits for data, the others wait for that rank
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The mean over all ranks but `except`, each of which could make its batches in this time; NaN. */
static double pace_without(const struct dr_facts *f, const struct dr_rank_facts *except)
{
    double sum = 0, count = 0;
    for (uint32_t i = 0; i < f->rank_count; i++)
        if (&f->ranks[i] != except)
            sum += f->ranks[i].pace, count++;
    return count > 0 ? sum / count : NAN;
}

static void say_stoker(const struct dr_case *c, struct dr_finding *out)
{
    dr_say_stoker(c, out,
                  "stoker.DataLoader(..., shard=True) gives every rank the same number of samples, "
                  "spread over the dataset",
                  "shard=True gives every rank the same number of samples");
}

/* No rank waits more than the others over the whole run, but in each step one of them does. */
static bool wanders(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!(f->rank_skew >= DR_STRAGGLER))
        return false;
    /* where no rank makes batches any faster, it is not their variation that costs time */
    if (pace_without(f, NULL) >= DR_SAME_PACE * f->step)
        return false;
    out->weight = fmin(f->rank_skew, 0.95);
    DR_SAY(out->sentence,
           "in each step one of %u ranks gets its batch later than the others, but not always the same "
           "one; waiting for it takes all of them %.0f %% of the time",
           f->rank_count, f->rank_skew * 100);
    DR_SAY(
        out->advice,
        "give all ranks batches of similar cost (group samples by length or size, shuffle), and use a "
        "larger prefetch_factor to absorb slow batches");
    say_stoker(c, out);
    dr_gain_by_share(out, out->weight, NAN,
                     "measured: how much longer the last rank waits in each step");
    return true;
}

/* Without the waits of the rank that sets the pace, as far as the others can make their batches. */
static void predict(struct dr_finding *out, const struct dr_rank_facts *worst, double pace,
                    double middle)
{
    const double own = worst->step * (1 - worst->stall_share), then = fmax(own, pace);
    if (!dr_known(pace) || !dr_above(then, 0) || !dr_above(worst->step, then)) {
        dr_gain_by_share(out, fmin(out->weight, 0.95), NAN,
                         "the stall of the worst rank compared with the others");
        return;
    }
    const double least = 1 / (1 - fmin(worst->stall_share - middle, 0.95));
    out->gain.mid = out->gain.high = worst->step / then;
    out->gain.low = fmin(least, out->gain.mid);
    DR_SAY(out->basis, "its own time per step, if it gets batches as the other ranks do");
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    enum { RANKS = 4096 };
    if (f->rank_count < 2 || f->rank_count > RANKS || !f->ranks)
        return false;
    double *stalls = calloc(f->rank_count, sizeof *stalls);
    if (!stalls)
        return false;
    const struct dr_rank_facts *worst = NULL;
    uint32_t known = 0;
    for (uint32_t i = 0; i < f->rank_count; i++)
        if (dr_known(f->ranks[i].stall_share)) {
            stalls[known++] = f->ranks[i].stall_share;
            if (!worst || f->ranks[i].stall_share > worst->stall_share)
                worst = &f->ranks[i];
        }
    qsort(stalls, known, sizeof *stalls, by_value);
    const double middle = known ? stalls[(known - 1) / 2] : NAN;
    free(stalls);
    if (known < 2)
        return false;
    out->order = dr_starved(c) ? DR_ORDER_RANK : DR_ORDER_OWN;
    if (worst->stall_share < DR_STALL_MATTERS || !(worst->stall_share - middle >= DR_STRAGGLER) ||
        !(worst->stall_share >= DR_STRAGGLER_TIMES * middle))
        return wanders(c, out);
    /* the others get their batches in time because they wait for this rank in the all-reduce, not
     * because theirs are made faster */
    if (pace_without(f, worst) >= DR_SAME_PACE * worst->pace)
        return false;
    out->weight = worst->stall_share - middle;
    DR_SAY(out->sentence,
           "rank %d waits for data %.0f %% of the time, the others %.0f %%: all ranks run at its pace",
           worst->rank, worst->stall_share * 100, middle * 100);
    DR_SAY(out->advice,
           "find out what differs on rank %d; give every rank the same CPUs, disk and shard size, and "
           "use a larger prefetch_factor to absorb single slow batches",
           worst->rank);
    say_stoker(c, out);
    predict(out, worst, pace_without(f, worst), middle);
    return true;
}

const struct dr_rule dr_rule_straggler = {
    .code = "ST225",
    .name = "straggler",
    .title = "One rank waits for data, and the others wait for it",
    .needs = "ranks",
    .check = check,
    .symptoms = "The stall of one rank is far above that of the others, or another rank is late in each "
                "step; the GPUs of the others look busy, but they wait in the collective.",
    .why = "All ranks meet in the all-reduce of every step, so the slowest one sets the pace. Unequal "
           "shards, fewer CPUs or a slower disk on one node are enough.",
    .fix_torch = "Equal shards (DistributedSampler) and equal CPUs for every rank (numactl, cgroups); "
                 "then fix the finding of that rank.",
    .fix_stoker = "stoker.DataLoader(dataset, shard=True)",
    .how_to_check = "In the next report, the stalls of the ranks are close together.",
};
