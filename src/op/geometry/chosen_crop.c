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
    struct st_choices *choices = &image->work->choices;
    const struct st_region *known = st_choice_of(choices, self);
    struct st_region region;
    if (known)
        return st_image_crop(image, *known, err);
    if (!choices->guided)
        return st_fail(err, STOKER_EINVAL, "the part is chosen by %s, which these samples do not have",
                       guide);
    if (!is_guide) /* an image alone, to see whether JPEG hardware can decode it */
        return st_fail(err, STOKER_EUNSUPPORTED, "%s must come before the image", guide);
    int rc = choose(self, rng, image, &region, err);
    if (rc >= 0)
        rc = st_choice_add(choices, self, region, err);
    return rc < 0 ? rc : st_image_crop(image, region, err);
}
