/* transform_neon.c - the inverse DCT for aarch64, one block at a time
 *
 * Eight columns are eight lanes. The transform runs down the columns, the block is turned, it runs
 * again, and the result is turned back on its way to memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_isa.h"
#include "codec/jpeg/transform.h"

#include <arm_neon.h>

enum { BLOCK = 8 };

/* The place, in bytes of the 128 in zigzag order, of each coefficient in natural order. */
#define AT(k) 2 * (k), 2 * (k) + 1
static const uint8_t zigzag_bytes[8][16] = {
    {AT(0), AT(1), AT(5), AT(6), AT(14), AT(15), AT(27), AT(28)},
    {AT(2), AT(4), AT(7), AT(13), AT(16), AT(26), AT(29), AT(42)},
    {AT(3), AT(8), AT(12), AT(17), AT(25), AT(30), AT(41), AT(43)},
    {AT(9), AT(11), AT(18), AT(24), AT(31), AT(40), AT(44), AT(53)},
    {AT(10), AT(19), AT(23), AT(32), AT(39), AT(45), AT(52), AT(54)},
    {AT(20), AT(22), AT(33), AT(38), AT(46), AT(51), AT(55), AT(60)},
    {AT(21), AT(34), AT(37), AT(47), AT(50), AT(56), AT(59), AT(61)},
    {AT(35), AT(36), AT(48), AT(49), AT(57), AT(58), AT(62), AT(63)},
};

typedef struct {
    int32x4_t v[8];
} rows32;

/* One pass over four columns: the eight outputs before rounding and shifting. */
static inline rows32 four_columns(const int16x4_t x[8], const bool quarter)
{
    rows32 out;
    const int32x4_t x0 = vshll_n_s16(x[0], ST_IDCT_BITS);
    const int32x4_t x4 = quarter ? vdupq_n_s32(0) : vshll_n_s16(x[4], ST_IDCT_BITS);
    const int32x4_t sum = vaddq_s32(x0, x4), difference = vsubq_s32(x0, x4);
    int32x4_t a = vmull_n_s16(x[2], ST_IDCT_E2A), b = vmull_n_s16(x[2], ST_IDCT_E2B), odd[4];
    odd[0] = vmlal_n_s16(vmull_n_s16(x[1], ST_IDCT_01), x[3], ST_IDCT_03);
    odd[1] = vmlal_n_s16(vmull_n_s16(x[1], ST_IDCT_11), x[3], ST_IDCT_13);
    odd[2] = vmlal_n_s16(vmull_n_s16(x[1], ST_IDCT_21), x[3], ST_IDCT_23);
    odd[3] = vmlal_n_s16(vmull_n_s16(x[1], ST_IDCT_31), x[3], ST_IDCT_33);
    if (!quarter) {
        a = vmlal_n_s16(a, x[6], ST_IDCT_E6A);
        b = vmlal_n_s16(b, x[6], ST_IDCT_E6B);
        odd[0] = vmlal_n_s16(vmlal_n_s16(odd[0], x[5], ST_IDCT_05), x[7], ST_IDCT_07);
        odd[1] = vmlal_n_s16(vmlal_n_s16(odd[1], x[5], ST_IDCT_15), x[7], ST_IDCT_17);
        odd[2] = vmlal_n_s16(vmlal_n_s16(odd[2], x[5], ST_IDCT_25), x[7], ST_IDCT_27);
        odd[3] = vmlal_n_s16(vmlal_n_s16(odd[3], x[5], ST_IDCT_35), x[7], ST_IDCT_37);
    }
    const int32x4_t even[4] = {vaddq_s32(sum, a), vaddq_s32(difference, b), vsubq_s32(difference, b),
                               vsubq_s32(sum, a)};
    for (int k = 0; k < 4; k++) {
        out.v[k] = vaddq_s32(even[k], odd[k]);
        out.v[7 - k] = vsubq_s32(even[k], odd[k]);
    }
    return out;
}

