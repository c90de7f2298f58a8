/* mixed_pixels.h - what the mixing of four pixels into one needs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_ELASTIC_MIXED_PIXELS_H
#define ST_OP_ELASTIC_MIXED_PIXELS_H

#include "base/pixels.h"

#include <stdbool.h>

/* The pixel at (x, y) and the rest of the way to the next ones. */
struct st_pixel_place {
    int32_t x, y;
    float right, down;
};

static inline bool st_pixel_inside(const struct st_view *in, int32_t x, int32_t y)
{
    return x >= 0 && x < in->width && y >= 0 && y < in->height;
}

static inline const uint8_t *st_pixel_at(const struct st_view *in, int32_t x, int32_t y)
{
    return st_row(in, y) + (ptrdiff_t)x * in->channels;
}

/* To the nearest integer, halves to even; of 0 to 255. */
static inline uint8_t st_pixel_rounded(float value)
{
    const float least = 0x1.8p23f; /* has no fraction */
    return (uint8_t)(int32_t)((value + least) - least);
}

#endif
