/* forward_rows.c - the inner loops from pixels to the coefficients of a JPEG
 *
 * One file, compiled for each kind of CPU: written for auto-vectorisation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/forward.h"
#include "codec/jpeg/kernels.h"
#include "codec/jpeg/transform.h"

enum { COLOUR_BITS = 16, ROUND = 1 << (COLOUR_BITS - 1), MIDDLE = 128 << COLOUR_BITS, CHUNK = 64 };

/* libjpeg's factors with 16 fractional bits. */
static void to_ycc(uint8_t *restrict y, uint8_t *restrict cb, uint8_t *restrict cr,
                   const int32_t *restrict red, const int32_t *restrict green,
                   const int32_t *restrict blue, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const int32_t r = red[k], g = green[k], b = blue[k];
        y[k] = (uint8_t)((19595 * r + 38470 * g + 7471 * b + ROUND) >> COLOUR_BITS);
        cb[k] = (uint8_t)((-11059 * r - 21709 * g + 32768 * b + MIDDLE + ROUND - 1) >> COLOUR_BITS);
        cr[k] = (uint8_t)((32768 * r - 27439 * g - 5329 * b + MIDDLE + ROUND - 1) >> COLOUR_BITS);
    }
}

static void split(uint8_t *y, uint8_t *cb, uint8_t *cr, const uint8_t *rgb, bool swapped, size_t count)
{
    int32_t first[CHUNK], green[CHUNK], last[CHUNK];
    for (size_t done = 0; done < count; done += CHUNK) {
        const size_t n = count - done < CHUNK ? count - done : CHUNK;
        const uint8_t *from = rgb + 3 * done;
        for (size_t k = 0; k < n; k++) {
            first[k] = from[3 * k];
            green[k] = from[3 * k + 1];
            last[k] = from[3 * k + 2];
        }
        to_ycc(y + done, cb + done, cr + done, swapped ? last : first, green, swapped ? first : last, n);
    }
}

static void halve(uint8_t *restrict out, const uint8_t *restrict upper, const uint8_t *restrict lower,
                  size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const int32_t sum = upper[2 * k] + upper[2 * k + 1] + lower[2 * k] + lower[2 * k + 1];
        out[k] = (uint8_t)((sum + 1 + (int32_t)(k & 1)) >> 2);
    }
}

/* ---- blocks ------------------------------------------------------------------------------------ */

/* One pass of the transform over the columns of a block: the transpose of the decoder's sums of
 * products. */
static inline __attribute__((always_inline)) void pass(int16_t v[64], const int up, const int down,
                                                       const int shift)
{
    for (int c = 0; c < 8; c++) {
        const int32_t round = 1 << (shift - 1), even = down ? 1 << (down - 1) : 0;
        const int32_t a0 = v[c] + v[56 + c], d0 = v[c] - v[56 + c];
        const int32_t a1 = v[8 + c] + v[48 + c], d1 = v[8 + c] - v[48 + c];
        const int32_t a2 = v[16 + c] + v[40 + c], d2 = v[16 + c] - v[40 + c];
        const int32_t a3 = v[24 + c] + v[32 + c], d3 = v[24 + c] - v[32 + c];
        const int32_t outer = a0 + a3, inner = a1 + a2, far = a0 - a3, near = a1 - a2;
        v[c] = (int16_t)(((outer + inner) * (1 << up) + even) >> down);
        v[32 + c] = (int16_t)(((outer - inner) * (1 << up) + even) >> down);
        v[16 + c] = (int16_t)((far * ST_IDCT_E2A + near * ST_IDCT_E2B + round) >> shift);
        v[48 + c] = (int16_t)((far * ST_IDCT_E6A + near * ST_IDCT_E6B + round) >> shift);
        v[8 + c] = (int16_t)((d0 * ST_IDCT_01 + d1 * ST_IDCT_11 + d2 * ST_IDCT_21 + d3 * ST_IDCT_31 +
                              round) >> shift);
        v[24 + c] = (int16_t)((d0 * ST_IDCT_03 + d1 * ST_IDCT_13 + d2 * ST_IDCT_23 + d3 * ST_IDCT_33 +
                               round) >> shift);
        v[40 + c] = (int16_t)((d0 * ST_IDCT_05 + d1 * ST_IDCT_15 + d2 * ST_IDCT_25 + d3 * ST_IDCT_35 +
                               round) >> shift);
        v[56 + c] = (int16_t)((d0 * ST_IDCT_07 + d1 * ST_IDCT_17 + d2 * ST_IDCT_27 + d3 * ST_IDCT_37 +
                               round) >> shift);
    }
}

/* Three of these transpose a block: each rotates the bits of an index by one. */
static inline __attribute__((always_inline)) void shuffle(int16_t out[64], const int16_t in[64])
{
    for (int k = 0; k < 32; k++) {
        out[2 * k] = in[k];
        out[2 * k + 1] = in[32 + k];
    }
}

static inline __attribute__((always_inline)) void transpose(int16_t v[64])
{
    int16_t other[64];
    shuffle(other, v);
    shuffle(v, other);
    shuffle(other, v);
    for (int k = 0; k < 64; k++)
        v[k] = other[k];
}

/* The quotient, rounded. It is never so close to a whole number that floats could err: 1 / (16 step) is
 * added, of which the quotient has no more than 2^20. */
static inline int16_t quotient(int16_t value, float scale, float half)
{
    const float size = (float)(value < 0 ? -value : value);
    const int32_t whole = (int32_t)((size + half) * scale);
    return (int16_t)(value < 0 ? -whole : whole);
}

/* Where the zeros at the end begin, at the earliest behind the first coefficient. Four at a time. */
static inline uint8_t end_of(const int16_t coefs[64])
{
    uint8_t end = 64;
    uint64_t four;
    for (; end > 4; end = (uint8_t)(end - 4)) {
        memcpy(&four, coefs + end - 4, sizeof four);
        if (four)
            break;
    }
    while (end > 1 && coefs[end - 1] == 0)
        end--;
    return end;
}

/* Rows first, as in libjpeg, with two more bits that the second pass drops. */
static uint8_t block(int16_t coefs[64], const uint8_t *samples, size_t stride, const float scale[64],
                     const float half[64])
{
    static const uint8_t natural[64] = ST_JPEG_NATURAL; /* known here, so that the copies are unrolled */
    int16_t v[64];
    for (size_t y = 0; y < 8; y++)
        for (size_t x = 0; x < 8; x++)
            v[8 * y + x] = (int16_t)(samples[y * stride + x] - 128);
    transpose(v);
    pass(v, ST_IDCT_BITS - ST_IDCT_SHIFT_1, 0, ST_IDCT_SHIFT_1);
    transpose(v);
    pass(v, 0, ST_IDCT_BITS - ST_IDCT_SHIFT_1, 2 * ST_IDCT_BITS - ST_IDCT_SHIFT_1);
    for (int k = 0; k < 64; k++)
        v[k] = quotient(v[k], scale[k], half[k]);
#pragma GCC unroll 64
    for (int k = 0; k < 64; k++)
        coefs[k] = v[natural[k]];
    return end_of(coefs);
}

extern const struct st_jpeg_forward_rows ST_JPEG_FORWARD;
const struct st_jpeg_forward_rows ST_JPEG_FORWARD = {.split = split, .halve = halve, .block = block};
