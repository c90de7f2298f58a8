/* warp_nearest.c - affine maps that take the nearest pixel, in the number formats of Pillow
 *
 * Pillow adds a map's numbers up from pixel to pixel: in 16.16 fixed point while all places fit into it,
 * otherwise as doubles. So the sums round differently from those of its other filters.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_nearest.h"

#include "op/geometry/warp_span.h"

#include <math.h>
#include <string.h>

enum { FIXED_ONE = 1 << 16, FIXED_SIDE = 1 << 15 };

static const uint8_t *pixel_at(const struct st_view *in, int32_t x, int32_t y)
{
    return st_row(in, y) + (ptrdiff_t)x * in->channels;
}

/* ---- only scaled and moved ---------------------------------------------------------------------- */

/* A part of a row, and its surroundings. */
static void gather_part(const struct st_warp_rows *rows, const struct st_view *out, int32_t y,
                        struct st_warp_span part, const uint8_t *from, const int32_t *at,
                        const uint8_t *fill)
{
    st_warp_fill(out, y, 0, part.begin, fill);
    st_warp_fill(out, y, part.end, out->width, fill);
    rows->gather(from, at + part.begin, part.end - part.begin, out->channels,
                 st_row(out, y) + (ptrdiff_t)part.begin * out->channels);
}

void st_warp_places(double step, double move, int32_t count, int32_t limit, int32_t *place)
{
    double from = move + step * 0.5;
    for (int32_t k = 0; k < count; k++, from += step)
        place[k] = from >= 0 && from < limit ? (int32_t)from : -1;
}

/* The last `count` places of `before` more; NULL: out of memory. */
static int32_t *places_from(double step, double move, uint32_t before, int32_t count, int32_t limit,
                            struct st_arena *arena)
{
    int32_t *place = st_arena_take(arena, ((uint64_t)before + (uint64_t)count) * sizeof *place);
    if (!place)
        return NULL;
    st_warp_places(step, move, (int32_t)before + count, limit, place);
    return place + before;
}

static bool scale(const struct st_warp_rows *rows, const struct st_pixel_map *by,
                  const struct st_view *in, const uint8_t *fill, struct st_arena *arena,
                  const struct st_view *out)
{
    const double *map = by->map;
    int32_t *at = places_from(map[0], map[2], by->window.x, out->width, in->width, arena);
    const int32_t *row = places_from(map[4], map[5], by->window.y, out->height, in->height, arena);
    if (!at || !row)
        return false;
    struct st_warp_span part = {0, out->width};
    while (part.begin < part.end && at[part.begin] < 0)
        part.begin++;
    while (part.begin < part.end && at[part.end - 1] < 0)
        part.end--;
    for (int32_t x = part.begin; x < part.end; x++)
        at[x] *= in->channels;
    for (int32_t y = 0; y < out->height; y++)
        if (row[y] >= 0)
            gather_part(rows, out, y, part, st_row(in, row[y]), at, fill);
        else
            st_warp_fill(out, y, 0, out->width, fill);
    return true;
}

/* ---- in fixed point ----------------------------------------------------------------------------- */

static bool corner_fits(const double *map, double x, double y)
{
    return fabs(x * map[0] + y * map[1] + map[2]) < FIXED_SIDE &&
           fabs(x * map[3] + y * map[4] + map[5]) < FIXED_SIDE;
}

static bool fits(const double *map, int32_t width, int32_t height)
{
    return corner_fits(map, 0, 0) && corner_fits(map, width, height) && corner_fits(map, 0, height) &&
           corner_fits(map, width, 0);
}

static int64_t fixed(double value) { return (int64_t)floor(value * FIXED_ONE + 0.5); }

