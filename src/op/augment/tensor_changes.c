/* tensor_changes.c - changes of images with torchvision's arithmetic for tensors of bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/augment/tensor_changes.h"

#include "op/elastic/mixed_pixels.h"

#include <math.h>
#include <string.h>

static uint8_t cut(float value)
{
    return value > 0 ? value < 255 ? (uint8_t)value : 255 : 0;
}

/* a * b + c, rounded once but for a rare case: the product of two float32 is exact in a double. */
static float fused_add(float a, float b, float c) { return (float)((double)a * b + c); }

/* value * ratio + other * (1 - ratio) */
struct blend {
    float ratio, rest;
    bool fused;
};

static struct blend blend_of(double ratio, bool fused)
{
    return (struct blend){(float)ratio, (float)(1 - ratio), fused};
}

static uint8_t blended(const struct blend *b, float value, float other)
{
    const float product = value * b->ratio;
    return cut(b->fused ? fused_add(other, b->rest, product) : product + other * b->rest);
}

/* ---- values ------------------------------------------------------------------------------------- */

/* Replaces the values of each channel. */
static void replace(const struct st_view *pixels, uint8_t table[][256])
{
    for (int32_t y = 0; y < pixels->height; y++) {
        uint8_t *row = st_row(pixels, y);
        for (int32_t x = 0; x < pixels->width; x++)
            for (int32_t c = 0; c < pixels->channels; c++, row++)
                *row = table[c][*row];
    }
}

static void replace_alike(const struct st_view *pixels, uint8_t table[4][256])
{
    for (int32_t c = 1; c < pixels->channels; c++)
        memcpy(table[c], table[0], sizeof table[0]);
    replace(pixels, table);
}

void st_tensor_brightness(const struct st_view *pixels, double factor)
{
    uint8_t table[4][256];
    for (int32_t v = 0; v < 256; v++)
        table[0][v] = cut((float)v * (float)factor);
    replace_alike(pixels, table);
}

/* The place of a value between the least and the greatest, which are `range` apart. */
static float stretched(float value, float range, bool fused)
{
    return fused ? value / (range * (float)(1.0 / 255)) : value * ((1 / range) * 255);
}

void st_tensor_autocontrast(const struct st_view *pixels, bool fused)
{
    uint8_t table[4][256], low[4] = {255, 255, 255, 255}, high[4] = {0};
    for (int32_t y = 0; y < pixels->height; y++) {
        const uint8_t *row = st_row(pixels, y);
        for (int32_t x = 0; x < pixels->width; x++)
            for (int32_t c = 0; c < pixels->channels; c++, row++) {
                low[c] = *row < low[c] ? *row : low[c];
                high[c] = *row > high[c] ? *row : high[c];
            }
    }
    for (int32_t c = 0; c < pixels->channels; c++) {
        const float range = (float)(high[c] - low[c]);
        for (int32_t v = 0; v < 256; v++)
            table[c][v] = range > 0 ? cut(stretched((float)(v - low[c]), range, fused)) : (uint8_t)v;
    }
    replace(pixels, table);
}

static float grey(const uint8_t *rgb, bool fused)
{
    const float red = rgb[0] * 0.2989f;
    return truncf(fused ? fused_add(rgb[2], 0.114f, fused_add(rgb[1], 0.587f, red))
                        : red + rgb[1] * 0.587f + rgb[2] * 0.114f);
}

void st_tensor_saturation(const struct st_view *pixels, double factor, bool fused)
{
    const struct blend b = blend_of(factor, fused);
    for (int32_t y = 0; y < pixels->height && pixels->channels == 3; y++) {
        uint8_t *rgb = st_row(pixels, y);
        for (int32_t x = 0; x < pixels->width; x++, rgb += 3) {
            const float level = grey(rgb, fused);
            for (int32_t c = 0; c < 3; c++)
                rgb[c] = blended(&b, rgb[c], level);
        }
    }
}

void st_tensor_contrast(const struct st_view *pixels, double factor, bool fused)
{
    const struct blend b = blend_of(factor, fused);
    uint8_t table[4][256];
    double sum = 0;
    for (int32_t y = 0; y < pixels->height; y++) {
        const uint8_t *row = st_row(pixels, y);
        for (int32_t x = 0; x < pixels->width; x++, row += pixels->channels)
            sum += pixels->channels == 3 ? grey(row, fused) : row[0];
    }
    const float mean = (float)sum / (float)((double)pixels->width * pixels->height);
    for (int32_t v = 0; v < 256; v++)
        table[0][v] = blended(&b, (float)v, mean);
    replace_alike(pixels, table);
}

