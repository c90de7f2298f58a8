/* pageable.c - ST216: copies to the GPU come from pageable memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

/* From pinned memory the copy takes its time on the link, and a thread of the loader copies the batch
 * into pinned memory beforehand, at about the speed of the pageable copy, which does the same with the
 * driver's buffer: the loader then brings no more than one batch in that time. */
static void predict(const struct dr_facts *f, double cost, struct dr_finding *out)
{
    const double link = f->copy_bytes / (DR_PCIE_REACHED * f->limits.pcie_limit);
    const double left = dr_known(link) ? fmin(link, cost) : 0.15 * cost;
    const double then = f->step - cost + left;
    out->gain.mid = f->step / fmax(then, cost);
    out->gain.low =
        fmax(1, f->step / fmax(then, 1.5 * cost)); /* it shares the memory with the workers */
    out->gain.high = fmax(out->gain.mid, f->step / then);
    DR_SAY(out->basis, "measured: the copies of a step; a thread that pins needs as long");
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    /* fmin ignores unknown values. Waiting for earlier work of the GPU is not a cost of the copy: that
     * work has to be done in any case. */
    const double cost = fmin(f->copy, f->copy_alone), share = cost / f->step;
    if (!f->has_gpu || !(f->copies_pageable_share >= DR_PAGEABLE) || !(share >= DR_COPY_MATTERS))
        return false;
    struct dr_text time, size;
    out->weight = fmin(share, 0.95);
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "%.0f %% of the copies to the GPU come from pageable memory; they block the training thread "
           "for %s per step, for %s",
           f->copies_pageable_share * 100, dr_seconds_text(&time, cost),
           dr_bytes_text(&size, f->copy_bytes));
    DR_SAY(out->advice, "%s.to(device, non_blocking=True)",
           f->loader.pin_memory
               ? "pin what collate_fn returns (custom classes need a pin_memory() method), and use "
               : "DataLoader(..., pin_memory=True) and ");
    dr_say_stoker(
        c, out, "stoker.DataLoader(..., device=\"cuda\") returns batches that are already on the GPU",
        "device=\"cuda\" returns batches that are already on the GPU");
    predict(f, cost, out);
    return true;
}

const struct dr_rule dr_rule_pageable = {
    .code = "ST216",
    .name = "pageable-copies",
    .title = "Copies to the GPU come from pageable memory",
    .needs = "copy.pageable",
    .check = check,
    .symptoms = "Batches are not pinned; .to(device) takes a visible part of the step, and kernels "
                "start only after it.",
    .why = "The GPU can read only pinned memory directly. From pageable memory the driver copies piece "
           "by piece through its own buffer while the host waits, and non_blocking has no effect.",
    .fix_torch = "DataLoader(dataset, pin_memory=True)\n"
                 "images = images.to(device, non_blocking=True)\n"
                 "Do not call .pin_memory() in the training loop: that copy is on the critical path "
                 "too.",
    .fix_stoker = "stoker.DataLoader(dataset, device=\"cuda\")   # or pin_memory=True: pinned without "
                  "a copy",
    .how_to_check = "In the next report, the share of pageable copies is 0, and copies take almost no "
                    "time in a step.",
};
