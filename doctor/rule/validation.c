/* validation.c - ST309: a validation runs in most steps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_cost(c, out, f->eval, f->eval_steps, true))
        return false;
    struct dr_text time, step, steps;
    DR_SAY(out->sentence, "validation takes %s of a step of %s; %s of the steps contain one",
           dr_seconds_text(&time, f->eval), dr_seconds_text(&step, f->step),
           dr_share_text(&steps, f->eval_steps));
    DR_SAY(out->advice, "%s",
           "validate every N steps or after each epoch, on fewer batches, or in another process");
    return true;
}

const struct dr_rule dr_rule_validation = {
    .code = "ST309",
    .name = "validation",
    .title = "A validation runs in most steps",
    .needs = "step.costs",
    .check = check,
    .symptoms = "A second loader is started and iterated without gradients between two steps of "
                "training.",
    .why = "A validation costs as much as the batches that it reads and computes, and training "
           "waits for it.",
    .fix_torch = "if step % 500 == 0: validate(model)",
    .fix_stoker = "stoker.DataLoader for the validation loader, too.",
    .how_to_check = "In the next report, the time of the validation is below 5 % of the step.",
};
