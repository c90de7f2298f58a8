/* memory_room.c - ST303: the GPU has room for a larger batch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!f->has_gpu || dr_late(c) || !(f->gpu_memory_peak_share < DR_MEMORY_ROOM) ||
        !(f->gpu_sm < DR_SM_ROOM) || !dr_above(f->gpu_memory_peak_share, 0))
        return false;
    const double times = floor(0.9 / f->gpu_memory_peak_share);
    if (times < 2)
        return false;
    out->weight = fmin(1 - f->gpu_sm, 0.95) * 0.1;
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "training uses at most %.0f %% of the GPU's memory and %.0f %% of its multiprocessors: there "
           "is room for a larger batch",
           f->gpu_memory_peak_share * 100, f->gpu_sm * 100);
    if (dr_known(f->loader.batch_size))
        DR_SAY(out->advice, "batch_size=%.0f (now %.0f), with a newly tuned learning rate",
               f->loader.batch_size * fmin(times, 4), f->loader.batch_size);
    else
        DR_SAY(out->advice, "a batch %.0f times as large, with a newly tuned learning rate",
               fmin(times, 4));
    DR_SAY(out->basis, "cannot be estimated from this run: try it");
    return true;
}

const struct dr_rule dr_rule_memory_room = {
    .code = "ST303",
    .name = "memory-headroom",
    .title = "The GPU has room for a larger batch",
    .needs = "gpu.sm_active,gpu.memory_peak",
    .check = check,
    .symptoms = "Peak memory of torch is below 60 % of the device, its multiprocessors are not all "
                "busy, and the loader keeps up.",
    .why = "Larger batches make larger kernels, which use more of the GPU, and spread the cost of "
           "launches and of the optimizer over more samples.",
    .fix_torch = "A larger batch_size. Tune the learning rate again: accuracy may change.",
    .fix_stoker = "The same argument. The loader then has to deliver more samples per second: run "
                  "again.",
    .how_to_check = "Samples per second rise. If they do not, go back: the GPU was already fully used.",
};
