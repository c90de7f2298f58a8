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

static bool scale(const struct st_warp_rows *rows, const double *map, const struct st_view *in,
                  const uint8_t *fill, struct st_arena *arena, const struct st_view *out)
{
    int32_t *at = st_arena_take(arena, (uint64_t)out->width * sizeof *at);
    if (!at)
        return false;
    struct st_warp_span part = {out->width, 0};
    double from = map[2] + map[0] * 0.5;
    for (int32_t x = 0; x < out->width; x++, from += map[0]) {
        at[x] = 0;
        if (!(from >= 0 && from < in->width))
            continue;
        at[x] = (int32_t)from * in->channels;
        part.begin = x < part.begin ? x : part.begin;
        part.end = x + 1;
    }
    from = map[5] + map[4] * 0.5;
    for (int32_t y = 0; y < out->height; y++, from += map[4])
        if (part.begin < part.end && from >= 0 && from < in->height)
            gather_part(rows, out, y, part, st_row(in, (int32_t)from), at, fill);
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

static bool fits(const double *map, const struct st_view *out)
{
    return corner_fits(map, 0, 0) && corner_fits(map, out->width, out->height) &&
           corner_fits(map, 0, out->height) && corner_fits(map, out->width, 0);
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

static int64_t side(int32_t length)
{
    return (int64_t)(length < FIXED_SIDE ? length : FIXED_SIDE) * FIXED_ONE;
}

static void move_fixed(const struct st_warp_rows *rows, const double *map, const struct st_view *in,
                       const uint8_t *fill, const struct st_view *out)
{
    const int64_t right = fixed(map[0]), down = fixed(map[3]);
    const int64_t next_x = fixed(map[1]), next_y = fixed(map[4]);
    int64_t x = fixed(map[2] + map[0] * 0.5 + map[1] * 0.5);
    int64_t y = fixed(map[5] + map[3] * 0.5 + map[4] * 0.5);
    for (int32_t row = 0; row < out->height; row++, x += next_x, y += next_y) {
        struct st_warp_span part = {0, out->width};
        keep_inside(&part, x, right, side(in->width));
        keep_inside(&part, y, down, side(in->height));
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

bool st_warp_nearest(const struct st_warp_rows *rows, const double *map, const struct st_view *in,
                     const uint8_t *fill, struct st_arena *arena, const struct st_view *out)
{
    if (map[1] == 0 && map[3] == 0)
        return scale(rows, map, in, fill, arena, out);
    if (fits(map, out))
        move_fixed(rows, map, in, fill, out);
    else
        move_far(map, in, fill, out);
    return true;
}
