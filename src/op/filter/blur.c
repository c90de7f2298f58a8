/* blur.c - a Gaussian blur: down, then across
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/filter/blur.h"

#include "base/functions.h"
#include "op/geometry/turn.h"

#include <string.h>

void st_blur_weights(int32_t taps, double sigma, float *weight)
{
    const int32_t half = taps / 2;
    double sum = 0;
    for (int32_t i = half; i >= 0; i--) {
        weight[i] = (float)st_exp(-0.5 * (i / sigma) * (i / sigma));
        sum += i ? 2 * weight[i] : weight[i];
    }
    for (int32_t i = 0; i <= half; i++)
        weight[i] = (float)(weight[i] / sum);
}

static float *half_kernel(int32_t taps, double sigma, struct st_arena *arena)
{
    float *weight = st_arena_take(arena, (uint64_t)(taps / 2 + 1) * sizeof *weight);
    if (weight)
        st_blur_weights(taps, sigma, weight);
    return weight;
}

/* Reflects an index at the ends of [0, count). */
static int32_t reflected(int32_t i, int32_t count)
{
    return i < 0 ? -i : i >= count ? 2 * (count - 1) - i : i;
}

/* Blurs one row vertically. */
static void blur_down(float *restrict out, const struct st_view *in, int32_t y, const float *weight,
                      int32_t half)
{
    const ptrdiff_t count = (ptrdiff_t)in->width * in->channels;
    const uint8_t *middle = st_row(in, y);
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = weight[0] * middle[i];
    for (int32_t k = 1; k <= half; k++) {
        const uint8_t *above = st_row(in, reflected(y - k, in->height));
        const uint8_t *below = st_row(in, reflected(y + k, in->height));
        const float w = weight[k];
        for (ptrdiff_t i = 0; i < count; i++)
            out[i] += w * (float)(above[i] + below[i]);
    }
}

/* Blurs it horizontally: `row` is extended at both ends. */
static void blur_across(uint8_t *restrict out, float *restrict sum, const float *restrict row,
                        ptrdiff_t count, int32_t channels, const float *weight, int32_t half)
{
    for (ptrdiff_t i = 0; i < count; i++)
        sum[i] = weight[0] * row[i];
    for (int32_t k = 1; k <= half; k++) {
        const float *left = row - (ptrdiff_t)k * channels, *right = row + (ptrdiff_t)k * channels;
        const float w = weight[k];
        for (ptrdiff_t i = 0; i < count; i++)
            sum[i] += w * (left[i] + right[i]);
    }
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = (uint8_t)(int32_t)(sum[i] + 0.5f);
}

static void continue_ends(float *row, int32_t width, int32_t channels, int32_t half)
{
    const size_t pixel = (size_t)channels * sizeof *row;
    for (int32_t k = 1; k <= half; k++) {
        memcpy(row - (ptrdiff_t)k * channels, row + (ptrdiff_t)k * channels, pixel);
        memcpy(row + (ptrdiff_t)(width - 1 + k) * channels, row + (ptrdiff_t)(width - 1 - k) * channels,
               pixel);
    }
}

int st_blur(int32_t across, int32_t down, double sigma, struct st_arena *arena, struct st_view *pixels)
{
    const struct st_view in = *pixels;
    const int32_t half_across = across / 2, half_down = down / 2;
    const ptrdiff_t count = (ptrdiff_t)in.width * in.channels;
    const ptrdiff_t border = (ptrdiff_t)half_across * in.channels;
    const float *across_weight = half_kernel(across, sigma, arena);
    const float *down_weight = half_kernel(down, sigma, arena);
    float *row = st_arena_take(arena, (uint64_t)(count + 2 * border) * sizeof *row);
    float *sum = st_arena_take(arena, (uint64_t)count * sizeof *sum);
    if (!across_weight || !down_weight || !row || !sum ||
        !st_view_take(pixels, arena, in.width, in.height, in.channels))
        return STOKER_ENOMEM;
    for (int32_t y = 0; y < in.height; y++) {
        blur_down(row + border, &in, y, down_weight, half_down);
        continue_ends(row + border, in.width, in.channels, half_across);
        blur_across(st_row(pixels, y), sum, row + border, count, in.channels, across_weight,
                    half_across);
    }
    return STOKER_OK;
}
