/* head_of_line.c - ST212: the next batch is slow while later ones are ready
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

/* The wanted prefetch_factor, limited by memory; never below the current one. */
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
    if (!dr_late(c) || !dr_has_processes(c) || f->loader.workers < 2 || !f->loader.in_order ||
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
        if (other.gain.mid > out->gain.mid * 1.02) { /* giving up the order must pay off */
            out->gain = other.gain;
            out->plan = loose;
        }
        if (!dr_pays(out->gain))
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
           "%.0f %% of the wait is for a slow batch while later ones are already finished: a batch "
           "takes %s on average, but 1 in 100 takes %s or more",
           f->behind_wait * 100, dr_seconds_text(&mean, f->batch_mean),
           dr_seconds_text(&slow, f->batch_p99));
    DR_SAY(out->advice, "%s%s; or group samples of similar cost into a batch", settings,
           out->plan.in_order ? "" : " (if the order of batches need not be reproducible)");
    dr_say_stoker(
        c, out,
        "Stoker's engine spreads the samples of a batch over all threads: a slow sample delays only "
        "itself",
        "increase prefetch_factor; the engine already spreads the samples of a batch over all threads");
    return true;
}

const struct dr_rule dr_rule_head_of_line = {
    .code = "ST212",
    .name = "head-of-line",
    .title = "One slow batch holds up those behind it",
    .needs = "step.stall,batch.seconds,queue.behind",
    .check = check,
    .symptoms = "next() waits although later batches are ready. The time to make a batch varies widely "
                "(40 % of its mean or more).",
    .why = "torch's loader assigns whole batches to workers in turn, and returns them in order. One "
           "slow batch makes the others wait in the queue, and their workers run out of work. More "
           "workers cure a high mean, not a high variance.",
    .fix_torch = "DataLoader(dataset, num_workers=N, prefetch_factor=8)\n"
                 "or in_order=False (torch 2.6 and newer) where the order of batches need not be "
                 "reproducible; or a batch sampler that groups samples of similar cost.",
    .fix_stoker = "stoker.DataLoader(dataset)   # in the engine, a free thread makes the next sample, "
                  "of any batch",
    .how_to_check = "The share of calls in which a later batch was ready falls, with the same number "
                    "of workers.",
};
