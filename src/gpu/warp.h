/* warp.h - maps of pixels on a GPU, with the same results as op/geometry/
 *
 *   here                 specification
 *   st_warp_point        op/geometry/warp_rows.h: st_warp_source
 *   st_between ...       op/geometry/warp_rows.h: st_warp_linear, st_warp_cubic, st_warp_byte
 *   st_bilinear ...      op/geometry/warp_pixels.c: put_bilinear, put_bicubic
 *   st_fixed_pixel ...   op/geometry/warp_nearest.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_WARP_H
#define ST_GPU_WARP_H

#include "gpu/stage.h"

#include <math.h>

/* A map, and the image that the previous stage left. */
struct st_moved {
    const struct st_job_warp *warp;
    const int32_t *places;
    const uint32_t *plane;
    int32_t width, height;
};

ST_BOTH struct st_moved st_moved_of(const struct st_gpu_batch *batch, uint32_t row,
                                    const struct st_job_pending *op)
{
    struct st_moved moved;
    moved.warp = (const struct st_job_warp *)(const void *)(batch->raw + op->more);
    moved.places = (const int32_t *)(const void *)(batch->raw + moved.warp->places);
    moved.plane = st_plane(batch, row, batch->stage - 1);
    moved.width = batch->width;
    moved.height = batch->height;
    return moved;
}

ST_BOTH uint32_t st_moved_at(const struct st_moved *moved, int32_t x, int32_t y)
{
    return st_load(moved->plane + (int64_t)y * moved->width + x);
}

ST_BOTH int32_t st_inside(int32_t at, int32_t count)
{
    return at < 0 ? 0 : at < count ? at : count - 1;
}

/* ---- nearest ----------------------------------------------------------------------------------- */

ST_BOTH uint32_t st_places_pixel(const struct st_moved *moved, int32_t x, int32_t y)
{
    const int32_t column = (int32_t)st_load(moved->places + x);
    const int32_t row = (int32_t)st_load(moved->places + moved->width + y);
    return column < 0 || row < 0 ? moved->warp->fill : st_moved_at(moved, column, row);
}

ST_BOTH uint32_t st_fixed_pixel(const struct st_moved *moved, int32_t x, int32_t y)
{
    const struct st_job_warp *w = moved->warp;
    const int64_t column = w->at[0] + y * w->down[0] + x * w->right[0];
    const int64_t row = w->at[1] + y * w->down[1] + x * w->right[1];
    return column < 0 || column >= w->limit[0] || row < 0 || row >= w->limit[1]
               ? w->fill
               : st_moved_at(moved, (int32_t)(column >> 16), (int32_t)(row >> 16));
}

/* ---- in doubles -------------------------------------------------------------------------------- */

struct st_warp_point {
    double x, y;
};

ST_BOTH struct st_warp_point st_warp_point(const struct st_job_warp *warp, int32_t x, int32_t y)
{
    const double *map = warp->map;
    const double right = x + 0.5, down = y + 0.5;
    struct st_warp_point p;
    p.x = map[0] * right + map[1] * down + map[2];
    p.y = map[3] * right + map[4] * down + map[5];
    if (warp->perspective) {
        const double by = map[6] * right + map[7] * down + 1;
        p.x = p.x / by;
        p.y = p.y / by;
    }
    return p;
}

ST_BOTH double st_between(int32_t a, int32_t b, double by) { return a + (b - a) * by; }

ST_BOTH double st_cubic(double a, double b, double c, double d, double by)
{
    const double slope = -a + c, bend = 2 * (a - b) + c - d, twist = -a + b - c + d;
    return b + by * (slope + by * (bend + by * twist));
}

