/* blur.c - a Gaussian blur: down, then across
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/filter/blur.h"

#include "base/functions.h"
#include "op/geometry/turn.h"

#include <string.h>

/* Weights that change a sum by less than rounding it does are 0, and are not multiplied: all of them
 * together are less than a millionth of a level. */
void st_blur_weights(int32_t taps, double sigma, float *weight)
{
    const double least = 1.0 / (1u << 30);
    const int32_t half = taps / 2;
    double sum = 0;
    for (int32_t i = half; i >= 0; i--) {
        const double exact = st_exp(-0.5 * (i / sigma) * (i / sigma));
        weight[i] = exact < least ? 0 : (float)exact;
        sum += i ? 2 * weight[i] : weight[i];
    }
    for (int32_t i = 0; i <= half; i++)
        weight[i] = (float)(weight[i] / sum);
}

/* `*half`: the neighbours on one side that have a weight. */
static float *half_kernel(int32_t taps, double sigma, struct st_arena *arena, int32_t *half)
{
    float *weight = st_arena_take(arena, (uint64_t)(taps / 2 + 1) * sizeof *weight);
    if (weight)
        st_blur_weights(taps, sigma, weight);
    for (*half = taps / 2; weight && *half > 0 && weight[*half] == 0;)
        --*half;
    return weight;
}

/* Reflects an index at the ends of [0, count). */
static int32_t reflected(int32_t i, int32_t count)
{
    return i < 0 ? -i : i >= count ? 2 * (count - 1) - i : i;
}

/* The rows that become row `y`: itself, then those above and below it in turn. */
static void rows_around(const uint8_t **rows, const struct st_view *in, int32_t y, int32_t half)
{
    rows[0] = st_row(in, y);
    for (int32_t k = 1; k <= half; k++) {
        rows[2 * k - 1] = st_row(in, reflected(y - k, in->height));
        rows[2 * k] = st_row(in, reflected(y + k, in->height));
    }
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

int st_blur(const struct st_colour_rows *rows, int32_t across, int32_t down, double sigma,
            struct st_arena *arena, struct st_view *pixels)
{
    const struct st_view in = *pixels;
    int32_t half_across, half_down;
    const float *across_weight = half_kernel(across, sigma, arena, &half_across);
    const float *down_weight = half_kernel(down, sigma, arena, &half_down);
    const size_t count = (size_t)in.width * (size_t)in.channels;
    const size_t border = (size_t)half_across * (size_t)in.channels;
    float *row = st_arena_take(arena, (uint64_t)(count + 2 * border) * sizeof *row);
    const uint8_t **around = st_arena_take(arena, (uint64_t)down * sizeof *around);
    if (!across_weight || !down_weight || !row || !around ||
        !st_view_take(pixels, arena, in.width, in.height, in.channels))
        return STOKER_ENOMEM;
    for (int32_t y = 0; y < in.height; y++) {
        rows_around(around, &in, y, half_down);
        rows->blur_down(row + border, around, count, down_weight, half_down);
        continue_ends(row + border, in.width, in.channels, half_across);
        rows->blur_across(st_row(pixels, y), row + border, count, in.channels, across_weight,
                          half_across);
    }
    return STOKER_OK;
}
