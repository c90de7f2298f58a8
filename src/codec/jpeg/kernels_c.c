/* kernels_c.c - the inner loops of the JPEG decoder in plain C: the specification of all variants
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_isa.h"
#include "codec/jpeg/transform.h"

#include <string.h>

enum { BLOCK = 8 };

const uint8_t st_jpeg_natural[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                     12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                     35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                     58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* ---- unstuff ----------------------------------------------------------------------------------- */

/* Whether one of eight bytes is FF. */
static bool has_ff(uint64_t word)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    return ((~word - ones) & word & tops) != 0;
}

static size_t unstuff_c(uint8_t *out, const uint8_t *in, size_t size, size_t *used)
{
    size_t from = 0, to = 0;
    while (from < size) {
        uint64_t word;
        if (size - from >= sizeof word) {
            memcpy(&word, in + from, sizeof word);
            if (!has_ff(word)) {
                memcpy(out + to, &word, sizeof word);
                from += sizeof word;
                to += sizeof word;
                continue;
            }
        }
        if (in[from] == 0xFF) {
            if (from + 1 >= size || in[from + 1] != 0)
                break;
            out[to++] = 0xFF;
            from += 2;
        } else {
            out[to++] = in[from++];
        }
    }
    *used = from;
    return to;
}

/* ---- transform --------------------------------------------------------------------------------- */

/* In two steps of 16 bits, which compilers turn into vectors of them. */
static uint8_t clamp(int16_t value)
{
    const int16_t least = value < 0 ? 0 : value;
    return (uint8_t)(least < 255 ? least : 255);
}

/* One pass over the columns of a block. */
static inline __attribute__((always_inline)) void pass(int16_t v[64], const int shift,
                                                       const bool quarter)
{
    for (int c = 0; c < 8; c++) {
        const int32_t round = 1 << (shift - 1), x0 = v[c], x1 = v[8 + c], x2 = v[16 + c], x3 = v[24 + c];
        const int32_t x4 = quarter ? 0 : v[32 + c], x5 = quarter ? 0 : v[40 + c],
                      x6 = quarter ? 0 : v[48 + c];
        const int32_t x7 = quarter ? 0 : v[56 + c];
        const int32_t sum = (x0 + x4) * (1 << ST_IDCT_BITS) + round;
        const int32_t difference = (x0 - x4) * (1 << ST_IDCT_BITS) + round;
        const int32_t a = x2 * ST_IDCT_E2A + x6 * ST_IDCT_E6A, b = x2 * ST_IDCT_E2B + x6 * ST_IDCT_E6B;
        const int32_t odd0 = x1 * ST_IDCT_01 + x3 * ST_IDCT_03 + x5 * ST_IDCT_05 + x7 * ST_IDCT_07;
        const int32_t odd1 = x1 * ST_IDCT_11 + x3 * ST_IDCT_13 + x5 * ST_IDCT_15 + x7 * ST_IDCT_17;
        const int32_t odd2 = x1 * ST_IDCT_21 + x3 * ST_IDCT_23 + x5 * ST_IDCT_25 + x7 * ST_IDCT_27;
        const int32_t odd3 = x1 * ST_IDCT_31 + x3 * ST_IDCT_33 + x5 * ST_IDCT_35 + x7 * ST_IDCT_37;
        v[c] = (int16_t)((sum + a + odd0) >> shift);
        v[56 + c] = (int16_t)((sum + a - odd0) >> shift);
        v[8 + c] = (int16_t)((difference + b + odd1) >> shift);
        v[48 + c] = (int16_t)((difference + b - odd1) >> shift);
        v[16 + c] = (int16_t)((difference - b + odd2) >> shift);
        v[40 + c] = (int16_t)((difference - b - odd2) >> shift);
        v[24 + c] = (int16_t)((sum - a + odd3) >> shift);
        v[32 + c] = (int16_t)((sum - a - odd3) >> shift);
    }
}

/* Rows become columns by shuffling three times, as cards are shuffled: each moves the bits of an index
 * round by one. Compilers know this as interleaving. */
static inline __attribute__((always_inline)) void shuffle(int16_t out[64], const int16_t in[64])
{
    for (int k = 0; k < 32; k++) {
        out[2 * k] = in[k];
        out[2 * k + 1] = in[32 + k];
    }
}

static inline __attribute__((always_inline)) void shuffle_bytes(uint8_t out[64], const uint8_t in[64])
{
    for (int k = 0; k < 32; k++) {
        out[2 * k] = in[k];
        out[2 * k + 1] = in[32 + k];
    }
}

static inline __attribute__((always_inline)) void two_passes(uint8_t *out, size_t stride, int16_t v[64],
                                                             const bool quarter)
{
    int16_t other[64];
    uint8_t pixels[64], other_pixels[64];
    pass(v, ST_IDCT_SHIFT_1, quarter);
    shuffle(other, v);
    shuffle(v, other);
    shuffle(other, v);
    pass(other, ST_IDCT_SHIFT_2, quarter);
    for (int k = 0; k < 64; k++)
        pixels[k] = clamp((int16_t)(other[k] + 128));
    shuffle_bytes(other_pixels, pixels);
    shuffle_bytes(pixels, other_pixels);
    shuffle_bytes(other_pixels, pixels);
    for (size_t y = 0; y < 8; y++)
        memcpy(out + y * stride, other_pixels + 8 * y, 8);
}