static inline rows32 low_columns(const int16x8_t v[8], const bool quarter)
{
    int16x4_t x[8];
    for (int k = 0; k < (quarter ? 4 : 8); k++)
        x[k] = vget_low_s16(v[k]);
    return four_columns(x, quarter);
}

static inline rows32 high_columns(const int16x8_t v[8], const bool quarter)
{
    int16x4_t x[8];
    for (int k = 0; k < (quarter ? 4 : 8); k++)
        x[k] = vget_high_s16(v[k]);
    return four_columns(x, quarter);
}

static inline void turn(int16x8_t v[8])
{
    int16x8_t a[8];
    int32x4_t b[8];
    for (int k = 0; k < 8; k += 2) {
        a[k] = vtrn1q_s16(v[k], v[k + 1]);
        a[k + 1] = vtrn2q_s16(v[k], v[k + 1]);
    }
    for (int k = 0; k < 8; k += 4)
        for (int j = k; j < k + 2; j++) {
            const int32x4_t upper = vreinterpretq_s32_s16(a[j]), lower = vreinterpretq_s32_s16(a[j + 2]);
            b[j] = vtrn1q_s32(upper, lower);
            b[j + 2] = vtrn2q_s32(upper, lower);
        }
    for (int k = 0; k < 4; k++) {
        const int64x2_t left = vreinterpretq_s64_s32(b[k]), right = vreinterpretq_s64_s32(b[k + 4]);
        v[k] = vreinterpretq_s16_s64(vtrn1q_s64(left, right));
        v[k + 4] = vreinterpretq_s16_s64(vtrn2q_s64(left, right));
    }
}

/* The second pass and the way to memory; v holds the columns of the block. */
static inline void last_pass(uint8_t *out, size_t stride, const int16x8_t v[8], const bool quarter)
{
    const rows32 low = low_columns(v, quarter), high = high_columns(v, quarter);
    int8x8_t column[8];
    for (int k = 0; k < 8; k++) {
        const int16x8_t both = vcombine_s16(vshrn_n_s32(low.v[k], 16), vshrn_n_s32(high.v[k], 16));
        column[k] = vqrshrn_n_s16(both, ST_IDCT_SHIFT_2 - 16);
    }
    int8x16_t a[4], b[4];
    for (int k = 0; k < 4; k++) /* columns k and k + 4 beside each other */
        a[k] = vzip1q_s8(vcombine_s8(column[k], column[k]), vcombine_s8(column[k + 4], column[k + 4]));
    b[0] = vzip1q_s8(a[0], a[2]);
    b[1] = vzip2q_s8(a[0], a[2]);
    b[2] = vzip1q_s8(a[1], a[3]);
    b[3] = vzip2q_s8(a[1], a[3]);
    const uint8x16_t centre = vdupq_n_u8(128);
    for (int k = 0; k < 2; k++) {
        const uint8x16_t upper = vaddq_u8(vreinterpretq_u8_s8(vzip1q_s8(b[k], b[k + 2])), centre);
        const uint8x16_t lower = vaddq_u8(vreinterpretq_u8_s8(vzip2q_s8(b[k], b[k + 2])), centre);
        vst1_u8(out, vget_low_u8(upper));
        vst1_u8(out + stride, vget_high_u8(upper));
        vst1_u8(out + 2 * stride, vget_low_u8(lower));
        vst1_u8(out + 3 * stride, vget_high_u8(lower));
        out += 4 * stride;
    }
}

/* Each transform returns the sums of absolute values of the columns, or the greatest of some of them; a
 * product has at most 27 bits, so they are right even where the pixels are not.
 *
 * `half`: no more than 32 coefficients, which one table holds. */
