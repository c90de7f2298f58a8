/* arith.h - pixel arithmetic on a GPU, with the same results as op/
 *
 * A pixel is a word: channel c is its c-th byte from the low end; with one channel, the other bytes are
 * undefined. This must be compiled without fusing multiplications and additions (nvcc: --fmad=false).
 *
 *   here              specification
 *   st_sums           op/kernels_c.c: settle, across_row3, st_down_c
 *   st_px_blend ...   op/colour_rows.c
 *   st_mean_level     op/colour.c: st_colour_contrast
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_ARITH_H
#define ST_GPU_ARITH_H

#include "gpu/both.h"
#include "op/kernels.h"

ST_BOTH uint32_t st_byte(uint32_t px, int32_t c)
{
#if defined(__CUDA_ARCH__)
    return __byte_perm(px, 0, 0x4440 + (uint32_t)c); /* one instruction; the compiler would use two */
#else
    return px >> (8 * c) & 255;
#endif
}

/* ---- weighted sums ----------------------------------------------------------------------------- */

/* They may wrap, so they are unsigned. */
struct st_sums {
    uint32_t r, g, b;
};

ST_BOTH struct st_sums st_sums_none(void)
{
    const uint32_t half = 1u << (ST_WEIGHT_BITS - 1);
    const struct st_sums sums = {half, half, half};
    return sums;
}

ST_BOTH void st_sums_add(struct st_sums *sums, uint32_t px, uint32_t weight)
{
    sums->r += st_byte(px, 0) * weight;
    sums->g += st_byte(px, 1) * weight;
    sums->b += st_byte(px, 2) * weight;
}

ST_BOTH uint32_t st_settle(uint32_t sum)
{
    const int32_t value = (int32_t)sum >> ST_WEIGHT_BITS;
    return (uint32_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

ST_BOTH uint32_t st_sums_pixel(const struct st_sums *sums)
{
    return st_settle(sums->r) | st_settle(sums->g) << 8 | st_settle(sums->b) << 16;
}

/* ---- colour ------------------------------------------------------------------------------------ */

ST_BOTH uint32_t st_px_rgb(float r, float g, float b)
{
    return (uint32_t)(int32_t)r | (uint32_t)(int32_t)g << 8 | (uint32_t)(int32_t)b << 16;
}

ST_BOTH uint32_t st_px_luma(uint32_t px)
{
    return (19595 * st_byte(px, 0) + 38470 * st_byte(px, 1) + 7471 * st_byte(px, 2) + 0x8000) >> 16;
}

ST_BOTH uint32_t st_px_grey(uint32_t px) { return st_px_luma(px) * 0x010101; }

ST_BOTH float st_blended(float from, float to, float factor)
{
    const float mixed = from + factor * (to - from);
    const float above = mixed > 0 ? mixed : 0;
    return above < 255 ? above : 255;
}

ST_BOTH uint32_t st_px_blend(uint32_t px, float level, float factor)
{
    return st_px_rgb(st_blended(level, (float)st_byte(px, 0), factor),
                     st_blended(level, (float)st_byte(px, 1), factor),
                     st_blended(level, (float)st_byte(px, 2), factor));
}

/* The level that contrast is relative to: the rounded mean of an image's grey values. */
ST_BOTH float st_mean_level(uint64_t sum, int32_t width, int32_t height)
{
    const double mean = (double)sum / ((double)width * height);
    return (float)(int32_t)(mean + 0.5);
}

ST_BOTH float st_least(float a, float b) { return a < b ? a : b; }
ST_BOTH float st_most(float a, float b) { return a > b ? a : b; }
ST_BOTH float st_whole(float a) { return (float)(int32_t)a; }

ST_BOTH float st_hue_of(float r, float g, float b, float high, float low, float span)
{
    const float mid = r + g + b - high - low;
    const float x = (high - mid) / (span > 0 ? span : 1);
    const float in_r = g >= b ? 1 - x : x - 1;
    const float in_g = r >= b ? 1 + x : 3 - x;
    const float in_b = g >= r ? 3 + x : 5 - x;
    const float sixth = (r >= high ? in_r : g >= high ? in_g : in_b) / 6;
    const float turn = sixth < 0 ? sixth + 1 : sixth;
    const float rounded = st_whole(turn * 255);
    const float hue = turn * 256 - rounded < turn ? rounded - 1 : rounded;
    return span > 0 ? hue : 0;
}

ST_BOTH float st_hue_channel(float high, float depth, float share)
{
    const float level = 1.0f / 255;
    return st_whole(high * (1 - depth * (st_most(st_least(share, 255), 0) * level)) + 0.5f);
}

ST_BOTH uint32_t st_px_hue(uint32_t px, float shift)
{
    const float r = (float)st_byte(px, 0), g = (float)st_byte(px, 1), b = (float)st_byte(px, 2);
    const float high = st_most(st_most(r, g), b), low = st_least(st_least(r, g), b), span = high - low;
    const float moved = st_hue_of(r, g, b, high, low, span) + shift;
    const float level = 1.0f / 255;
    const float depth = st_whole(span * 255 / (high > 0 ? high : 1)) * level;
    const float place = (moved > 255 ? moved - 256 : moved) * 6;
    return st_px_rgb(st_hue_channel(high, depth, st_least(place - 255, 1275 - place)),
                     st_hue_channel(high, depth, st_most(255 - place, place - 765)),
                     st_hue_channel(high, depth, st_most(765 - place, place - 1275)));
}

ST_BOTH uint32_t st_px_saturate(uint32_t px, float factor)
{
    return st_px_blend(px, (float)st_px_luma(px), factor);
}

#endif
