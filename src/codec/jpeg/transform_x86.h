/* transform_x86.h - the inverse DCT shared by SSE2, AVX2 and AVX-512
 *
 * Each group of 128 bits in a vector works on its own block. The x86 multiplication takes pairs of
 * 16-bit integers and adds the two products. The transform needs rows 0 and 4, 1 and 3, 2 and 6, 5 and 7
 * of a column together, so the zigzag order is rearranged into eight pieces of 128 bits, each holding a
 * pair of rows for four columns: first columns 0, 4, 1, 3, then 2, 6, 5, 7. In this order, the results
 * of the first pass, row by row, are already the pairs that the second pass needs.
 *
 * The including file defines the functions declared here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_TRANSFORM_X86_H
#define ST_CODEC_JPEG_TRANSFORM_X86_H

#include "codec/jpeg/transform.h"
#include "codec/jpeg/vectors_x86.h"

/* Positions in zigzag order, for each piece. */
#define PIECES(X) \
    X(0, 10, 14, 39, 1, 19, 6, 32),    /* rows 0 and 4 */ \
    X(2, 9, 16, 31, 4, 11, 13, 24),    /* rows 1 and 3 */ \
    X(3, 21, 25, 50, 8, 34, 17, 47),   /* rows 2 and 6 */ \
    X(20, 35, 46, 57, 22, 36, 38, 49), /* rows 5 and 7 */ \
    X(5, 23, 27, 52, 15, 45, 28, 54),  /* the same for the other columns */ \
    X(7, 18, 29, 44, 26, 40, 42, 53), \
    X(12, 37, 41, 59, 30, 56, 43, 61), \
    X(33, 48, 55, 62, 51, 58, 60, 63)

/* The same for the upper left quarter alone, columns 0, 2, 1, 3: rows 0 and 2, rows 1 and 3. Position 15
 * stands for zero. */
#define QUARTER_02(X) X(0, 3, 5, 15, 1, 8, 6, 15)
#define QUARTER_13(X) X(2, 9, 7, 15, 4, 15, 15, 15)

enum {
    BLOCK = 8,
    BLOCKS = sizeof(vector) / 16,
    /* With at most this many coefficients, the second half of the zigzag order is zero. */
    HALF = 32,
    ONE = 1 << ST_IDCT_BITS,
    ROUND_1 = 1 << (ST_IDCT_SHIFT_1 - 1),
    /* Pixels are centred at 128. */
    ROUND_2 = (1 << (ST_IDCT_SHIFT_2 - 1)) + (128 << ST_IDCT_SHIFT_2),
};

typedef struct {
    vector v[8];
} vectors;

/* Rearranges zigzag order to pieces. `half`: there are at most HALF coefficients. */
ST_INLINE void arrange(vectors *pieces, const int16_t *const *coefs, const bool half);
ST_INLINE void arrange_quarter(vector pieces[2], const int16_t *const *coefs);
/* Stores four rows of pixels, 32-bit integers, given as columns. */
ST_INLINE void save_rows(uint8_t *out, size_t stride, const vectors *columns);
/* Stores one row of a block for each of the 32-bit integers, clipped. */
ST_INLINE void save_flat(uint8_t *out, size_t stride, __m128i pixels);
ST_INLINE vector widen(__m128i v);
/* The maximum of each two 32-bit integers. */
ST_INLINE vector greater(vector a, vector b);
/* For each 128 bits: pairs 0 and 2 of a, then of b; pairs 1 and 3. */
ST_INLINE vector even_pairs(vector a, vector b);
ST_INLINE vector odd_pairs(vector a, vector b);

/* ---- the passes -------------------------------------------------------------------------------- */

ST_INLINE vectors add_odd(const vector even[4], const vector odd[4], const int shift)
{
    vectors out;
    for (int k = 0; k < 4; k++) {
        out.v[k] = V(srai_epi32)(V(add_epi32)(even[k], odd[k]), shift);
        out.v[7 - k] = V(srai_epi32)(V(sub_epi32)(even[k], odd[k]), shift);
    }
    return out;
}