/* ---- neighbours --------------------------------------------------------------------------------- */

/* The mean of a pixel, five times, and its eight neighbours; at the border the pixel itself. */
static int32_t smoothed(const uint8_t *const row[3], size_t i, size_t step)
{
    int32_t sum = 4 * row[1][i];
    for (int32_t k = 0; k < 3; k++)
        sum += row[k][i - step] + row[k][i] + row[k][i + step];
    return (2 * sum + 13) / 26; /* no sum is a half */
}

static uint8_t sharpened(const struct blend *b, uint8_t value, int32_t smooth)
{
    if (!b->fused)
        return blended(b, value, (float)smooth);
    return cut(fused_add((float)(smooth - value), b->rest, value));
}

bool st_tensor_sharpness(const struct st_view *pixels, double factor, bool fused, struct st_arena *arena)
{
    const struct blend b = blend_of(factor, fused);
    const int32_t width = pixels->width, height = pixels->height;
    const size_t step = (size_t)pixels->channels, count = (size_t)width * step;
    if (width <= 2 || height <= 2)
        return true;
    uint8_t *before = st_arena_take(arena, count), *now = st_arena_take(arena, count);
    if (!before || !now)
        return false;
    for (int32_t y = 0; y < height; y++) {
        uint8_t *row = st_row(pixels, y), *free_row = before;
        const bool inside = y > 0 && y < height - 1;
        memcpy(now, row, count);
        const uint8_t *const rows[3] = {before, now, inside ? st_row(pixels, y + 1) : now};
        for (size_t i = 0; i < count; i++) {
            const bool has_all = inside && i >= step && i < count - step;
            row[i] = sharpened(&b, now[i], has_all ? smoothed(rows, i, step) : now[i]);
        }
        before = now;
        now = free_row;
    }
    return true;
}

/* ---- places ------------------------------------------------------------------------------------- */

/* Where one coordinate comes from: torch's grid, from -1 to 1, back in pixels. */
struct line {
    float by_x, by_y, add, half;
};

static struct line line_of(const double map[3], int32_t side)
{
    const float half = (float)(0.5 * side);
    return (struct line){(float)map[0] / half, (float)map[1] / half, (float)map[2] / half, half};
}

static float place_on(const struct line *line, float x, float y)
{
    const float at = fused_add(y, line->by_y, x * line->by_x) + line->add;
    return fused_add(at + 1, line->half, -0.5f);
}

/* Places further outside are as good as one next to the image. */
static float near_image(float at, int32_t side)
{
    return at > -2 ? at < (float)side + 1 ? at : (float)side + 1 : -2;
}

/* The part `share` of a value comes from inside the image. */
static float filled(float value, float share, float fill, bool fused)
{
    return fused ? (value - fill) * share + fill : value * share + (1 - share) * fill;
}

static void mix_pixels(const struct st_view *in, const struct st_pixel_place *p, const float *fill,
                       bool fused, uint8_t *out)
{
    const float across[2] = {1 - p->right, p->right}, down[2] = {1 - p->down, p->down};
    float share = 0, sum[4] = {0};
    for (int32_t k = 0; k < 4; k++) {
        const int32_t x = p->x + k % 2, y = p->y + k / 2;
        const float weight = across[k % 2] * down[k / 2];
        if (!st_pixel_inside(in, x, y))
            continue;
        share += weight;
        for (int32_t c = 0; c < in->channels; c++)
            sum[c] = fused_add(st_pixel_at(in, x, y)[c], weight, sum[c]);
    }
    for (int32_t c = 0; c < in->channels; c++)
        out[c] = st_pixel_rounded(fill ? filled(sum[c], share, fill[c], fused) : sum[c]);
}

void st_tensor_affine(const struct st_view *in, const double map[6], const float *fill, bool fused,
                      const struct st_view *out)
{
    const struct line across = line_of(map, in->width), down = line_of(map + 3, in->height);
    for (int32_t y = 0; y < out->height; y++) {
        uint8_t *to = st_row(out, y);
        const float middle_y = (float)(y + (1 - in->height) * 0.5);
        for (int32_t x = 0; x < out->width; x++, to += out->channels) {
            const float middle_x = (float)(x + (1 - in->width) * 0.5);
            const float at_x = near_image(place_on(&across, middle_x, middle_y), in->width);
            const float at_y = near_image(place_on(&down, middle_x, middle_y), in->height);
            const float left = floorf(at_x), above = floorf(at_y);
            const struct st_pixel_place p = {(int32_t)left, (int32_t)above, at_x - left, at_y - above};
            mix_pixels(in, &p, fill, fused, to);
        }
    }
}
