/* pcie.c - ST217: the PCIe link to the GPU is saturated
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double by_counter = f->gpu_pcie_in / f->limits.pcie_limit;
    const double by_bytes = f->copy_bytes / f->step / f->limits.pcie_limit;
    const double used = dr_known(by_counter) ? by_counter : by_bytes;
    if (!f->has_gpu || !(used >= DR_PCIE_FULL))
        return false;
    struct dr_text rate, limit, size;
    /* The time that the link is busy. The host's time in copies tells nothing: from pinned memory, it
     * only starts them. */
    out->weight = fmin(used / DR_PCIE_REACHED, 0.95);
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence, "each step copies %s to the GPU: %s/s of the %s/s that its link can carry",
           dr_bytes_text(&size, f->copy_bytes), dr_bytes_text(&rate, used * f->limits.pcie_limit),
           dr_bytes_text(&limit, f->limits.pcie_limit));
    DR_SAY(out->advice,
           "copy uint8 and convert on the GPU, images.to(device).float().div_(255): a quarter of the "
           "bytes");
    dr_say_stoker(c, out,
                  "stoker.DataLoader(..., device=\"cuda\") copies uint8 rows; the GPU resizes, "
                  "normalizes and casts",
                  "device=\"cuda\" copies uint8 rows; the GPU resizes, normalizes and casts");
    dr_gain_by_share(out, out->weight * 0.75, NAN, "a quarter of the bytes, if they are float32 now");
    return true;
}

const struct dr_rule dr_rule_pcie = {
    .code = "ST217",
    .name = "pcie",
    .title = "The PCIe link to the GPU is saturated",
    .needs = "gpu.pcie_in",
    .check = check,
    .symptoms = "The bytes copied to the GPU per second are close to what its link can carry.",
    .why = "Float images have four times the bytes of the uint8 data they were made from. A link that "
           "runs at a lower generation or width than it could (wrong slot, power saving) saturates "
           "sooner.",
    .fix_torch = "Keep images as uint8 in the loader; on the GPU: images = images.to(device, "
                 "non_blocking=True).float() / 255\n"
                 "`nvidia-smi -q -d PCIE` shows the generation and width of the link.",
    .fix_stoker = "stoker.DataLoader(dataset, device=\"cuda\", dtype=\"bfloat16\")",
    .how_to_check = "gpu.pcie_in falls to a quarter; `stoker doctor` shows the link.",
};
