/* kernels_c.c - the inner loops of the JPEG decoder in plain C: the specification of all variants
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_isa.h"
#include "codec/jpeg/transform.h"

#include <string.h>

enum { BLOCK = 8, CHUNK = 64 };

const uint8_t st_jpeg_natural[64] = ST_JPEG_NATURAL;

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

/* In two 16-bit steps, which compilers vectorise well. */
static uint8_t clamp(int16_t value)
{
    const int16_t least = value < 0 ? 0 : value, most = least < 255 ? least : 255;
    return (uint8_t)most;
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

/* Transposes by three perfect shuffles; each rotates the bits of an index by one. Compilers recognise
 * this as interleaving. */
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

/* Arranges coefficients in rows. At most `count` are not zero; it is a compile-time constant, so the
 * compiler unrolls the copies. */
static inline __attribute__((always_inline)) void to_rows(int16_t v[64], const int16_t *coefs,
                                                          const int count)
{
    for (int k = 0; k < 64; k++)
        v[k] = 0;
#pragma GCC unroll 64
    for (int k = 0; k < count; k++)
        v[st_jpeg_natural[k]] = coefs[k];
}

/* Unsigned, which compilers vectorise best. */
static uint16_t size_of(int16_t value)
{
    const int16_t opposite = (int16_t)-value;
    return (uint16_t)(value > opposite ? value : opposite);
}

/* These return the maximum sum of absolute values of a column. If that is too large, the pixels are
 * undefined, but nothing overflows: whatever 16-bit values enter a pass, its sums fit into 32 bits. */
static inline __attribute__((always_inline)) uint32_t transform_ac(uint8_t *out, size_t stride,
                                                                  const int16_t *coefs,
                                                                  const struct st_jpeg_quant *quant,
                                                                  const int count)
{
    const bool quarter = count <= ST_IDCT_QUARTER;
    const int used = quarter ? 32 : 64;
    int16_t v[64];
    uint16_t size[64];
    uint32_t column[8] = {0}, product[64], most = 0;
    to_rows(v, coefs, count);
    for (int k = 0; k < used; k++)
        size[k] = size_of(v[k]);
    for (int k = 0; k < used; k++)
        product[k] = (uint32_t)size[k] * (uint16_t)quant->natural[k];
    for (int y = 0; y < used; y += 8)
        for (int x = 0; x < 8; x++)
            column[x] += product[y + x];
    for (int k = 0; k < used; k++)
        v[k] = (int16_t)((uint16_t)v[k] * (uint16_t)quant->natural[k]);
    for (int x = 0; x < 8; x++)
        most = column[x] > most ? column[x] : most;
    two_passes(out, stride, v, quarter);
    return most;
}

static uint32_t transform_dc(uint8_t *out, size_t stride, int32_t value)
{
    const int32_t pixel = ((value + 4) >> 3) + 128;
    for (size_t y = 0; y < BLOCK; y++)
        memset(out + y * stride, pixel < 0 ? 0 : pixel > 255 ? 255 : pixel, BLOCK);
    return (uint32_t)(value < 0 ? -value : value);
}

static uint32_t transform_block(uint8_t *out, size_t stride, const struct st_jpeg_block *block,
                               const struct st_jpeg_quant *quant)
{
    if (block->end <= 1)
        return transform_dc(out, stride, block->coefs[0] * quant->zigzag[0]);
    if (block->end <= ST_IDCT_QUARTER)
        return transform_ac(out, stride, block->coefs, quant, ST_IDCT_QUARTER);
    if (block->end <= 32)
        return transform_ac(out, stride, block->coefs, quant, 32);
    return transform_ac(out, stride, block->coefs, quant, 64);
}

static bool transform_c(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks, int32_t count,
                        const struct st_jpeg_quant *quant)
{
    uint32_t most = 0;
    for (int32_t k = 0; k < count; k++) {
        const uint32_t here = transform_block(out + (size_t)k * BLOCK, stride, &blocks[k], quant);
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

/* libjpeg's tables as formulas, factors with 16 fractional bits: 91881 and 116130 for red and blue,
 * -22554 and -46802 for green. Integer parts are split off, so that 16-bit vectors can do most of the
 * work. */
static void colours(uint8_t *restrict red, uint8_t *restrict green, uint8_t *restrict blue,
                    const uint8_t *y, const uint8_t *cb, const uint8_t *cr)
{
    for (int k = 0; k < CHUNK; k++) {
        const int16_t light = y[k], b = (int16_t)(cb[k] - 128), r = (int16_t)(cr[k] - 128);
        const int16_t r_part = (int16_t)((int16_t)(2 * r) * 26345 >> 16),
                      b_part = (int16_t)((int16_t)(2 * b) * -14942 >> 16);
        const int16_t g_part = (int16_t)((-22554 * b + 18734 * r + (1 << 15)) >> 16);
        red[k] = clamp((int16_t)(light + r + ((r_part + 1) >> 1)));
        green[k] = clamp((int16_t)(light - r + g_part));
        blue[k] = clamp((int16_t)(light + 2 * b + ((b_part + 1) >> 1)));
    }
}

void st_jpeg_interleave(uint8_t *restrict rgb, const uint8_t *restrict red,
                        const uint8_t *restrict green, const uint8_t *restrict blue, int32_t width)
{
    for (int32_t k = 0; k < width; k++) {
        rgb[3 * k] = red[k];
        rgb[3 * k + 1] = green[k];
        rgb[3 * k + 2] = blue[k];
    }
}

/* In two steps: few CPUs can interleave computed values efficiently. */
static void ycc_c(uint8_t *rgb, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width)
{
    uint8_t red[CHUNK], green[CHUNK], blue[CHUNK];
    for (int32_t k = 0; k < width; k += CHUNK) {
        colours(red, green, blue, y + k, cb + k, cr + k);
        st_jpeg_interleave(rgb + 3 * k, red, green, blue, CHUNK);
    }
}

static void grey_c(uint8_t *rgb, const uint8_t *y, int32_t width)
{
    st_jpeg_interleave(rgb, y, y, y, width);
}

const struct st_jpeg_kernels st_jpeg_kernels_c = {
    .name = "c",
    .run_one = st_jpeg_run_one,
    .run_two = st_jpeg_run_two,
    .band_first = st_jpeg_band_first_c,
    .band_later = st_jpeg_band_later_c,
    .unstuff = unstuff_c,
    .transform = transform_c,
    .h2v1 = h2v1_c,
    .h2v2 = h2v2_c,
    .h1v2 = h1v2_c,
    .ycc = ycc_c,
    .grey = grey_c,
};