/* These return the greatest sum of absolute values of a column; where that is too large, the pixels mean
 * nothing, but nothing overflows: whatever 16 bits go into a pass, its sums fit into 32. */
static inline __attribute__((always_inline)) int32_t transform_ac(uint8_t *out, size_t stride,
                                                                  const struct st_jpeg_block *block,
                                                                  const struct st_jpeg_quant *quant,
                                                                  const bool quarter)
{
    int16_t v[64] = {0};
    int32_t column[8] = {0}, most = 0;
    for (uint32_t k = 0; k < block->end; k++)
        v[st_jpeg_natural[k]] = block->coefs[k];
    for (int y = 0; y < (quarter ? 32 : 64); y += 8)
        for (int x = 0; x < 8; x++) {
            const int32_t value = v[y + x] * quant->natural[y + x];
            column[x] += value < 0 ? -value : value;
            v[y + x] = (int16_t)value;
        }
    for (int x = 0; x < 8; x++)
        most = column[x] > most ? column[x] : most;
    two_passes(out, stride, v, quarter);
    return most;
}

static int32_t transform_dc(uint8_t *out, size_t stride, int32_t value)
{
    const int32_t pixel = ((value + 4) >> 3) + 128;
    for (size_t y = 0; y < BLOCK; y++)
        memset(out + y * stride, pixel < 0 ? 0 : pixel > 255 ? 255 : pixel, BLOCK);
    return value < 0 ? -value : value;
}

static int32_t transform_block(uint8_t *out, size_t stride, const struct st_jpeg_block *block,
                               const struct st_jpeg_quant *quant)
{
    if (block->end <= 1)
        return transform_dc(out, stride, block->coefs[0] * quant->zigzag[0]);
    if (block->end <= ST_IDCT_QUARTER)
        return transform_ac(out, stride, block, quant, true);
    return transform_ac(out, stride, block, quant, false);
}

static bool transform_c(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks, int32_t count,
                        const struct st_jpeg_quant *quant)
{
    int32_t most = 0;
    for (int32_t k = 0; k < count; k++) {
        const int32_t here = transform_block(out + (size_t)k * BLOCK, stride, &blocks[k], quant);
        most = here > most ? here : most;
    }
    return most <= ST_JPEG_COLUMN_MAX;
}

/* ---- upsampling -------------------------------------------------------------------------------- */

static void h2v1_c(uint8_t *out, const uint8_t *in, int32_t count)
{
    for (int32_t k = 0; k < count; k++) {
        out[2 * k] = (uint8_t)((3 * in[k] + in[k - 1] + 1) >> 2);
        out[2 * k + 1] = (uint8_t)((3 * in[k] + in[k + 1] + 2) >> 2);
    }
}

static void h2v2_c(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t count)
{
    for (int32_t k = 0; k < count; k++) {
        const int32_t before = 3 * near[k - 1] + far[k - 1], here = 3 * near[k] + far[k];
        const int32_t after = 3 * near[k + 1] + far[k + 1];
        out[2 * k] = (uint8_t)((3 * here + before + 8) >> 4);
        out[2 * k + 1] = (uint8_t)((3 * here + after + 7) >> 4);
    }
}

static void h1v2_c(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t bias, int32_t count)
{
    for (int32_t k = 0; k < count; k++)
        out[k] = (uint8_t)((3 * near[k] + far[k] + bias) >> 2);
}

/* ---- colour ------------------------------------------------------------------------------------ */

/* libjpeg's tables as formulas, factors with 16 bits behind the point: 91881 and 116130 for red and
 * blue, -22554 and -46802 for green. Whole parts are taken out of them, so that vectors of 16 bits can
 * do most of it. */
static void ycc_c(uint8_t *rgb, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width)
{
    const int32_t half = 1 << 15;
    for (int32_t k = 0; k < width; k++) {
        const int16_t light = y[k], b = (int16_t)(cb[k] - 128), r = (int16_t)(cr[k] - 128);
        const int16_t red = (int16_t)((26345 * r + half) >> 16),
                      blue = (int16_t)((-14942 * b + half) >> 16);
        const int16_t green = (int16_t)((-22554 * b + 18734 * r + half) >> 16);
        rgb[3 * k] = clamp((int16_t)(light + r + red));
        rgb[3 * k + 1] = clamp((int16_t)(light - r + green));
        rgb[3 * k + 2] = clamp((int16_t)(light + 2 * b + blue));
    }
}

static void grey_c(uint8_t *rgb, const uint8_t *y, int32_t width)
{
    for (int32_t k = 0; k < width; k++)
        rgb[3 * k] = rgb[3 * k + 1] = rgb[3 * k + 2] = y[k];
}

const struct st_jpeg_kernels st_jpeg_kernels_c = {
    .name = "c",
    .run_one = st_jpeg_run_one,
    .run_two = st_jpeg_run_two,
    .unstuff = unstuff_c,
    .transform = transform_c,
    .h2v1 = h2v1_c,
    .h2v2 = h2v2_c,
    .h1v2 = h1v2_c,
    .ycc = ycc_c,
    .grey = grey_c,
};
