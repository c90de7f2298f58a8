/* box_blur.c - means over boxes, repeated: Pillow's BoxBlur and GaussianBlur
 *
 * Values are moved into a strip, 64 of them side by side, along which the box moves: columns as they
 * are, and rows turned by 90 degrees. Each step adds the value that enters the box and subtracts the one
 * that leaves it, in all 64 places at once, and a strip stays in the cache for all passes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/filter/box_blur.h"

#include <math.h>

enum { SIDE = ST_BOX_SIDE };

static struct st_box box_of(float radius)
{
    struct st_box box = {.radius = (int32_t)radius};
    box.whole = (uint32_t)((float)(1u << 24) / (radius * 2 + 1));
    box.ends = ((1u << 24) - (uint32_t)(box.radius * 2 + 1) * box.whole) / 2;
    return box;
}

float st_box_gaussian_radius(float sigma, bool fused)
{
    const float variance = sigma * sigma / ST_BOX_GAUSSIAN_PASSES;
    const float length = (float)sqrt(12.0 * variance + 1.0);
    const float whole = (float)floor((length - 1.0) / 2.0), next = whole + 1;
    const float below = 6 * (variance - next * next);
    const float apart = whole * next - 3 * variance;
    const float at_once = (float)((double)whole * next - 3.0 * variance);
    const float radius = whole + (2 * whole + 1) * apart / below;
    if (fused && box_of(radius).whole != box_of(whole + (2 * whole + 1) * at_once / below).whole)
        return -1;
    return radius;
}

struct blur {
    const struct st_colour_rows *rows;
    int32_t passes;
    uint8_t *strip[2];
};

/* All passes along `strip[0]`; returns the one that has the result. */
static uint8_t *blur_passes(const struct blur *blur, int32_t count, struct st_box box)
{
    for (int32_t pass = 0; pass < blur->passes; pass++)
        blur->rows->box(blur->strip[~pass & 1], blur->strip[pass & 1], count, box);
    return blur->strip[blur->passes & 1];
}

static void blur_down(const struct blur *blur, const struct st_view *pixels, struct st_box box)
{
    const ptrdiff_t bytes = (ptrdiff_t)pixels->width * pixels->channels;
    for (ptrdiff_t x = 0; x < bytes; x += SIDE) {
        const size_t part = (size_t)(bytes - x < SIDE ? bytes - x : SIDE);
        for (int32_t y = 0; y < pixels->height; y++)
            memcpy(blur->strip[0] + (ptrdiff_t)y * SIDE, st_row(pixels, y) + x, part);
        const uint8_t *made = blur_passes(blur, pixels->height, box);
        for (int32_t y = 0; y < pixels->height; y++)
            memcpy(st_row(pixels, y) + x, made + (ptrdiff_t)y * SIDE, part);
    }
}

/* Between rows of the image and a strip, by pixels; `channels` is constant where this is inlined. */
static inline void turn_rows(const struct st_view *pixels, int32_t y, int32_t rows, uint8_t *strip,
                             bool back, size_t channels)
{
    for (int32_t k = 0; k < rows; k++) {
        uint8_t *row = st_row(pixels, y + k), *place = strip + (size_t)k * channels;
        for (int32_t x = 0; x < pixels->width; x++, row += channels, place += SIDE)
            memcpy(back ? row : place, back ? place : row, channels);
    }
}

static void turn(const struct st_view *pixels, int32_t y, int32_t rows, uint8_t *strip, bool back)
{
    if (pixels->channels == 3)
        turn_rows(pixels, y, rows, strip, back, 3);
    else
        turn_rows(pixels, y, rows, strip, back, (size_t)pixels->channels);
}

static void blur_across(const struct blur *blur, const struct st_view *pixels, struct st_box box)
{
    const int32_t most = SIDE / pixels->channels;
    for (int32_t y = 0; y < pixels->height; y += most) {
        const int32_t rows = pixels->height - y < most ? pixels->height - y : most;
        turn(pixels, y, rows, blur->strip[0], false);
        turn(pixels, y, rows, blur_passes(blur, pixels->width, box), true);
    }
}

int st_box_blur(const struct st_colour_rows *rows, float across, float down, int32_t passes,
                struct st_arena *arena, const struct st_view *pixels)
{
    const int32_t longest = pixels->width > pixels->height ? pixels->width : pixels->height;
    const uint64_t size = (uint64_t)longest * SIDE;
    struct blur blur = {.rows = rows, .passes = passes};
    for (int32_t k = 0; k < 2; k++) {
        blur.strip[k] = st_arena_take(arena, size);
        if (!blur.strip[k])
            return STOKER_ENOMEM;
    }
    memset(blur.strip[0], 0, size); /* not every strip is full */
    if (across > 0)
        blur_across(&blur, pixels, box_of(across));
    if (down > 0)
        blur_down(&blur, pixels, box_of(down));
    return STOKER_OK;
}
