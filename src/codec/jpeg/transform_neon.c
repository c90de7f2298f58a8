/* transform_neon.c - the inverse DCT for aarch64, one block at a time
 *
 * Eight columns are eight lanes. The transform runs down the columns, the block is transposed, the
 * transform runs again, and the result is transposed back when it is stored.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_isa.h"
#include "codec/jpeg/transform.h"

#include <arm_neon.h>

#define ST_INLINE static inline __attribute__((always_inline))

enum {
    BLOCK = 8,
    HALF = 32,        /* with at most this many coefficients, the second half of the zigzag order is 0 */
    CENTRE = 128 * 8, /* added to DC: pixels are centred at 128 */
};

/* ---- the passes -------------------------------------------------------------------------------- */

/* The factors of the passes. The odd part saves four products by using sums of two rows, like the
 * original; within the column limit, these fit into 16 bits in both passes. A37 and A15 apply to rows 3
 * + 7 and 1 + 5 for outputs 1 and 3, B37 and B15 for outputs 0 and 2; the others correct for single
 * rows. */
enum { E2A, E2B, E6B, A37, A15, B15, D01, D13, D15, D25, D31, D37, O01, O13, O23, O31, FACTORS };
enum { B37 = A15, E6A = E2B, D23 = D15, D07 = D31, O03 = A15, O11 = A15, O21 = B15, O33 = A37 };
static const int16_t factors[FACTORS] = {
    [E2A] = ST_IDCT_E2A,
    [E2B] = ST_IDCT_E2B,
    [E6B] = ST_IDCT_E6B,
    [A37] = ST_IDCT_33,
    [A15] = ST_IDCT_03,
    [B15] = ST_IDCT_05,
    [D01] = ST_IDCT_01 - ST_IDCT_05,
    [D13] = ST_IDCT_13 - ST_IDCT_33,
    [D15] = ST_IDCT_15 - ST_IDCT_03,
    [D25] = ST_IDCT_25 - ST_IDCT_05,
    [D31] = ST_IDCT_31 - ST_IDCT_03,
    [D37] = ST_IDCT_37 - ST_IDCT_33,
    [O01] = ST_IDCT_01,
    [O13] = ST_IDCT_13,
    [O23] = ST_IDCT_23,
    [O31] = ST_IDCT_31,
};

#define PRODUCT(x, k) vmull_laneq_s16(x, (k) < 8 ? f.val[0] : f.val[1], (k) & 7)
#define PLUS(sum, x, k) vmlal_laneq_s16(sum, x, (k) < 8 ? f.val[0] : f.val[1], (k) & 7)

/* For four columns: outputs k and 7 - k are even[k] +- odd[k], to be rounded and shifted. */
typedef struct {
    int32x4_t even[4], odd[4];
} halves;

/* How many rows, from the top, may be nonzero. */
enum rows { FOUR = 4, SEVEN = 7, EIGHT = 8 };

/* Blocks that are rejected later may overflow here, so the addition is unsigned. */
ST_INLINE int16x4_t plus(int16x4_t a, int16x4_t b)
{
    return vreinterpret_s16_u16(vadd_u16(vreinterpret_u16_s16(a), vreinterpret_u16_s16(b)));
}

ST_INLINE void odd_part(int32x4_t odd[4], const int16x4_t x[8], const enum rows rows, int16x8x2_t f)
{
    const int16x4_t x1 = x[1], x3 = x[3], x5 = x[5], x7 = x[7];
    if (rows == FOUR) {
        odd[0] = PLUS(PRODUCT(x1, O01), x3, O03);
        odd[1] = PLUS(PRODUCT(x1, O11), x3, O13);
        odd[2] = PLUS(PRODUCT(x1, O21), x3, O23);
        odd[3] = PLUS(PRODUCT(x1, O31), x3, O33);
        return;
    }
    const int16x4_t x37 = rows == EIGHT ? plus(x3, x7) : x3, x15 = plus(x1, x5);
    const int32x4_t a = PLUS(PRODUCT(x37, A37), x15, A15), b = PLUS(PRODUCT(x37, B37), x15, B15);
    odd[0] = PLUS(b, x1, D01);
    odd[1] = PLUS(PLUS(a, x3, D13), x5, D15);
    odd[2] = PLUS(PLUS(b, x3, D23), x5, D25);
    odd[3] = PLUS(a, x1, D31);
    if (rows == EIGHT) {
        odd[0] = PLUS(odd[0], x7, D07);
        odd[3] = PLUS(odd[3], x7, D37);
    }
}

