/* chosen_crop.c - crops that are chosen by a mask, or by boxes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/chosen_crop.h"

int st_image_crop_chosen(const void *self, struct st_rng *rng, struct st_image *image, bool is_guide,
                         int (*choose)(const void *self, struct st_rng *rng, struct st_image *guide,
                                       struct st_region *out, struct stoker_error *err),
                         const char *guide, struct stoker_error *err)
{
    struct st_region *crop = image->chosen;
    if (!crop)
        return st_fail(err, STOKER_EINVAL, "the crop depends on the %s, and there is an image alone",
                       guide);
    const int rc = is_guide ? choose(self, rng, image, crop, err) : STOKER_OK;
    return rc < 0 ? rc : st_image_crop(image, *crop, err);
}
