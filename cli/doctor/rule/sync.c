/* sync.c - ST302: the training loop waits for the GPU in every step
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double share = f->sync / f->step;
    if (!f->has_gpu || !(share >= DR_SYNC_MATTERS))
        return false;
    /* The wait itself costs nothing while the GPU works; the gap behind it does. */
    const double stall = dr_known(f->stall_share) ? f->stall_share : 0;
    const double copies = dr_known(f->copy) ? f->copy / f->step : 0;
    const double gap = fmin(share, 1 - f->gpu_busy - stall - copies);
    if (!(gap >= DR_GAP_MATTERS))
        return false;
    struct dr_text time;
    out->weight = fmin(gap, 0.95);
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "the training thread waits %s a step for the GPU%s%.180s; then the GPU is idle until "
           "new kernels come (%.0f %% of the time)",
           dr_seconds_text(&time, f->sync), f->sync_where[0] ? ", most of it at " : "", f->sync_where,
           gap * 100);
    DR_SAY(out->advice,
           "%s%.180s: call .item(), .cpu() or print only every N steps, or keep sums on the GPU",
           f->sync_where[0] ? "at " : "in the training loop", f->sync_where);
    dr_gain_by_share(out, out->weight, NAN, "the GPU's idle time beside stall and copies, measured");
    out->gain.low = 1;
    return true;
}

const struct dr_rule dr_rule_sync = {
    .code = "ST302",
    .name = "sync-points",
    .title = "The training loop waits for the GPU in every step",
    .needs = "sync,gpu.busy",
    .check = check,
    .symptoms = "loss.item(), .cpu(), nonzero(), a mask used as an index, or print(tensor) in "
                "every step; the GPU is idle for a moment after each.",
    .why = "Kernels are launched ahead of the GPU. A call that needs a result waits until the GPU "
           "has done everything before it, and by then no kernel is queued: the GPU idles while "
           "the host catches up.",
    .fix_torch = "total += loss.detach()               # on the GPU\n"
                 "if step % 50 == 0: print(total.item())\n"
                 "torch.cuda.set_sync_debug_mode(\"warn\") names the lines.",
    .fix_stoker = "Nothing to change in the loader: its next() does not wait for the GPU.",
    .how_to_check = "The report's time in waits for the GPU falls; gpu.busy rises.",
};
