/* warp_rows.h - the inner loops of warps
 *
 * One source file, compiled for each kind of CPU; all variants give the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_WARP_ROWS_H
#define ST_OP_GEOMETRY_WARP_ROWS_H

#include "base/cpu.h"
#include "base/pixels.h"

#include <string.h>

/* A part of a row of the result. */
struct st_warp_line {
    const struct st_view *in; /* less than 2 GB; 64 readable bytes after the last row */
    const double *map;        /* 8 numbers, or 6 of an affine map */
    bool perspective;
    int32_t x, y, count; /* the part begins at pixel x of row y */
    uint8_t *out;        /* pixel x */
};

/* Places in 16.16 fixed point, and the steps from one pixel to the next. */
struct st_warp_steps {
    int32_t x, y, right, down;
};

struct st_warp_rows {
    /* All pixels that the filter needs must lie inside the image. */
    void (*nearest)(const struct st_warp_line *line);
    void (*bilinear)(const struct st_warp_line *line);
    void (*bicubic)(const struct st_warp_line *line);
    /* `count` pixels at such places, which must lie inside. */
    void (*fixed)(const struct st_view *in, struct st_warp_steps steps, int32_t count, uint8_t *out);
    /* The pixels that begin at in[at[0]], in[at[1]], ... */
    void (*gather)(const uint8_t *in, const int32_t *at, int32_t count, int32_t channels, uint8_t *out);
};

/* The table for a level, or for the next lower one in this build. */
const struct st_warp_rows *st_warp_rows_for(enum st_cpu_level level);

/* Pixels `begin` to `end` of a row become those of `fill`, a whole row. */
static inline void st_warp_fill(const struct st_view *out, int32_t y, int32_t begin, int32_t end,
                                const uint8_t *fill)
{
    const ptrdiff_t first = (ptrdiff_t)begin * out->channels;
    if (begin < end)
        memcpy(st_row(out, y) + first, fill + first, (size_t)(end - begin) * (size_t)out->channels);
}

struct st_point {
    double x, y;
};

/* Where a pixel of the result comes from, in the order of operations of Pillow. */
static inline struct st_point st_warp_source(const double *map, bool perspective, int32_t x, int32_t y)
{
    const double right = x + 0.5, down = y + 0.5;
    struct st_point p = {map[0] * right + map[1] * down + map[2],
                         map[3] * right + map[4] * down + map[5]};
    if (perspective) {
        const double by = map[6] * right + map[7] * down + 1;
        p = (struct st_point){p.x / by, p.y / by};
    }
    return p;
}

static inline double st_warp_linear(int32_t a, int32_t b, double by) { return a + (b - a) * by; }

/* A cubic through b and c, `by` of the way from one to the other. */
static inline double st_warp_cubic(double a, double b, double c, double d, double by)
{
    const double slope = -a + c, bend = 2 * (a - b) + c - d, twist = -a + b - c + d;
    return b + by * (slope + by * (bend + by * twist));
}

static inline uint8_t st_warp_byte(double value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)value;
}

#endif
