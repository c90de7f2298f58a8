/* warp_nearest.h - affine maps that take the nearest pixel, in the number formats of Pillow
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_WARP_NEAREST_H
#define ST_OP_GEOMETRY_WARP_NEAREST_H

#include "base/mem.h"
#include "op/geometry/warp_rows.h"
#include "op/pending.h"

/* How places are counted up for a result of this size. */
enum st_nearest {
    ST_NEAREST_PLACES, /* columns and rows only scaled and moved: each has one place */
    ST_NEAREST_FIXED,  /* in 16.16 fixed point */
    ST_NEAREST_FAR,    /* in doubles, added from pixel to pixel */
};
enum st_nearest st_warp_nearest_way(const double *map, int32_t width, int32_t height);

/* The places of `count` columns or rows; -1: outside of 0 to `limit` - 1. Those inside are neighbours.
 */
void st_warp_places(double step, double move, int32_t count, int32_t limit, int32_t *place);

/* The place of the first pixel, and the steps to the next column and row; of x, then of y. */
struct st_warp_fixed {
    int64_t at[2], right[2], down[2];
};
struct st_warp_fixed st_warp_fixed_of(const double *map);
/* Places inside an image of this side are from 0 to one less. */
int64_t st_warp_fixed_side(int32_t length);

/* By an affine map; `fill` is a row of pixels for what comes from outside `in`. `out` may be a window of
 * a result that is as large as `in`, unless the places are far. False if there is no memory. */
bool st_warp_nearest(const struct st_warp_rows *rows, const struct st_pixel_map *by,
                     const struct st_view *in, const uint8_t *fill, struct st_arena *arena,
                     const struct st_view *out);

#endif
