/* arith.h - pixel arithmetic on a GPU, with the same results as op/
 *
 * A pixel is a word: channel c is its c-th byte from the low end; with one channel, the other bytes are
 * undefined. This must be compiled without fusing multiplications and additions (nvcc: --fmad=false).
 *
 *   here              specification
 *   st_sums           op/kernels/kernels_c.c: settle, across_row3, st_down_c
 *   st_px_blend ...   op/colour/colour_rows.c
 *   st_soft           op/colour/colour_rows.c: soften
 *   st_mean_level     op/colour/colour.c: st_colour_mean
 *   st_equalized ...  op/colour/tables.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_ARITH_H
#define ST_GPU_ARITH_H

#include "gpu/both.h"
#include "op/kernels/kernels.h"

ST_BOTH uint32_t st_byte(uint32_t px, int32_t c)
{
#if defined(__CUDA_ARCH__)
    return __byte_perm(px, 0, 0x4440 + (uint32_t)c); /* one instruction; the compiler would use two */
#else
    return px >> (8 * c) & 255;
#endif
}

/* Bytes of two words: digit k of `select`, in base 16, says which of the eight is byte k of the
 * result. */
ST_BOTH uint32_t st_bytes_of(uint32_t low, uint32_t high, uint32_t select)
{
#if defined(__CUDA_ARCH__)
    return __byte_perm(low, high, select);
#else
    const uint64_t both = (uint64_t)high << 32 | low;
    uint32_t bytes = 0;
    for (uint32_t k = 0; k < 4; k++)
        bytes |= (uint32_t)(both >> (8 * (select >> (4 * k) & 7)) & 255) << (8 * k);
    return bytes;
#endif
}

ST_BOTH int32_t st_signed_byte(uint32_t word, int32_t k)
{
#if defined(__CUDA_ARCH__)
    int32_t value; /* digits above 7 repeat the sign */
    asm("prmt.b32 %0, %1, 0, %2;" : "=r"(value) : "r"(word), "r"(0x8880 + 0x1111 * k));
    return value;
#else
    return (int8_t)(word >> (8 * k));
#endif
}

ST_BOTH uint32_t st_clamped(int32_t value)
{
    return (uint32_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* The values, clamped to bytes. */
ST_BOTH uint32_t st_clamped_four(int32_t a, int32_t b, int32_t c, int32_t d)
{
#if defined(__CUDA_ARCH__)
    uint32_t high, all;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(d), "r"(c));
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(b), "r"(a), "r"(high));
    return all;
#else
    return st_clamped(a) | st_clamped(b) << 8 | st_clamped(c) << 16 | st_clamped(d) << 24;
#endif
}

/* Stores two values, clamped to bytes; `to` is even. */
ST_BOTH void st_store_two(uint8_t *to, int32_t a, int32_t b)
{
#if defined(__CUDA_ARCH__)
    uint32_t both;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(both) : "r"(b), "r"(a));
    *(uint16_t *)(void *)to = (uint16_t)both;
#else
    to[0] = (uint8_t)st_clamped(a);
    to[1] = (uint8_t)st_clamped(b);
#endif
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/* Sixteen lines of 32 pixels times eight outputs' weights, added to `sum`; each lane has its part of
 * these, as the instruction defines it. */
#define ST_MMA(weights)                                                                                 \
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8." weights ".s32 {%0, %1, %2, %3}, "                   \
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                                 \
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])                                        \
        : "r"(pixels[0]), "r"(pixels[1]), "r"(pixels[2]), "r"(pixels[3]), "r"(low), "r"(high))

ST_BOTH void st_mma_unsigned(uint32_t *sum, const uint32_t *pixels, uint32_t low, uint32_t high)
{
    ST_MMA("u8");
}

ST_BOTH void st_mma_signed(uint32_t *sum, const uint32_t *pixels, uint32_t low, uint32_t high)
{
    ST_MMA("s8");
}
#endif

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
    return st_clamped((int32_t)sum >> ST_WEIGHT_BITS);
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

/* ---- values ------------------------------------------------------------------------------------ */

/* Values from `level` on are inverted. */
ST_BOTH uint32_t st_px_solarize(uint32_t px, uint32_t level)
{
    uint32_t out = px;
    ST_UNROLL
    for (int32_t c = 0; c < 3; c++)
        out ^= st_byte(px, c) < level ? 0 : 255u << (8 * c);
    return out;
}

/* Adds to values below 128. */
ST_BOTH uint32_t st_px_lighten(uint32_t px, uint32_t added)
{
    uint32_t out = px;
    ST_UNROLL
    for (int32_t c = 0; c < 3; c++)
        out += st_byte(px, c) < 128 ? added << (8 * c) : 0;
    return out;
}

ST_BOTH uint32_t st_px_replace(uint32_t px, const uint8_t (*table)[256])
{
    return table[0][st_byte(px, 0)] | (uint32_t)table[1][st_byte(px, 1)] << 8 |
           (uint32_t)table[2][st_byte(px, 2)] << 16;
}

/* The same by tables in memory. */
ST_BOTH uint32_t st_px_look_up(uint32_t px, const uint8_t *table)
{
    return st_load_byte(table + st_byte(px, 0)) | st_load_byte(table + 256 + st_byte(px, 1)) << 8 |
           st_load_byte(table + 512 + st_byte(px, 2)) << 16;
}

/* What autocontrast makes of a value where the values are from `low` to `high`. */
ST_BOTH uint32_t st_autocontrasted(int32_t value, int32_t low, int32_t high)
{
    if (high <= low)
        return (uint32_t)value;
    const double scale = 255.0 / (high - low), offset = -low * scale;
    const double to = value * scale + offset;
    return (uint32_t)(int32_t)(to < 0 ? 0 : to > 255 ? 255 : to);
}

/* What equalize makes of a value. `below` pixels are less, `total` pixels are there, of which `last`
 * have the greatest value. */
ST_BOTH uint32_t st_equalized(uint32_t value, uint32_t below, uint32_t total, uint32_t last)
{
    const uint32_t step = (total - last) / 255;
    const uint32_t to = step ? (step / 2 + below) / step : value;
    return to > 255 ? 255 : to;
}

/* A thirteenth of a sum of 3 x 3 values, the middle one counted five times. */
ST_BOTH uint32_t st_soft(uint32_t sum) { return (sum + 6) * 5042 >> 16; }

#endif
