/* warp_pixels.h - moves pixels by affine and perspective maps, byte for byte as Pillow's x86-64 builds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_WARP_PIXELS_H
#define ST_OP_GEOMETRY_WARP_PIXELS_H

#include "op/geometry/warp_rows.h"
#include "op/pending.h"

/* `in` is less than 2 GB, from its first row to its last, with 64 readable bytes after the last row;
 * `out` has its channels. False if there is no memory. */
bool st_warp_pixels(const struct st_warp_rows *rows, const struct st_pixel_map *by,
                    struct st_arena *arena, const struct st_view *in, const struct st_view *out);

#endif
