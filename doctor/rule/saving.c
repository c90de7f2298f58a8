/* saving.c - ST308: something is saved in most steps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_cost(c, out, f->save, f->save_steps, true))
        return false;
    struct dr_text time, step, steps;
    DR_SAY(out->sentence, "saving takes %s of a step of %s; %s of the steps save",
           dr_seconds_text(&time, f->save), dr_seconds_text(&step, f->step),
           dr_share_text(&steps, f->save_steps));
    DR_SAY(out->advice, "%s",
           "save every N steps or minutes, or in the background: "
           "torch.distributed.checkpoint.async_save, or "
           "copy to the CPU and save in a thread");
    return true;
}

const struct dr_rule dr_rule_saving = {
    .code = "ST308",
    .name = "saving",
    .title = "Something is saved in most steps",
    .needs = "step.costs",
    .check = check,
    .symptoms = "torch.save or numpy.save in each step.",
    .why = "Training stops while torch.save serializes and writes all weights, whatever it is saved "
           "for.",
    .fix_torch = "if step % 500 == 0: torch.save(...)\n"
                 "torch.distributed.checkpoint.async_save(...)",
    .fix_stoker = "The loader's state_dict() is small (64 bytes for the engine): saving it costs "
                  "nothing.",
    .how_to_check = "In the next report, the time spent saving is below 5 % of the step.",
};
