/* maps.h - the maps of rotations, affine and perspective transforms, from the numbers that were drawn
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_MAPS_H
#define ST_OP_GEOMETRY_MAPS_H

#include "op/geometry/warp.h"

/* These set everything but `filter` and `fill`. */

/* Pillow's Image.rotate: by `angle` degrees, counter-clockwise, around `centre` (x, y; NULL: the
 * image's). With `expand` the result is as large as the turned image. An error if that is no size. */
int st_warp_rotation(struct st_warp *warp, double angle, bool expand, const double *centre,
                     int32_t width, int32_t height, const char *op, struct stoker_error *err);

/* torchvision's affine: turned clockwise, scaled and sheared around `centre`, then moved. */
struct st_affine {
    double angle, scale;
    double move[2], shear[2]; /* in pixels, in degrees */
};
void st_warp_affine(struct st_warp *warp, const struct st_affine *affine, const double *centre,
                    int32_t width, int32_t height);

/* torchvision's perspective: the corners of the image, clockwise from the upper left, are moved to the
 * points (x, y) in `corners`. False if they lie on a line, so that no map does that. */
bool st_warp_perspective(struct st_warp *warp, double corners[4][2], int32_t width, int32_t height);

#endif
