/* periodic.c - ST213: long waits come at regular intervals, one for each round of the workers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_starved(c) || f->loader.workers < 2 || !dr_known(f->wait_period) ||
        fabs(f->wait_period - f->loader.workers) > 0.5)
        return false;
    out->weight = 0;
    out->order = DR_ORDER_REMARK;
    DR_SAY(out->sentence,
           "one step in %.0f waits: that is a round of the %u workers, which finish together. It "
           "is a lack of throughput, not a hiccup",
           f->wait_period, f->loader.workers);
    DR_SAY(out->advice,
           "see the finding above: when batches are made fast enough, the pattern goes too");
    DR_SAY(out->basis, "no gain of its own");
    return true;
}

const struct dr_rule dr_rule_periodic = {
    .code = "ST213",
    .name = "periodic-waits",
    .title = "Every Nth step waits, N being the number of workers",
    .needs = "step.stall",
    .check = check,
    .symptoms = "W fast steps, then a long wait, then W fast steps, where W is num_workers.",
    .why = "Workers start together, so their batches are finished together. If a round takes "
           "longer than W steps, the rest is one wait. The mean is what counts, and it is too slow.",
    .fix_torch =
        "Whatever makes batches faster: ST203, ST204, or the stage that takes most of the time.",
    .fix_stoker = "The same; the engine's threads share samples, so its batches come one by one.",
    .how_to_check = "The stall by step (report.html) shows the period; it disappears with the stall.",
};
