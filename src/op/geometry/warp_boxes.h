/* warp_boxes.h - boxes follow rotations, affine and perspective maps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_WARP_BOXES_H
#define ST_OP_GEOMETRY_WARP_BOXES_H

#include "op/geometry/warp.h"

/* Moves an image of boxes: each box becomes the one around its moved corners, cut off at the border. */
int st_boxes_warp(struct st_image *image, const struct st_warp *warp, const char *op,
                  struct stoker_error *err);

#endif
