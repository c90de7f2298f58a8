/* healthy.c - ST201: the loader keeps up; computation limits the run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

/* Never a finding: it is the verdict where there is no stall to explain (judge.c). */
static bool check(const struct dr_case *c, struct dr_finding *out)
{
    (void)c, (void)out;
    return false;
}

const struct dr_rule dr_rule_healthy = {
    .code = "ST201",
    .name = "compute-bound",
    .title = "The loader keeps up: computation limits the training",
    .needs = "step.stall",
    .check = check,
    .symptoms = "Less than 5 % of a step is spent waiting for data, and nearly every call of next() "
                "finds its batch ready.",
    .why = "Batches are made while the model computes, so a faster loader could gain at most the small "
           "stall that is left. Further gains are in the computation: see ST301 to ST306.",
    .fix_torch = "Leave the loader as it is. Fewer workers may be enough, and would free CPUs.",
    .fix_stoker = "The same. The loader matters again once the model gets faster (mixed precision, "
                  "torch.compile, another GPU).",
    .how_to_check = "stoker run -- python train.py: the stall is below 5 %. In CI, `stoker check "
                    "--max-stall 5%` keeps it there.",
};
