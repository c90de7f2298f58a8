/* sampler.c - ST230: the sampler takes long to draw the indices of a batch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double share = f->sampler / f->step;
    if (!dr_starved(c) || !(share >= DR_COST_MATTERS))
        return false;
    struct dr_text time, step;
    out->weight = fmin(share, f->stall_share);
    out->order = DR_ORDER_SAMPLER;
    DR_SAY(out->sentence,
           "the sampler takes %s of each step of %s to draw the indices of a batch, in the training "
           "thread",
           dr_seconds_text(&time, f->sampler), dr_seconds_text(&step, f->step));
    DR_SAY(out->advice, "draw the indices of an epoch at once (one torch.randperm or NumPy call in "
                        "__iter__), "
                        "or prepare them before training: workers do not run the sampler");
    dr_say_stoker(c, out,
                  "stoker.DataLoader(shuffle=True) draws indices in its engine; a sampler of one's own "
                  "runs in Python there, too",
                  "shuffle=True draws indices in the engine; a sampler of one's own runs in Python");
    dr_gain_by_share(out, out->weight, c->ceiling, "measured: the time of the sampler in next()");
    return true;
}

const struct dr_rule dr_rule_sampler = {
    .code = "ST230",
    .name = "slow-sampler",
    .title = "The sampler takes long to draw indices",
    .needs = "step.stall,sampler",
    .check = check,
    .symptoms = "The training thread works inside next(), with or without workers; batches are "
                "ready, and "
                "more workers change nothing.",
    .why = "Sampler and batch sampler run in the training thread, inside next(): whatever they search, "
           "sort or weigh for a batch, training waits for it.",
    .fix_torch = "def __iter__(self): return iter(torch.randperm(n).tolist())   # once per epoch\n"
                 "WeightedRandomSampler draws all indices at once.",
    .fix_stoker = "stoker.DataLoader(dataset, shuffle=True)",
    .how_to_check = "In the next report, the sampler's time in next() is below 5 % of the step.",
};