ST_INLINE halves four_columns(const int16x4_t x[8], const enum rows rows, int16x8x2_t f)
{
    halves out;
    int32x4_t sum = vshll_n_s16(x[0], ST_IDCT_BITS), difference = sum;
    int32x4_t a = PRODUCT(x[2], E2A), b = PRODUCT(x[2], E2B);
    if (rows != FOUR) {
        const int32x4_t x4 = vshll_n_s16(x[4], ST_IDCT_BITS);
        difference = vsubq_s32(sum, x4);
        sum = vaddq_s32(sum, x4);
        a = PLUS(a, x[6], E6A);
        b = PLUS(b, x[6], E6B);
    }
    odd_part(out.odd, x, rows, f);
    out.even[0] = vaddq_s32(sum, a);
    out.even[1] = vaddq_s32(difference, b);
    out.even[2] = vsubq_s32(difference, b);
    out.even[3] = vsubq_s32(sum, a);
    return out;
}

ST_INLINE halves low_columns(const int16x8_t v[8], const enum rows rows, int16x8x2_t f)
{
    int16x4_t x[8];
    for (int k = 0; k < 8; k++)
        x[k] = k < (int)rows ? vget_low_s16(v[k]) : vdup_n_s16(0);
    return four_columns(x, rows, f);
}

ST_INLINE halves high_columns(const int16x8_t v[8], const enum rows rows, int16x8x2_t f)
{
    int16x4_t x[8];
    for (int k = 0; k < 8; k++)
        x[k] = k < (int)rows ? vget_high_s16(v[k]) : vdup_n_s16(0);
    return four_columns(x, rows, f);
}

/* Row k of the first pass. */
ST_INLINE int32x4_t output(const halves *h, const int k)
{
    const uint32x4_t even = vreinterpretq_u32_s32(h->even[k < 4 ? k : 7 - k]),
                     odd = vreinterpretq_u32_s32(h->odd[k < 4 ? k : 7 - k]);
    return vreinterpretq_s32_u32(k < 4 ? vaddq_u32(even, odd) : vsubq_u32(even, odd));
}

/* Two rows, or two halves of one, side by side. */
ST_INLINE int16x8_t rounded(int32x4_t left, int32x4_t right)
{
    return vrshrn_high_n_s32(vrshrn_n_s32(left, ST_IDCT_SHIFT_1), right, ST_IDCT_SHIFT_1);
}

/* ---- transposing ------------------------------------------------------------------------------- */

/* Transposes four rows of four in each 64 bits: columns 0 and 2 of the first two, then 1 and 3. */
ST_INLINE void turn_fours(int16x8_t v[4])
{
    const int32x4_t a = vreinterpretq_s32_s16(vtrn1q_s16(v[0], v[1])),
                    b = vreinterpretq_s32_s16(vtrn2q_s16(v[0], v[1])),
                    c = vreinterpretq_s32_s16(vtrn1q_s16(v[2], v[3])),
                    d = vreinterpretq_s32_s16(vtrn2q_s16(v[2], v[3]));
    v[0] = vreinterpretq_s16_s32(vtrn1q_s32(a, c));
    v[1] = vreinterpretq_s16_s32(vtrn1q_s32(b, d));
    v[2] = vreinterpretq_s16_s32(vtrn2q_s32(a, c));
    v[3] = vreinterpretq_s16_s32(vtrn2q_s32(b, d));
}

ST_INLINE void turn(int16x8_t v[8])
{
    turn_fours(v);
    turn_fours(v + 4);
    for (int k = 0; k < 4; k++) {
        const int64x2_t upper = vreinterpretq_s64_s16(v[k]), lower = vreinterpretq_s64_s16(v[k + 4]);
        v[k] = vreinterpretq_s16_s64(vtrn1q_s64(upper, lower));
        v[k + 4] = vreinterpretq_s16_s64(vtrn2q_s64(upper, lower));
    }
}

/* Stores columns k and k + 4 of each vector as rows. */
ST_INLINE void save_columns(uint8_t *out, size_t stride, const uint8x16_t v[4])
{
    const uint16x8_t a = vreinterpretq_u16_u8(vtrn1q_u8(v[0], v[1])),
                     b = vreinterpretq_u16_u8(vtrn2q_u8(v[0], v[1])),
                     c = vreinterpretq_u16_u8(vtrn1q_u8(v[2], v[3])),
                     d = vreinterpretq_u16_u8(vtrn2q_u8(v[2], v[3]));
    const uint32x4_t rows[4] = {
        vreinterpretq_u32_u16(vtrn1q_u16(a, c)), vreinterpretq_u32_u16(vtrn1q_u16(b, d)),
        vreinterpretq_u32_u16(vtrn2q_u16(a, c)), vreinterpretq_u32_u16(vtrn2q_u16(b, d))};
    for (int k = 0; k < 4; k += 2) { /* rows k and k + 4, and the next ones */
        const uint64x2_t upper = vreinterpretq_u64_u32(vuzp1q_u32(rows[k], rows[k + 1])),
                         lower = vreinterpretq_u64_u32(vuzp2q_u32(rows[k], rows[k + 1]));
        uint8_t *at = out + (size_t)k * stride;
        vst1_u8(at, vreinterpret_u8_u64(vget_low_u64(upper)));
        vst1_u8(at + stride, vreinterpret_u8_u64(vget_high_u64(upper)));
        vst1_u8(at + 4 * stride, vreinterpret_u8_u64(vget_low_u64(lower)));
        vst1_u8(at + 5 * stride, vreinterpret_u8_u64(vget_high_u64(lower)));
    }
}

