/* clocks.c - ST305: power or temperature limits the GPU's clock
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (dr_late(c) || !(f->gpu_limited >= DR_LIMITED) || !(f->gpu_clock < DR_CLOCK_LOW) ||
        !dr_above(f->gpu_clock, 0))
        return false;
    struct dr_text watts;
    out->weight = 1 - f->gpu_clock;
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "power or temperature limits the GPU %.0f %% of the time: its clock is at %.0f %% of the "
           "maximum, at %s W",
           f->gpu_limited * 100, f->gpu_clock * 100, dr_plain_text(&watts, f->gpu_watts));
    DR_SAY(out->advice,
           "nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE shows which: raise the power limit "
           "(nvidia-smi -pl), or improve the cooling");
    out->gain = (struct dr_range){1, 1 / f->gpu_clock, 1 / f->gpu_clock};
    DR_SAY(out->basis, "upper bound: the ratio of the clocks");
    return true;
}

const struct dr_rule dr_rule_clocks = {
    .code = "ST305",
    .name = "throttled-gpu",
    .title = "Power or temperature limits the GPU's clock",
    .needs = "gpu.limited,gpu.clock",
    .check = check,
    .symptoms = "The driver reports a power cap or thermal slow-down for most of the run, and the "
                "clock is well below its maximum.",
    .why = "A GPU that gets too hot or reaches its power limit lowers its clock. Common reasons are a "
           "power limit below the card's default, dust, and hot air from neighbouring cards.",
    .fix_torch = "Nothing in the program: nvidia-smi -q -d PERFORMANCE shows the reason; then improve "
                 "the cooling, or nvidia-smi -pl WATTS.",
    .fix_stoker = "The same.",
    .how_to_check = "gpu.limited falls and gpu.clock rises under the same load.",
};
