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
    /* The wait itself costs nothing while the GPU works; the gap after it does. */
    const double stall = dr_known(f->stall_share) ? f->stall_share : 0;
    const double copies = dr_known(f->copy) ? f->copy / f->step : 0;
    const double gap = fmin(share, 1 - f->gpu_busy - stall - copies);
    if (!(gap >= DR_GAP_MATTERS))
        return false;
    struct dr_text time;
    out->weight = fmin(gap, 0.95);
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "the training thread waits %s per step for the GPU%s%.180s; after each wait the GPU is idle "
           "until new kernels are launched (%.0f %% of the time)",
           dr_seconds_text(&time, f->sync), f->sync_where[0] ? ", most of it at " : "", f->sync_where,
           gap * 100);
    DR_SAY(out->advice,
           "%s%.180s: call .item(), .cpu() or print only every N steps, or keep sums on the GPU",
           f->sync_where[0] ? "at " : "in the training loop", f->sync_where);
    dr_gain_by_share(out, out->weight, NAN,
                     "measured: the idle time of the GPU apart from stall and copies");
    out->gain.low = 1;
    return true;
}

const struct dr_rule dr_rule_sync = {
    .code = "ST302",
    .name = "sync-points",
    .title = "The training loop waits for the GPU in every step",
    .needs = "sync,gpu.busy",
    .check = check,
    .symptoms = "loss.item(), .cpu(), nonzero(), indexing with a mask, or print(tensor) in every step; "
                "the GPU is idle for a moment after each.",
    .why = "Kernels are launched ahead of the GPU. A call that needs a result waits until the GPU has "
           "finished everything before it. By then no kernel is queued, and the GPU is idle until the "
           "host has launched new ones.",
    .fix_torch = "total += loss.detach()               # stays on the GPU\n"
                 "if step % 50 == 0: print(total.item())\n"
                 "torch.cuda.set_sync_debug_mode(\"warn\") names the lines.",
    .fix_stoker = "Nothing to change in the loader: its next() does not wait for the GPU.",
    .how_to_check = "In the next report, the time spent waiting for the GPU falls, and gpu.busy rises.",
};
