/* sync.c - ST302: the training loop waits for the GPU in every step
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

/* The share of the steps that wait for the GPU: a program that waits once at its beginning has no sync
 * points. */
static double waiting_steps(const struct dr_facts *f)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < f->step_count; k++)
        count += f->steps[k].sync > 0;
    return f->step_count ? (double)count / f->step_count : 0;
}

/* The wait itself costs nothing while the GPU works; the gap after it does. The GPU never waits if the
 * host, which no longer waits, is always ahead of it. Whether it is cannot be seen beforehand: it may
 * also need all of its remaining time, but then it does not fetch the values either. */
static void predict(struct dr_finding *out, double waits, double gap)
{
    out->gain.low = 1 / (1 - fmin(fmin(waits, gap), 0.95));
    out->gain.high = 1 / (1 - fmin(gap, 0.95));
    out->gain.mid = sqrt(out->gain.low * out->gain.high);
    DR_SAY(out->basis,
           "measured: from the waits to the idle time of the GPU apart from stall and copies");
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double share = f->sync / f->step;
    if (!f->has_gpu || !(share >= DR_SYNC_MATTERS) || waiting_steps(f) < DR_SYNC_STEPS)
        return false;
    const double stall = dr_known(f->stall_share) ? f->stall_share : 0;
    const double copies = dr_known(f->copy) ? f->copy / f->step : 0;
    const double gap = 1 - f->gpu_busy - stall - copies;
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
    predict(out, share, gap);
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