/* Four columns of each block, given as rows 0 and 4, 1 and 3, 2 and 6, 5 and 7. */
ST_INLINE vectors pass(const vector in[4], const int round, const int shift)
{
    const vector half = V(set1_epi32)(round);
    const vector sum = plus_times(half, in[0], ONE, ONE),
                 difference = plus_times(half, in[0], ONE, -ONE);
    const vector a = times(in[2], ST_IDCT_E2A, ST_IDCT_E6A), b = times(in[2], ST_IDCT_E2B, ST_IDCT_E6B);
    const vector even[4] = {V(add_epi32)(sum, a), V(add_epi32)(difference, b),
                            V(sub_epi32)(difference, b), V(sub_epi32)(sum, a)};
    const vector odd[4] = {
        plus_times(times(in[1], ST_IDCT_01, ST_IDCT_03), in[3], ST_IDCT_05, ST_IDCT_07),
        plus_times(times(in[1], ST_IDCT_11, ST_IDCT_13), in[3], ST_IDCT_15, ST_IDCT_17),
        plus_times(times(in[1], ST_IDCT_21, ST_IDCT_23), in[3], ST_IDCT_25, ST_IDCT_27),
        plus_times(times(in[1], ST_IDCT_31, ST_IDCT_33), in[3], ST_IDCT_35, ST_IDCT_37)};
    return add_odd(even, odd, shift);
}

/* The same if only rows 0 to 3 are nonzero, given as rows 0 and 2, 1 and 3. */
ST_INLINE vectors pass_quarter(const vector in[2], const int round, const int shift)
{
    const vector half = V(set1_epi32)(round);
    const vector even[4] = {
        plus_times(half, in[0], ONE, ST_IDCT_E2A), plus_times(half, in[0], ONE, ST_IDCT_E2B),
        plus_times(half, in[0], ONE, -ST_IDCT_E2B), plus_times(half, in[0], ONE, -ST_IDCT_E2A)};
    const vector odd[4] = {times(in[1], ST_IDCT_01, ST_IDCT_03), times(in[1], ST_IDCT_11, ST_IDCT_13),
                           times(in[1], ST_IDCT_21, ST_IDCT_23), times(in[1], ST_IDCT_31, ST_IDCT_33)};
    return add_odd(even, odd, shift);
}

/* Transposes four rows of pairs to four vectors that each hold one pair of every row. */
ST_INLINE void turn(vector pairs[4], const vector rows[4])
{
    const vector a = V(unpacklo_epi32)(rows[0], rows[1]), b = V(unpacklo_epi32)(rows[2], rows[3]);
    const vector c = V(unpackhi_epi32)(rows[0], rows[1]), d = V(unpackhi_epi32)(rows[2], rows[3]);
    pairs[0] = V(unpacklo_epi64)(a, b);
    pairs[1] = V(unpackhi_epi64)(a, b);
    pairs[2] = V(unpacklo_epi64)(c, d);
    pairs[3] = V(unpackhi_epi64)(c, d);
}

/* ---- blocks ------------------------------------------------------------------------------------ */

/* Multiplies coefficients by steps; returns the column sums of their absolute values. */
ST_INLINE vector multiply(vector *pieces, const vector *steps, const int count)
{
    vector sums = no_bits();
    for (int p = 0; p < count; p++) {
        const vector sizes = V(max_epi16)(pieces[p], V(subs_epi16)(no_bits(), pieces[p]));
        sums = plus_products(sums, sizes, steps[p]);
        pieces[p] = V(mullo_epi16)(pieces[p], steps[p]);
    }
    return sums;
}

