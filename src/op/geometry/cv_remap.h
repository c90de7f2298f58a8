/* cv_remap.h - images whose pixels come from given points, with OpenCV's arithmetic, for Albumentations'
 * distortions
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_CV_REMAP_H
#define ST_OP_GEOMETRY_CV_REMAP_H

#include "op/geometry/cv_warp.h"

/* Where the pixels of the result come from: `row` writes a point for each pixel of row y. */
struct st_cv_points_of {
    void (*row)(const void *by, int32_t y, float *xs, float *ys);
    const void *by;
};

/* An entry of the parameter table for a struct with a member `points`. */
#define ST_CV_REMAP_POINTS(owner)                                                                       \
    {                                                                                                   \
        .name = "points", .type = ST_PARAM_BOOL, .offset = offsetof(owner, points), .max = 1,           \
        .help = "key points follow to whole pixels: those that come from near them"                     \
    }

/* Above 0 if there is anything that a distortion could move, 0 if its points need not be made. Key
 * points without `points` are an error. */
int st_cv_remap_has_work(const struct st_image *image, bool points, const char *op,
                         struct stoker_error *err);
/* Moves the pixels of an image of the same size. Boxes become those around the pixels that come from
 * inside of them, in whole pixels, and stay as they are if there are none, as in Albumentations. So do
 * key points, as in its method "direct". */
int st_image_cv_remap(struct st_image *image, const struct st_cv_points_of *points,
                      const struct st_cv_warp_params *params, const char *op, struct stoker_error *err);

#endif
