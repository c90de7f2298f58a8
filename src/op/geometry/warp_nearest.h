/* warp_nearest.h - affine maps that take the nearest pixel, in the number formats of Pillow
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_WARP_NEAREST_H
#define ST_OP_GEOMETRY_WARP_NEAREST_H

#include "base/mem.h"
#include "op/geometry/warp_rows.h"

/* `map` has 6 numbers; `fill` is a row of pixels for what comes from outside `in`. False if there is no
 * memory. */
bool st_warp_nearest(const struct st_warp_rows *rows, const double *map, const struct st_view *in,
                     const uint8_t *fill, struct st_arena *arena, const struct st_view *out);

#endif
