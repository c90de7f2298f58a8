/* precision.c - ST304: matrix products run without tensor cores
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!f->has_gpu || dr_late(c) || f->amp != 0 || dr_above(f->tf32, 0) ||
        !(f->gpu_tensor < DR_TENSOR_NONE) || !(f->gpu_sm >= DR_SM_WORKING) ||
        !(f->gpu_capability >= DR_CAPABILITY))
        return false;
    out->weight = 0.5 * f->gpu_sm;
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "the multiprocessors are busy %.0f %% of the time, but the tensor cores only %.1f %%: "
           "everything runs in float32",
           f->gpu_sm * 100, f->gpu_tensor * 100);
    DR_SAY(out->advice, "%s",
           f->gpu_capability >= 8
               ? "torch.set_float32_matmul_precision(\"high\") (one line), or "
                 "torch.autocast(\"cuda\", dtype=torch.bfloat16)"
               : "torch.autocast(\"cuda\", dtype=torch.float16) with torch.amp.GradScaler");
    DR_SAY(out->basis, "depends on the model: measure it");
    return true;
}

const struct dr_rule dr_rule_precision = {
    .code = "ST304",
    .name = "no-mixed-precision",
    .title = "Matrix products run without tensor cores",
    .needs = "gpu.tensor,gpu.sm_active,amp",
    .check = check,
    .symptoms = "The GPU computes, but its tensor cores are idle; neither autocast nor TF32 was seen.",
    .why = "Tensor cores compute matrix products in bfloat16, float16 or TF32 many times faster than "
           "the float32 units.",
    .fix_torch = "torch.set_float32_matmul_precision(\"high\")\n"
                 "with torch.autocast(\"cuda\", dtype=torch.bfloat16):\n"
                 "    loss = criterion(model(images), labels)",
    .fix_stoker = "stoker.DataLoader(dataset, device=\"cuda\", dtype=\"bfloat16\", "
                  "memory_format=\"channels_last\")",
    .how_to_check = "gpu.tensor rises. The loader then has to deliver more samples per second: run "
                    "again.",
};
