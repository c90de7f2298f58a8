/* straggler.c - ST225: one rank waits for data, the others wait for that rank
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
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
    if (known < 2 || worst->stall_share < DR_STALL_MATTERS ||
        !(worst->stall_share - middle >= DR_STRAGGLER) ||
        !(worst->stall_share >= DR_STRAGGLER_TIMES * middle))
        return false;
    out->weight = worst->stall_share - middle;
    out->order = dr_starved(c) ? DR_ORDER_RANK : DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "rank %d waits %.0f %% of its steps for data, the others %.0f %%: all ranks go at its pace",
           worst->rank, worst->stall_share * 100, middle * 100);
    DR_SAY(out->advice,
           "find out what differs on rank %d: the same CPUs, disk and shard size for every rank, "
           "and a larger prefetch_factor to even out single slow batches",
           worst->rank);
    dr_say_stoker(c, out,
                  "stoker.DataLoader(..., shard=True) gives every rank the same number of samples, "
                  "spread over the data set",
                  "shard=True gives every rank the same number of samples");
    dr_gain_by_share(out, fmin(out->weight, 0.95), NAN, "the worst rank's stall against the others'");
    return true;
}

const struct dr_rule dr_rule_straggler = {
    .code = "ST225",
    .name = "straggler",
    .title = "One rank waits for data, and the others for it",
    .needs = "ranks",
    .check = check,
    .symptoms = "One rank's stall is far above the others'; the others show a busy GPU, but it is "
                "the collective that waits.",
    .why = "Ranks meet in every step's all-reduce, so the slowest decides. Unequal shards, fewer "
           "CPUs or a slower disk on one node suffice.",
    .fix_torch = "Equal shards (DistributedSampler), equal CPUs for every rank (numactl, cgroups), "
                 "then the finding on that rank.",
    .fix_stoker = "stoker.DataLoader(dataset, shard=True)",
    .how_to_check = "The ranks' stalls in the next report lie close together.",
};