/* This and the next two return column sums of absolute values, which must not exceed the limit. */
ST_INLINE vector transform_full(uint8_t *out, size_t stride, const int16_t *const *coefs,
                                const vectors *steps, const bool half)
{
    vectors pieces;
    vector rows[8], pairs[4];
    arrange(&pieces, coefs, half);
    const vector sums = multiply(pieces.v, steps->v, 4), more = multiply(pieces.v + 4, steps->v + 4, 4);
    const vectors left = pass(pieces.v, ROUND_1, ST_IDCT_SHIFT_1);
    const vectors right = pass(pieces.v + 4, ROUND_1, ST_IDCT_SHIFT_1);
    for (int k = 0; k < 8; k++)
        rows[k] = V(packs_epi32)(left.v[k], right.v[k]);
    for (int k = 0; k < 8; k += 4) {
        turn(pairs, rows + k);
        const vectors columns = pass(pairs, ROUND_2, ST_IDCT_SHIFT_2);
        save_rows(out + (size_t)k * stride, stride, &columns);
    }
    return greater(sums, more);
}

ST_INLINE vector transform_quarter(uint8_t *out, size_t stride, const int16_t *const *coefs,
                                   const vector steps[2])
{
    vector pieces[2];
    arrange_quarter(pieces, coefs);
    const vector sums = multiply(pieces, steps, 2);
    const vectors rows = pass_quarter(pieces, ROUND_1, ST_IDCT_SHIFT_1);
    for (int k = 0; k < 8; k += 4) {
        const vector upper = V(packs_epi32)(rows.v[k], rows.v[k + 1]);
        const vector lower = V(packs_epi32)(rows.v[k + 2], rows.v[k + 3]);
        const vector pairs[2] = {even_pairs(upper, lower), odd_pairs(upper, lower)};
        const vectors columns = pass_quarter(pairs, ROUND_2, ST_IDCT_SHIFT_2);
        save_rows(out + (size_t)k * stride, stride, &columns);
    }
    return sums;
}

ST_INLINE vector transform_dc(uint8_t *out, size_t stride, const int16_t *const *coefs, const int step)
{
    const __m128i values = _mm_setr_epi32(coefs[0][0] * step, coefs[1 % BLOCKS][0] * step,
                                          coefs[2 % BLOCKS][0] * step, coefs[3 % BLOCKS][0] * step);
    const __m128i negative = _mm_srai_epi32(values, 31);
    save_flat(out, stride, _mm_srai_epi32(_mm_add_epi32(values, _mm_set1_epi32(4 + 128 * 8)), 3));
    return widen(_mm_sub_epi32(_mm_xor_si128(values, negative), negative));
}

/* Returns the column sums of absolute values of all blocks. */
ST_INLINE vector transform(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks,
                           int32_t count, const struct st_jpeg_quant *quant)
{
    const int16_t *coefs[BLOCKS];
    vectors steps;
    vector quarter_steps[2], most = no_bits();
    for (int32_t j = 0; j < BLOCKS; j++)
        coefs[j] = quant->zigzag;
    arrange(&steps, coefs, false);
    arrange_quarter(quarter_steps, coefs);
    for (int32_t k = 0; k < count; k += BLOCKS, out += BLOCKS * BLOCK) {
        uint32_t end = 0;
        for (int32_t j = 0; j < BLOCKS; j++) {
            const struct st_jpeg_block *block = &blocks[k + j < count ? k + j : count - 1];
            coefs[j] = block->coefs;
            end = block->end > end ? block->end : end;
        }
        vector sums;
        if (end <= 1)
            sums = transform_dc(out, stride, coefs, quant->zigzag[0]);
        else if (end <= ST_IDCT_QUARTER)
            sums = transform_quarter(out, stride, coefs, quarter_steps);
        else if (end <= HALF)
            sums = transform_full(out, stride, coefs, &steps, true);
        else
            sums = transform_full(out, stride, coefs, &steps, false);
        most = greater(most, sums);
    }
    return most;
}

#endif