/* The second pass, and storing; v holds the columns of the block. */
ST_INLINE void last_pass(uint8_t *out, size_t stride, const int16x8_t v[8], const enum rows rows,
                         int16x8x2_t f)
{
    const halves low = low_columns(v, rows, f), high = high_columns(v, rows, f);
    int16x8_t sums[8]; /* their upper halves */
    uint8x16_t columns[4];
    for (int k = 0; k < 4; k++) {
        sums[k] = vaddhn_high_s32(vaddhn_s32(low.even[k], low.odd[k]), high.even[k], high.odd[k]);
        sums[7 - k] = vsubhn_high_s32(vsubhn_s32(low.even[k], low.odd[k]), high.even[k], high.odd[k]);
    }
    for (int k = 0; k < 4; k++)
        columns[k] = vqrshrun_high_n_s16(vqrshrun_n_s16(sums[k], ST_IDCT_SHIFT_2 - 16), sums[k + 4],
                                         ST_IDCT_SHIFT_2 - 16);
    save_columns(out, stride, columns);
}

/* ---- blocks ------------------------------------------------------------------------------------ */

/* Byte positions of a row's coefficients among the sixteen from 16 g on; 255 gives zero. */
#define AT(g, k) (k) / 16 == (g) ? 2 * ((k) % 16) : 255, (k) / 16 == (g) ? 2 * ((k) % 16) + 1 : 255
#define PART(g, a, b, c, d, e, f, h, i) \
    {AT(g, a), AT(g, b), AT(g, c), AT(g, d), AT(g, e), AT(g, f), AT(g, h), AT(g, i)}
#define PARTS(...) \
    {PART(0, __VA_ARGS__), PART(1, __VA_ARGS__), PART(2, __VA_ARGS__), PART(3, __VA_ARGS__)}
static const uint8_t places[8][4][16] = {
    PARTS(0, 1, 5, 6, 14, 15, 27, 28),     PARTS(2, 4, 7, 13, 16, 26, 29, 42),
    PARTS(3, 8, 12, 17, 25, 30, 41, 43),   PARTS(9, 11, 18, 24, 31, 40, 44, 53),
    PARTS(10, 19, 23, 32, 39, 45, 52, 54), PARTS(20, 22, 33, 38, 46, 51, 55, 60),
    PARTS(21, 34, 37, 47, 50, 56, 59, 61), PARTS(35, 36, 48, 49, 57, 58, 62, 63)};
static const uint8_t quarter_places[2][16] = {PART(0, 0, 1, 5, 6, 3, 8, 15, 15),
                                              PART(0, 2, 4, 7, 15, 9, 15, 15, 15)};
/* The first and the last group of sixteen in which a row has coefficients. */
static const uint8_t first_part[8] = {0, 0, 0, 0, 0, 1, 1, 2}, last_part[8] = {1, 2, 2, 3, 3, 3, 3, 3};

ST_INLINE int16x8_t row_of(const uint8x16x2_t *parts, const int row, const int count)
{
    uint8x16_t bytes = vdupq_n_u8(0);
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++)
        if (g >= first_part[row] && g <= last_part[row] && g < count) {
            const uint8x16_t here = vqtbl2q_u8(parts[g], vld1q_u8(places[row][g]));
            bytes = g == first_part[row] ? here : vorrq_u8(bytes, here);
        }
    return vreinterpretq_s16_u8(bytes);
}

/* Multiplies coefficients by steps; adds their absolute values to the sums of their columns. */
ST_INLINE int16x8_t multiply(int16x8_t row, int16x8_t steps, uint32x4_t *low, uint32x4_t *high)
{
    const uint16x8_t size = vreinterpretq_u16_s16(vabsq_s16(row)), by = vreinterpretq_u16_s16(steps);
    *low = vmlal_u16(*low, vget_low_u16(size), vget_low_u16(by));
    *high = vmlal_high_u16(*high, size, by);
    return vreinterpretq_s16_u16(vmulq_u16(vreinterpretq_u16_s16(row), by));
}

ST_INLINE int16x8_t around_centre(int16x8_t row)
{
    static const uint16_t centre[8] = {CENTRE};
    return vreinterpretq_s16_u16(vaddq_u16(vreinterpretq_u16_s16(row), vld1q_u16(centre)));
}

