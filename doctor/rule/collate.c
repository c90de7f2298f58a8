/* collate.c - ST229: putting samples together takes most of the time of a batch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    if (!dr_heavy_stage(c, out, DR_STAGE_COLLATE, DR_STAGE_HEAVY, ""))
        return false;
    dr_gain_by_stage(c, out, DR_STAGE_COLLATE, (struct dr_range){0.75, 0.25, 0});
    DR_SAY(out->advice,
           "collate_fn: fill one tensor per field (torch.stack, or torch.empty and rows of it) "
           "instead of "
           "loops and lists in Python; do what belongs to one sample in __getitem__, or once, offline");
    dr_say_stoker(c, out,
                  "stoker.DataLoader collates in its engine: samples are written to their row of "
                  "the batch",
                  "loader.explain() tells why collate_fn runs in Python");
    return dr_pays(out->gain);
}

const struct dr_rule dr_rule_collate = {
    .code = "ST229",
    .name = "heavy-collate",
    .title = "collate_fn takes most of the time of a batch",
    .needs = "step.stall,batch.stages",
    .check = check,
    .symptoms = "More than half of the time of a batch is spent in collate_fn, in the workers or in "
                "the "
                "training thread.",
    .why = "collate_fn sees the whole batch at once: padding, sorting or tokenizing there is Python "
           "code per sample, in one thread of each worker, and so is default_collate of samples "
           "that consist of many small objects.",
    .fix_torch = "out = torch.zeros(len(batch), longest); for row, x in zip(out, batch): "
                 "row[:len(x)] = x\n"
                 "Group samples of similar length, so that there is less to pad.",
    .fix_stoker = "stoker.DataLoader(dataset)   # without a collate_fn of one's own",
    .how_to_check = "In the next report, the share of collation falls.",
};
