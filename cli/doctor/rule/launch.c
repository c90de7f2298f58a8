/* launch.c - ST301: kernels are so small that launching them is the limit
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!f->has_gpu || dr_late(c) || !(f->gpu_sm < DR_SM_LOW) || !(f->gpu_busy >= DR_GPU_IS_BUSY) ||
        !(f->trainer_on_cpu >= DR_LAUNCHING))
        return false;
    out->weight = fmin(f->gpu_busy - f->gpu_sm, 0.95);
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "kernels run on the GPU %.0f %% of the time, but occupy only %.0f %% of its multiprocessors; "
           "the training thread uses %.0f %% of a CPU to launch them",
           f->gpu_busy * 100, f->gpu_sm * 100, f->trainer_on_cpu * 100);
    DR_SAY(out->advice,
           "%storch.compile(model, mode=\"reduce-overhead\") (CUDA graphs), AdamW(..., fused=True)",
           f->gpu_memory_peak_share < DR_MEMORY_ROOM ? "a larger batch, " : "");
    DR_SAY(out->basis, "cannot be estimated from this run: try it");
    return true;
}

const struct dr_rule dr_rule_launch = {
    .code = "ST301",
    .name = "launch-bound",
    .title = "Kernels are too small: launching them is the limit",
    .needs = "gpu.sm_active,gpu.busy,main.on_cpu",
    .check = check,
    .symptoms = "nvidia-smi shows a busy GPU, but few of its multiprocessors work; the training thread "
                "uses a whole CPU; the loader is not the limit.",
    .why = "Launching a kernel costs the host a few microseconds. With small batches and many small "
           "ops, a kernel ends before the next one is launched.",
    .fix_torch = "A larger batch; model = torch.compile(model, mode=\"reduce-overhead\"); fused "
                 "optimizers; channels_last.",
    .fix_stoker = "Nothing to change in the loader.",
    .how_to_check = "gpu.sm_active rises towards gpu.busy.",
};
