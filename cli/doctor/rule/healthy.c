/* healthy.c - ST201: the loader keeps up; the run is limited by its computation
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

/* Never a finding: it is the verdict where the stall needs no cause (judge.c). */
static bool check(const struct dr_case *c, struct dr_finding *out)
{
    (void)c, (void)out;
    return false;
}

const struct dr_rule dr_rule_healthy = {
    .code = "ST201",
    .name = "compute-bound",
    .title = "The loader keeps up: training is limited by its computation",
    .needs = "step.stall",
    .check = check,
    .symptoms = "Less than 5 % of a step is spent waiting for data, and nearly every call of "
                "next() finds its batch ready.",
    .why = "Batches are made while the model computes, so a faster loader could gain no more than "
           "the small stall that is left. What can still gain is in the computation: ST301 to "
           "ST306.",
    .fix_torch = "Leave the loader alone. Fewer workers may do as well, and leave CPUs to others.",
    .fix_stoker = "The same. The loader matters again when the model gets faster (mixed precision, "
                  "compile, another GPU).",
    .how_to_check = "stoker run -- python train.py: the stall is below 5 %. `stoker check "
                    "--max-stall 5%` keeps it so.",
};
