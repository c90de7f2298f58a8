/* periodic.c - ST213: long waits occur at regular intervals, one per round of the workers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include "base/text.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_late(c) || f->loader.workers < 2 || !dr_known(f->wait_period) ||
        fabs(f->wait_period - f->loader.workers) > 0.5)
        return false;
    out->weight = 0;
    out->order = DR_ORDER_REMARK;
    DR_SAY(out->sentence,
           "one step in %.0f waits: this is a round of the %u worker%s, which finish together. The "
           "cause is "
           "low throughput, not a hiccup",
           f->wait_period, f->loader.workers, st_s(f->loader.workers));
    DR_SAY(out->advice,
           "see the finding above: the pattern disappears once batches are made fast enough");
    DR_SAY(out->basis, "no separate gain");
    return true;
}

const struct dr_rule dr_rule_periodic = {
    .code = "ST213",
    .name = "periodic-waits",
    .title = "Every Nth step waits, N being the number of workers",
    .needs = "step.stall",
    .check = check,
    .symptoms = "W fast steps, then one long wait, then W fast steps again, where W is num_workers.",
    .why = "Workers start together, so their batches are finished together. If a round takes longer "
           "than W steps, the difference appears as one wait. The mean is what counts, and it is too "
           "slow.",
    .fix_torch = "Whatever makes batches faster: see ST203, ST204, or the stage that takes the most "
                 "time.",
    .fix_stoker = "The same. In Stoker's engine, threads share the samples of a batch, so that batches "
                  "arrive one at a time.",
    .how_to_check = "The stall per step (report.html) shows the period; it disappears together with "
                    "the stall.",
};
