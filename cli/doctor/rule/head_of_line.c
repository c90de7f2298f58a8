/* head_of_line.c - ST212: the batch that is due is slow, while later ones are ready
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

/* The prefetch that is wanted, as far as memory has room for it; never less than now. */
static uint32_t deepest(const struct dr_case *c, uint32_t wanted)
{
    const uint64_t room = dr_room_for_batches(c) / c->now.workers;
    if (room < (uint64_t)wanted + 1)
        wanted = room > 1 ? (uint32_t)room - 1 : 1;
    return wanted > c->now.prefetch ? wanted : c->now.prefetch;
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_starved(c) || !dr_has_processes(c) || f->loader.workers < 2 || !f->loader.in_order ||
        !(f->behind_wait >= DR_BEHIND) || !(f->batch_cv >= DR_BATCH_VARIES))
        return false;
    struct dr_plan deeper = c->now, loose = c->now;
    deeper.prefetch = deepest(c, 8);
    loose.in_order = false;
    loose.prefetch = deepest(c, 4);
    if (c->trace) {
        struct dr_finding other = *out;
        dr_gain_by_plan(c, out, &deeper);
        dr_gain_by_plan(c, &other, &loose);
        if (other.gain.mid > out->gain.mid * 1.02) { /* only where it is worth giving the order up */
            out->gain = other.gain;
            out->plan = loose;
        }
        if (dr_below(out->gain.mid, DR_GAIN_WORTH))
            return false;
    } else
        dr_gain_by_plan(c, out, &deeper);
    const double short_of = f->batch_mean / f->loader.workers / f->compute;
    out->weight = f->stall_share;
    out->order = dr_above(short_of, DR_CAPACITY_SHORT) ? DR_ORDER_LATER : DR_ORDER_VARIANCE;
    struct dr_text mean, slow;
    char settings[192];
    dr_settings_text(settings, sizeof settings, c, &out->plan);
    DR_SAY(out->sentence,
           "%.0f %% of the waiting is for a batch that is due while later ones are ready: a batch takes "
           "%s on average, 1 in 100 takes %s",
           f->behind_wait * 100, dr_seconds_text(&mean, f->batch_mean),
           dr_seconds_text(&slow, f->batch_p99));
    DR_SAY(out->advice, "%s%s; or batches of samples of similar cost", settings,
           out->plan.in_order ? "" : " (if the order of batches may vary)");
    dr_say_stoker(
        c, out,
        "Stoker's engine shares the samples of a batch among all threads: a slow one delays only itself",
        "a larger prefetch_factor; in the engine the samples of a batch are shared among all threads");
    return true;
}

const struct dr_rule dr_rule_head_of_line = {
    .code = "ST212",
    .name = "head-of-line",
    .title = "One slow batch holds up those behind it",
    .needs = "step.stall,batch.seconds,queue.behind",
    .check = check,
    .symptoms = "next() waits although batches are ready: later ones. The time of a batch varies "
                "widely (40 % or more of its mean).",
    .why = "torch's loader gives whole batches to workers in turn and hands them out in order. One "
           "slow batch makes the others wait in the queue, and their workers run out of work. More "
           "workers cure a high mean, not a high variance.",
    .fix_torch = "DataLoader(dataset, num_workers=N, prefetch_factor=8)\n"
                 "or in_order=False (torch 2.6 and newer) where the order of batches need not "
                 "repeat; or a batch sampler that puts samples of similar length together.",
    .fix_stoker = "stoker.DataLoader(dataset)   # in the engine, whoever is free makes the next "
                  "sample, of whichever batch",
    .how_to_check =
        "The share of calls in which a later batch was ready falls, at the same number of workers.",
};