static inline __attribute__((always_inline)) uint32x4_t transform_rows(uint8_t *out, size_t stride,
                                                                       const int16_t *coefs,
                                                                       const struct st_jpeg_quant *quant,
                                                                       const bool half)
{
    const uint8x16x4_t first = vld1q_u8_x4((const uint8_t *)coefs);
    const uint8x16x4_t second = vld1q_u8_x4((const uint8_t *)(coefs + 32));
    const uint8x16_t table = vdupq_n_u8(64);
    uint32x4_t low = vdupq_n_u32(0), high = low;
    int16x8_t v[8];
    for (int k = 0; k < 8; k++) {
        const uint8x16_t at = vld1q_u8(zigzag_bytes[k]);
        uint8x16_t bytes = k < 7 ? vqtbl4q_u8(first, at) : vdupq_n_u8(0);
        if (k > 0 && !half)
            bytes = vqtbx4q_u8(bytes, second, vsubq_u8(at, table));
        const int16x8_t row = vreinterpretq_s16_u8(bytes);
        const uint16x8_t steps = vreinterpretq_u16_s16(vld1q_s16(quant->natural + 8 * k));
        const uint16x8_t size = vreinterpretq_u16_s16(vabsq_s16(row));
        low = vmlal_u16(low, vget_low_u16(size), vget_low_u16(steps));
        high = vmlal_high_u16(high, size, steps);
        v[k] = vreinterpretq_s16_u16(vmulq_u16(vreinterpretq_u16_s16(row), steps));
    }
    const rows32 left = low_columns(v, false), right = high_columns(v, false);
    for (int k = 0; k < 8; k++)
        v[k] = vrshrn_high_n_s32(vrshrn_n_s32(left.v[k], ST_IDCT_SHIFT_1), right.v[k], ST_IDCT_SHIFT_1);
    turn(v);
    last_pass(out, stride, v, false);
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

/* Four columns of four rows, the rest is 0. */
static uint32x4_t transform_quarter(uint8_t *out, size_t stride, const int16_t *coefs,
                                    const struct st_jpeg_quant *quant)
{
    static const uint8_t bytes[2][16] = {{AT(0), AT(1), AT(5), AT(6), AT(2), AT(4), AT(7), AT(13)},
                                         {AT(3), AT(8), AT(12), AT(15), AT(9), AT(11), AT(14), AT(15)}};
    const uint8x16x2_t first = vld1q_u8_x2((const uint8_t *)coefs);
    uint32x4_t sums = vdupq_n_u32(0);
    int16x4_t x[8];
    for (int k = 0; k < 2; k++) {
        const int16x8_t rows = vreinterpretq_s16_u8(vqtbl2q_u8(first, vld1q_u8(bytes[k])));
        const int16_t *at = quant->natural + 16 * k;
        const uint16x8_t steps = vreinterpretq_u16_s16(vcombine_s16(vld1_s16(at), vld1_s16(at + 8)));
        const uint16x8_t size = vreinterpretq_u16_s16(vabsq_s16(rows));
        sums = vmlal_u16(sums, vget_low_u16(size), vget_low_u16(steps));
        sums = vmlal_high_u16(sums, size, steps);
        const int16x8_t values = vreinterpretq_s16_u16(vmulq_u16(vreinterpretq_u16_s16(rows), steps));
        x[2 * k] = vget_low_s16(values);
        x[2 * k + 1] = vget_high_s16(values);
    }
    const rows32 left = four_columns(x, true);
    int16x8_t v[8];
    for (int k = 0; k < 8; k++) {
        const int16x4_t row = vrshrn_n_s32(left.v[k], ST_IDCT_SHIFT_1);
        v[k] = vcombine_s16(row, row);
    }
    turn(v);
    last_pass(out, stride, v, true);
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
        else if (end <= 32)
            here = transform_half(out, stride, coefs, quant);
        else
            here = transform_full(out, stride, coefs, quant);
        most = vmaxq_u32(most, here);
    }
    return vmaxvq_u32(most) <= ST_JPEG_COLUMN_MAX;
}
