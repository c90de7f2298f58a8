/* decode.c - ST227: decoding takes most of the workers' time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

/* Most of what is decoded is not in the samples, and the transforms themselves reduce it (those that
 * work on what is cropped away later have a finding of their own): both would be quick on smaller
 * files. */
static bool is_far_too_large(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    return dr_discarded_share(c, DR_STAGE_DECODE) >= DR_DISCARDED_MATTERS &&
           !(dr_discarded_share(c, DR_STAGE_TRANSFORM) >= DR_DISCARDED_MATTERS) &&
           f->stage_share[DR_STAGE_DECODE] >= DR_DECODE_LARGE &&
           f->stage_share[DR_STAGE_DECODE] + f->stage_share[DR_STAGE_TRANSFORM] > DR_STAGE_HEAVY;
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double limit = is_far_too_large(c) ? DR_DECODE_LARGE - 0.001 : DR_STAGE_HEAVY;
    if (!dr_heavy_stage(c, out, DR_STAGE_DECODE, limit, ""))
        return false;
    char surplus[96] = "";
    if (dr_gain_by_size(c, out, DR_STAGE_DECODE))
        DR_SAY(surplus, "; %.0f %% of what is decoded is not part of the samples",
               100 * dr_discarded_share(c, DR_STAGE_DECODE));
    DR_SAY(out->advice,
           "store images at the size you need (resize once to about 1.15 x the crop%s), or decode JPEG "
           "at 1/2 scale with Image.open(path).draft(\"RGB\", (w, h)) before the crop%s",
           surplus, f->has_gpu ? "; or torchvision.io.decode_jpeg(..., device=\"cuda\")" : "");
    dr_say_stoker(c, out,
                  "stoker.DataLoader decodes only the part of a JPEG that the crop needs; stoker "
                  "pack --crop-ready makes that cheaper",
                  "stoker pack SRC DST --crop-ready (same pixels), or --resize N; "
                  "device=\"cuda\" on a GPU with JPEG decoders");
    return true;
}

const struct dr_rule dr_rule_decode = {
    .code = "ST227",
    .name = "slow-decode",
    .title = "Decoding takes most of the workers' time",
    .needs = "step.stall,batch.stages",
    .check = check,
    .symptoms = "More than half of the workers' time is spent on decoding images, sound or video.",
    .why = "The cost of decoding depends on the size of the stored image, not of the crop. Photographs "
           "of 4 megapixels have 80 times the pixels of a 224 x 224 crop.",
    .fix_torch = "Resize the dataset once, offline; Image.draft for JPEG; "
                 "torchvision.io.decode_jpeg(data, device=\"cuda\") in the training process; uint8 "
                 "arrays where disk space allows.",
    .fix_stoker = "stoker pack SRC DST --resize 256 --crop-ready\n"
                  "stoker.DataLoader(dataset)   # decodes only the region that the crop needs",
    .how_to_check = "`stoker info DATA` shows the stored sizes; the share of decoding falls in the "
                    "next report.",
};