/* a / b rounded down; b > 0 */
static int64_t quotient(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* Leaves the pixels x for which at + x step is from 0 to `limit` - 1. */
static void keep_inside(struct st_warp_span *part, int64_t at, int64_t step, int64_t limit)
{
    int64_t first = 0, last = INT32_MAX;
    if (step == 0 && (at < 0 || at >= limit))
        last = -1;
    if (step > 0) {
        first = quotient(-at + step - 1, step);
        last = quotient(limit - 1 - at, step);
    }
    if (step < 0) {
        first = quotient(at - (limit - 1) - step - 1, -step);
        last = quotient(at, -step);
    }
    if (first > part->begin)
        part->begin = first < part->end ? (int32_t)first : part->end;
    if (last < part->end - 1)
        part->end = last >= part->begin ? (int32_t)last + 1 : part->begin;
}

int64_t st_warp_fixed_side(int32_t length)
{
    return (int64_t)(length < FIXED_SIDE ? length : FIXED_SIDE) * FIXED_ONE;
}

struct st_warp_fixed st_warp_fixed_of(const double *map)
{
    return (struct st_warp_fixed){.at = {fixed(map[2] + map[0] * 0.5 + map[1] * 0.5),
                                         fixed(map[5] + map[3] * 0.5 + map[4] * 0.5)},
                                  .right = {fixed(map[0]), fixed(map[3])},
                                  .down = {fixed(map[1]), fixed(map[4])}};
}

static void move_fixed(const struct st_warp_rows *rows, const struct st_pixel_map *by,
                       const struct st_view *in, const uint8_t *fill, const struct st_view *out)
{
    const struct st_warp_fixed f = st_warp_fixed_of(by->map);
    const int64_t right = f.right[0], down = f.right[1];
    int64_t x = f.at[0] + by->window.x * right + by->window.y * f.down[0];
    int64_t y = f.at[1] + by->window.x * down + by->window.y * f.down[1];
    for (int32_t row = 0; row < out->height; row++, x += f.down[0], y += f.down[1]) {
        struct st_warp_span part = {0, out->width};
        keep_inside(&part, x, right, st_warp_fixed_side(in->width));
        keep_inside(&part, y, down, st_warp_fixed_side(in->height));
        st_warp_fill(out, row, 0, part.begin, fill);
        st_warp_fill(out, row, part.end, out->width, fill);
        if (part.begin == part.end)
            continue;
        const struct st_warp_steps steps = {(int32_t)(x + part.begin * right),
                                            (int32_t)(y + part.begin * down), (int32_t)right,
                                            (int32_t)down};
        rows->fixed(in, steps, part.end - part.begin,
                    st_row(out, row) + (ptrdiff_t)part.begin * in->channels);
    }
}

/* ---- in doubles --------------------------------------------------------------------------------- */

static void move_far(const double *map, const struct st_view *in, const uint8_t *fill,
                     const struct st_view *out)
{
    struct st_point start = {map[2] + map[1] * 0.5 + map[0] * 0.5, map[5] + map[4] * 0.5 + map[3] * 0.5};
    for (int32_t row = 0; row < out->height; row++) {
        uint8_t *to = st_row(out, row);
        struct st_point from = start;
        st_warp_fill(out, row, 0, out->width, fill);
        for (int32_t k = 0; k < out->width; k++, to += in->channels) {
            if (from.x >= 0 && from.x < in->width && from.y >= 0 && from.y < in->height)
                memcpy(to, pixel_at(in, (int32_t)from.x, (int32_t)from.y), (size_t)in->channels);
            from.x += map[0];
            from.y += map[3];
        }
        start.x += map[1];
        start.y += map[4];
    }
}

enum st_nearest st_warp_nearest_way(const double *map, int32_t width, int32_t height)
{
    if (map[1] == 0 && map[3] == 0)
        return ST_NEAREST_PLACES;
    return fits(map, width, height) ? ST_NEAREST_FIXED : ST_NEAREST_FAR;
}

bool st_warp_nearest(const struct st_warp_rows *rows, const struct st_pixel_map *by,
                     const struct st_view *in, const uint8_t *fill, struct st_arena *arena,
                     const struct st_view *out)
{
    const bool part = by->window.width;
    const enum st_nearest way = st_warp_nearest_way(by->map, part ? in->width : out->width,
                                                    part ? in->height : out->height);
    if (way == ST_NEAREST_PLACES)
        return scale(rows, by, in, fill, arena, out);
    if (way == ST_NEAREST_FIXED)
        move_fixed(rows, by, in, fill, out);
    else
        move_far(by->map, in, fill, out);
    return true;
}
