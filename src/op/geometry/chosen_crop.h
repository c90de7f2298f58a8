/* chosen_crop.h - crops that are chosen by a mask, or by boxes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_CHOSEN_CROP_H
#define ST_OP_GEOMETRY_CHOSEN_CROP_H

#include "op/op.h"

/* Crops an image or a target to what `choose` says for the guide, which comes first. */
int st_image_crop_chosen(const void *self, struct st_rng *rng, struct st_image *image, bool is_guide,
                         int (*choose)(const void *self, struct st_rng *rng, struct st_image *guide,
                                       struct st_region *out, struct stoker_error *err),
                         const char *guide, struct stoker_error *err);

#endif
