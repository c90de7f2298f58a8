/* sides.h - the size of a resized image of which one side is given
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_RESIZE_SIDES_H
#define ST_OP_RESIZE_SIDES_H

#include <stdbool.h>
#include <stdint.h>

/* torchvision's size if the shorter side is to be `side` long, or less where the longer one would exceed
 * `longest` (0: no limit). False if the longer one is too long for any image. */
bool st_resize_side(int32_t side, int32_t longest, int32_t width, int32_t height, int32_t *out_width,
                    int32_t *out_height);

#endif
