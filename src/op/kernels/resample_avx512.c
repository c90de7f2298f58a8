/* resample_avx512.c - resampling with AVX-512 (VBMI, VNNI); see across_x86.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/across_x86.h"

#include <immintrin.h>

enum { ROWS = ST_ROWS };
static const struct st_cut cut = {.values = 16, .table = 16, .reach = 64};

static uint64_t across_size(const struct st_taps *taps, int32_t channels)
{
    return st_pairs_size(taps, channels, cut);
}

static void across_plan(void *plan, const struct st_taps *taps, int32_t channels)
{
    st_pairs_plan(plan, taps, channels, cut);
}

/* Combines the sums of low and high parts into integers, not yet clipped. */
ST_INLINE __m512i settle(__m512i low, __m512i high)
{
    return _mm512_srai_epi32(_mm512_add_epi32(low, _mm512_slli_epi32(high, ST_LOW_BITS)),
                             ST_WEIGHT_BITS);
}

/* One unit of four rows, sixteen bytes each, row after row. The byte shuffle has no index that gives
 * zero, so the odd bytes are masked. */
ST_INLINE __m512i unit_rows(const struct st_unit *unit, const uint8_t *const *in, int32_t pairs,
                            int32_t channels)
{
    const __mmask64 even = 0x5555555555555555;
    const __m512i index = _mm512_loadu_si512(unit->index);
    __m512i low[ROWS], high[ROWS];
    for (int r = 0; r < ROWS; r++) {
        low[r] = _mm512_set1_epi32(ST_HALF);
        high[r] = _mm512_setzero_si512();
    }
    for (int32_t p = 0; p < pairs; p++) {
        const __m512i low_weight = _mm512_loadu_si512(unit->weight + p * 32);
        const __m512i high_weight = _mm512_loadu_si512(unit->weight + p * 32 + 16);
        for (int r = 0; r < ROWS; r++) {
            const __m512i bytes = _mm512_loadu_si512(in[r] + unit->start[0] + p * 2 * channels);
            const __m512i taps = _mm512_maskz_permutexvar_epi8(even, index, bytes);
            low[r] = _mm512_dpwssd_epi32(low[r], taps, low_weight);
            high[r] = _mm512_dpwssd_epi32(high[r], taps, high_weight);
        }
    }
    const __m512i words01 = _mm512_packs_epi32(settle(low[0], high[0]), settle(low[1], high[1]));
    const __m512i words23 = _mm512_packs_epi32(settle(low[2], high[2]), settle(low[3], high[3]));
    /* Each quarter now holds four bytes of every row. */
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
        _mm512_packus_epi16(words01, words23));
}

/* Stores the bytes selected by `mask` of each of the four rows. */
ST_INLINE void store_rows(uint8_t *const *out, int32_t at, __mmask16 mask, __m512i rows)
{
    _mm_mask_storeu_epi8(out[0] + at, mask, _mm512_castsi512_si128(rows));
    _mm_mask_storeu_epi8(out[1] + at, mask, _mm512_extracti32x4_epi32(rows, 1));
    _mm_mask_storeu_epi8(out[2] + at, mask, _mm512_extracti32x4_epi32(rows, 2));
    _mm_mask_storeu_epi8(out[3] + at, mask, _mm512_extracti32x4_epi32(rows, 3));
}

ST_INLINE void across_units(const struct st_pairs *plan, uint8_t *const *out, const uint8_t *const *in,
                            int32_t pairs, int32_t channels)
{
    const uint8_t *data = plan->data;
    int32_t at = 0;
    for (; at + 16 <= plan->values; at += 16, data += plan->unit_size)
        store_rows(out, at, 0xffff, unit_rows((const struct st_unit *)data, in, pairs, channels));
    if (at < plan->values)
        store_rows(out, at, (__mmask16)((1u << (plan->values - at)) - 1),
                   unit_rows((const struct st_unit *)data, in, pairs, channels));
}

ST_INLINE void four_rows(const void *plan, uint8_t *const *out, const uint8_t *const *in,
                         int32_t channels)
{
    st_few_pairs(across_units, plan, out, in, channels);
}

static void across(const void *memory, uint8_t *const *out, const uint8_t *const *in, int32_t rows)
{
    const struct st_pairs *plan = memory;
    if (plan->wide)
        st_across_wide_avx2(plan, out, in, rows);
    else
        st_by_four_rows(four_rows, plan, plan->channels, out, in, rows);
}

/* ---- vertical ---------------------------------------------------------------------------------- */

/* The bytes selected by `mask`, from `x` on. Unpacking changes their order; packing restores it. */
ST_INLINE __m512i down64(const struct st_down_pair *pairs, int32_t count, size_t x, __mmask64 mask)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i low[4], high[4];
    for (int i = 0; i < 4; i++) {
        low[i] = _mm512_set1_epi32(ST_HALF);
        high[i] = zero;
    }
    for (int32_t p = 0; p < count; p++) {
        const __m512i a = _mm512_maskz_loadu_epi8(mask, pairs[p].rows[0] + x);
        const __m512i b = _mm512_maskz_loadu_epi8(mask, pairs[p].rows[1] + x);
        const __m512i first = _mm512_unpacklo_epi8(a, b), second = _mm512_unpackhi_epi8(a, b);
        const __m512i taps[4] = {_mm512_unpacklo_epi8(first, zero), _mm512_unpackhi_epi8(first, zero),
                                 _mm512_unpacklo_epi8(second, zero), _mm512_unpackhi_epi8(second, zero)};
        const __m512i low_weight = _mm512_set1_epi32(pairs[p].low);
        const __m512i high_weight = _mm512_set1_epi32(pairs[p].high);
        for (int i = 0; i < 4; i++) {
            low[i] = _mm512_dpwssd_epi32(low[i], taps[i], low_weight);
            high[i] = _mm512_dpwssd_epi32(high[i], taps[i], high_weight);
        }
    }
    const __m512i words0 = _mm512_packs_epi32(settle(low[0], high[0]), settle(low[1], high[1]));
    const __m512i words1 = _mm512_packs_epi32(settle(low[2], high[2]), settle(low[3], high[3]));
    return _mm512_packus_epi16(words0, words1);
}

ST_INLINE void down_pairs(uint8_t *out, const struct st_down_pair *pairs, int32_t count, size_t bytes)
{
    size_t x = 0;
    for (; x + 64 <= bytes; x += 64)
        _mm512_storeu_si512(out + x, down64(pairs, count, x, ~(__mmask64)0));
    if (x < bytes) {
        const __mmask64 mask = ((__mmask64)1 << (bytes - x)) - 1;
        _mm512_mask_storeu_epi8(out + x, mask, down64(pairs, count, x, mask));
    }
}

static void down(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, int32_t taps,
                 size_t bytes)
{
    st_down_with(down_pairs, out, rows, weight, taps, bytes);
}

const struct st_kernels st_kernels_avx512 = {
    .name = "avx512",
    .across_size = across_size,
    .across_plan = across_plan,
    .across = across,
    .down = down,
    .mirror = st_mirror_avx512,
    .finish = st_finish_avx512,
};