/* Each transform returns the sums of absolute values of the columns, or the maximum of some of them; a
 * product has at most 27 bits, so these are right even if the pixels are not. */
ST_INLINE uint32x4_t transform_rows(uint8_t *out, size_t stride, const int16_t *coefs,
                                    const struct st_jpeg_quant *quant, const bool half)
{
    const int16x8x2_t f = {{vld1q_s16(factors), vld1q_s16(factors + 8)}};
    const int parts = half ? 2 : 4;
    uint8x16x2_t part[4];
    uint32x4_t low = vdupq_n_u32(0), high = low;
    int16x8_t v[8];
    for (int g = 0; g < parts; g++)
        part[g] = vld1q_u8_x2((const uint8_t *)(coefs + 16 * g));
#pragma GCC unroll 8
    for (int k = 0; k < 8; k++)
        v[k] = multiply(row_of(part, k, parts), vld1q_s16(quant->natural + 8 * k), &low, &high);
    v[0] = around_centre(v[0]);
    const halves left = low_columns(v, half ? SEVEN : EIGHT, f),
                 right = high_columns(v, half ? FOUR : EIGHT, f);
    for (int k = 0; k < 8; k++)
        v[k] = rounded(output(&left, k), output(&right, k));
    turn(v);
    last_pass(out, stride, v, EIGHT, f);
    return vmaxq_u32(low, high);
}

static uint32x4_t transform_full(uint8_t *out, size_t stride, const int16_t *coefs,
                                 const struct st_jpeg_quant *quant)
{
    return transform_rows(out, stride, coefs, quant, false);
}

static uint32x4_t transform_half(uint8_t *out, size_t stride, const int16_t *coefs,
                                 const struct st_jpeg_quant *quant)
{
    return transform_rows(out, stride, coefs, quant, true);
}

/* Four columns of four rows, the rest is 0: rows 0 and 2 are in one vector, 1 and 3 in another. */
static uint32x4_t transform_quarter(uint8_t *out, size_t stride, const int16_t *coefs,
                                    const struct st_jpeg_quant *quant)
{
    const int16x8x2_t f = {{vld1q_s16(factors), vld1q_s16(factors + 8)}};
    const uint8x16x2_t first = vld1q_u8_x2((const uint8_t *)coefs);
    uint32x4_t sums = vdupq_n_u32(0);
    int16x8_t pair[2], v[8];
    for (int k = 0; k < 2; k++) {
        const int16_t *at = quant->natural + 8 * k;
        const int16x8_t rows = vreinterpretq_s16_u8(vqtbl2q_u8(first, vld1q_u8(quarter_places[k])));
        pair[k] = multiply(rows, vcombine_s16(vld1_s16(at), vld1_s16(at + 16)), &sums, &sums);
    }
    pair[0] = around_centre(pair[0]);
    const int16x4_t x[8] = {vget_low_s16(pair[0]), vget_low_s16(pair[1]), vget_high_s16(pair[0]),
                            vget_high_s16(pair[1])};
    const halves all = four_columns(x, FOUR, f);
    for (int k = 0; k < 4; k++)
        v[k] = rounded(output(&all, k), output(&all, k + 4));
    turn_fours(v);
    last_pass(out, stride, v, FOUR, f);
    return sums;
}

static uint32x4_t transform_dc(uint8_t *out, size_t stride, int32_t value)
{
    const int32_t pixel = ((value + 4) >> 3) + 128;
    const uint8x8_t row = vdup_n_u8((uint8_t)(pixel < 0 ? 0 : pixel > 255 ? 255 : pixel));
    for (int y = 0; y < BLOCK; y++)
        vst1_u8(out + (size_t)y * stride, row);
    return vdupq_n_u32((uint32_t)(value < 0 ? -value : value));
}

bool st_jpeg_transform_neon(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks,
                            int32_t count, const struct st_jpeg_quant *quant)
{
    uint32x4_t most = vdupq_n_u32(0);
    for (int32_t k = 0; k < count; k++, out += BLOCK) {
        const int16_t *coefs = blocks[k].coefs;
        const uint32_t end = blocks[k].end;
        uint32x4_t here;
        if (end <= 1)
            here = transform_dc(out, stride, coefs[0] * quant->zigzag[0]);
        else if (end <= ST_IDCT_QUARTER)
            here = transform_quarter(out, stride, coefs, quant);
        else if (end <= HALF)
            here = transform_half(out, stride, coefs, quant);
        else
            here = transform_full(out, stride, coefs, quant);
        most = vmaxq_u32(most, here);
    }
    return vmaxvq_u32(most) <= ST_JPEG_COLUMN_MAX;
}
