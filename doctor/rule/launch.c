/* launch.c - ST301: kernels are so small that launching them is the limit
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    /* The backward pass is launched by a thread of autograd, while the training thread sleeps: together
     * they use one CPU. A thread that waits for the GPU, or for room in its queue, is on the CPU as
     * well: it polls. So the host must not wait for results, and the GPU must have run out of work
     * whenever the loop returns to next(). */
    const double waits = dr_known(f->sync) ? f->sync / f->step : 0,
                 pins = dr_known(f->pin) ? f->pin / f->step : 0;
    const double launching = f->trainer_cpus - (f->loader.workers && f->loader.pin_memory ? pins : 0);
    if (!f->has_gpu || dr_late(c) || !(f->gpu_sm < DR_SM_LOW) || !(launching >= DR_LAUNCHING) ||
        !(waits < DR_SYNC_MATTERS) || !(f->stall >= DR_GPU_DRAINED * f->wait))
        return false;
    out->weight = fmin(1 - f->gpu_sm, 0.95);
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "the training process uses %.2f CPUs to launch kernels, and the GPU has done them before the "
           "next "
           "ones come: only %.1f %% of its multiprocessors are in use",
           launching, f->gpu_sm * 100);
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
    .needs = "gpu.sm_active,on_cpu",
    .check = check,
    .symptoms =
        "Few of the GPU's multiprocessors work, even if nvidia-smi shows a busy GPU; the training "
        "process uses a whole CPU and waits neither for data nor for results.",
    .why = "Launching a kernel costs the host a few microseconds. With small batches and many small "
           "ops, a kernel ends before the next one is launched.",
    .fix_torch = "A larger batch; model = torch.compile(model, mode=\"reduce-overhead\"); fused "
                 "optimizers; channels_last.",
    .fix_stoker = "Nothing to change in the loader.",
    .how_to_check = "gpu.sm_active and samples per second rise.",
};
