/* augment.c - ST226: augmentation takes most of the workers' time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_heavy_stage(c, out, DR_STAGE_TRANSFORM, DR_STAGE_HEAVY, c->facts->loader.transform))
        return false;
    char first[160] = "crop and resize before colour and blur";
    if (dr_gain_by_size(c, out, DR_STAGE_TRANSFORM))
        DR_SAY(first,
               "crop and resize first (%.0f %% of this time is spent on data that are cropped away or "
               "resized later)",
               100 * dr_discarded_share(c, DR_STAGE_TRANSFORM));
    DR_SAY(out->advice,
           "%s, use torchvision.transforms.v2 on uint8 tensors, %s, and do everything that is not "
           "random once, offline",
           first,
           f->has_gpu ? "transform whole batches on the GPU after the copy"
                      : "use fewer or cheaper ops");
    dr_say_stoker(
        c, out,
        f->has_gpu ? "stoker.DataLoader(..., device=\"cuda\") runs torchvision's ops on the GPU for "
                     "whole batches, with the same bytes as on the CPU"
                   : "stoker.DataLoader runs torchvision's ops in its engine, fused and without Python",
        f->has_gpu ? "device=\"cuda\" moves these ops to the GPU"
                   : "loader.explain() names the ops that run in Python");
    return true;
}

const struct dr_rule dr_rule_augment = {
    .code = "ST226",
    .name = "heavy-augmentation",
    .title = "Augmentation takes most of the workers' time",
    .needs = "step.stall,batch.stages",
    .check = check,
    .symptoms = "More than half of the workers' time is spent in the transforms of the dataset.",
    .why = "Ops run in Python, sample by sample, each with a pass over the image; ops before a crop "
           "work on pixels that are thrown away.",
    .fix_torch = "v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), ...])   # crop "
                 "first, uint8, float last\n"
                 "images = augment(images.to(device))                                       # v2 ops "
                 "take whole batches on the GPU",
    .fix_stoker = "stoker.DataLoader(dataset, device=\"cuda\")   # resize, colour, blur, normalize on "
                  "the GPU, whole batches",
    .how_to_check = "The share of augmentation in the workers' time falls; `loader.explain()` tells "
                    "where each op runs.",
};
