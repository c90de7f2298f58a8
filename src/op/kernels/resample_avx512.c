/* resample_avx512.c - resampling with AVX-512 (VBMI, VNNI); see across_x86.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/resample_x86.h"

static const struct st_cut cut = {.values = VALUES, .table = 16, .reach = 64};

/* The byte shuffle has no index that gives zero, so the odd bytes are masked. */
ST_INLINE __m512i unit_taps(const struct st_unit *unit, const uint8_t *row, __m512i index)
{
    const __mmask64 even = 0x5555555555555555;
    return _mm512_maskz_permutexvar_epi8(even, index, load(row + unit->start[0]));
}

/* Each quarter holds four bytes of every row. */
ST_INLINE __m512i row_after_row(__m512i packed)
{
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), packed);
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

const struct st_kernels st_kernels_avx512 = {
    .name = "avx512",
    .across_size = across_size,
    .across_plan = across_plan,
    .across = across,
    .down = down,
    .finish = st_finish_avx512,
};