ST_BOTH uint32_t st_bilinear(const struct st_moved *moved, struct st_warp_point from)
{
    const double x = floor(from.x - 0.5), y = floor(from.y - 0.5);
    const double right = from.x - 0.5 - x, down = from.y - 0.5 - y;
    const int32_t x0 = st_inside((int32_t)x, moved->width);
    const int32_t x1 = st_inside((int32_t)x + 1, moved->width);
    const int32_t y0 = st_inside((int32_t)y, moved->height);
    const int32_t y1 = st_inside((int32_t)y + 1, moved->height);
    const uint32_t a = st_moved_at(moved, x0, y0), b = st_moved_at(moved, x1, y0),
                   c = st_moved_at(moved, x0, y1), d = st_moved_at(moved, x1, y1);
    uint32_t out = 0;
    ST_UNROLL
    for (int32_t k = 0; k < ST_RGB; k++) {
        const double above = st_between((int32_t)st_byte(a, k), (int32_t)st_byte(b, k), right);
        const double below = st_between((int32_t)st_byte(c, k), (int32_t)st_byte(d, k), right);
        out |= (uint32_t)(int32_t)(above + (below - above) * down) << (8 * k);
    }
    return out;
}

ST_BOTH uint32_t st_bicubic(const struct st_moved *moved, struct st_warp_point from)
{
    const double x = floor(from.x - 0.5), y = floor(from.y - 0.5);
    const double right = from.x - 0.5 - x, down = from.y - 0.5 - y;
    double row[4][ST_RGB];
    uint32_t out = 0;
    ST_UNROLL
    for (int32_t j = 0; j < 4; j++) {
        const int32_t line = st_inside((int32_t)y - 1 + j, moved->height);
        uint32_t px[4];
        ST_UNROLL
        for (int32_t i = 0; i < 4; i++)
            px[i] = st_moved_at(moved, st_inside((int32_t)x - 1 + i, moved->width), line);
        ST_UNROLL
        for (int32_t k = 0; k < ST_RGB; k++)
            row[j][k] = st_cubic(st_byte(px[0], k), st_byte(px[1], k), st_byte(px[2], k),
                                 st_byte(px[3], k), right);
    }
    ST_UNROLL
    for (int32_t k = 0; k < ST_RGB; k++) {
        const double value = st_cubic(row[0][k], row[1][k], row[2][k], row[3][k], down);
        out |= (uint32_t)(value <= 0 ? 0 : value >= 255 ? 255 : (int32_t)value) << (8 * k);
    }
    return out;
}

ST_BOTH uint32_t st_point_pixel(const struct st_moved *moved, int32_t x, int32_t y)
{
    const struct st_warp_point from = st_warp_point(moved->warp, x, y);
    const uint32_t how = moved->warp->how;
    if (!(from.x >= 0 && from.x < moved->width && from.y >= 0 && from.y < moved->height))
        return moved->warp->fill;
    return how == ST_JOB_WARP_BILINEAR  ? st_bilinear(moved, from)
           : how == ST_JOB_WARP_BICUBIC ? st_bicubic(moved, from)
                                        : st_moved_at(moved, (int32_t)from.x, (int32_t)from.y);
}

/* Pixel `x`, `y` of the result. */
ST_RARE uint32_t st_warped_pixel(const struct st_gpu_batch *batch, uint32_t row,
                                 const struct st_job_pending *op, int32_t x, int32_t y)
{
    const struct st_moved moved = st_moved_of(batch, row, op);
    if (moved.warp->how == ST_JOB_WARP_PLACES)
        return st_places_pixel(&moved, x, y);
    return moved.warp->how == ST_JOB_WARP_FIXED ? st_fixed_pixel(&moved, x, y)
                                                : st_point_pixel(&moved, x, y);
}

ST_BOTH void st_make_warped(const struct st_gpu_batch *batch, struct st_tile *tile,
                            const struct st_spot *spot, const struct st_job_pending *op, uint32_t thread)
{
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    if (lane >= spot->width)
        return;
    ST_ROLLED
    for (int32_t y = warp; y < spot->height; y += ST_GPU_WARPS)
        *st_out_at(tile, spot, lane, y) =
            st_warped_pixel(batch, spot->row, op, spot->x + lane, spot->y + y);
}

/* What is to be mirrored and flipped after a warp is so as soon as it is made. */
ST_BOTH void st_turn_spot(const struct st_gpu_batch *batch, struct st_spot *spot,
                          const struct st_job_pending *op)
{
    const struct st_job_warp *warp = (const struct st_job_warp *)(const void *)(batch->raw + op->more);
    st_spot_turn(batch, spot, warp->mirror, warp->flip);
}

#endif
