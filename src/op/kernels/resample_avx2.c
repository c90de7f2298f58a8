/* resample_avx2.c - resampling with AVX2; see across_x86.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/resample_x86.h"

static const struct st_cut cut = {.values = VALUES, .table = 4, .reach = 16};

ST_INLINE __m128i load16(const uint8_t *from) { return _mm_loadu_si128((const __m128i *)from); }

/* ---- horizontal, few taps ---------------------------------------------------------------------- */

ST_INLINE __m256i unit_taps(const struct st_unit *unit, const uint8_t *row, __m256i index)
{
    const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(load16(row + unit->start[0])),
                                                  load16(row + unit->start[1]), 1);
    return _mm256_shuffle_epi8(bytes, index);
}

/* Each half holds four bytes of every row. */
ST_INLINE __m256i row_after_row(__m256i packed)
{
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

ST_INLINE void across_units(const struct st_pairs *plan, uint8_t *const *out, const uint8_t *const *in,
                            int32_t pairs, int32_t channels)
{
    const uint8_t *data = plan->data;
    int32_t at = 0;
    for (; at + VALUES <= plan->values; at += VALUES, data += plan->unit_size) {
        const __m256i done = unit_rows((const struct st_unit *)data, in, pairs, channels);
        const __m128i first = _mm256_castsi256_si128(done), second = _mm256_extracti128_si256(done, 1);
        _mm_storel_epi64((__m128i *)(out[0] + at), first);
        _mm_storeh_pi((__m64 *)(out[1] + at), _mm_castsi128_ps(first));
        _mm_storel_epi64((__m128i *)(out[2] + at), second);
        _mm_storeh_pi((__m64 *)(out[3] + at), _mm_castsi128_ps(second));
    }
    if (at == plan->values)
        return;
    uint64_t done[ROWS];
    save(done, unit_rows((const struct st_unit *)data, in, pairs, channels));
    for (int r = 0; r < ROWS; r++)
        memcpy(out[r] + at, &done[r], (size_t)(plan->values - at));
}

/* ---- horizontal, many taps --------------------------------------------------------------------- */

ST_INLINE uint8_t clip(int32_t value) { return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value); }

/* Adds the halves of both sums; four lanes remain. */
ST_INLINE __m128i wide_settle(__m256i low, __m256i high)
{
    const __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, ST_LOW_BITS));
    return _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
}

static void wide_row1(const struct st_pairs *plan, uint8_t *out, const uint8_t *in)
{
    const int32_t *weight = (const int32_t *)plan->data;
    for (int32_t o = 0; o < plan->values; o++, weight += 2 * plan->pairs) {
        const uint8_t *from = in + plan->first[o];
        __m256i low = _mm256_setzero_si256(), high = low;
        for (int32_t p = 0; p < plan->pairs; p += 8) {
            const __m256i taps = _mm256_cvtepu8_epi16(load16(from + 2 * p));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, load(weight + p)));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, load(weight + plan->pairs + p)));
        }
        __m128i sum = wide_settle(low, high);
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
        sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(ST_HALF)), ST_WEIGHT_BITS);
        out[o] = clip(_mm_cvtsi128_si32(sum));
    }
}

/* Two 32-bit weights: the first in all lanes of the lower half, the second in the upper. */
ST_INLINE __m256i both_pairs(const int32_t *weight)
{
    int64_t two;
    memcpy(&two, weight, sizeof two);
    return _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(two),
                                       _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

static void wide_row3(const struct st_pairs *plan, uint8_t *out, const uint8_t *in)
{
    /* Of 16 bytes, the lower half takes pixels 0 and 1, the upper 2 and 3: red, green, blue, unused. */
    const __m256i index = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,
                                           6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const int32_t *weight = (const int32_t *)plan->data;
    for (int32_t v = 0; v < plan->values; v += 3, weight += 2 * plan->pairs) {
        const uint8_t *from = in + (ptrdiff_t)plan->first[v / 3] * 3;
        __m256i low = _mm256_setzero_si256(), high = low;
        for (int32_t p = 0; p < plan->pairs; p += 2, from += 12) {
            const __m256i taps = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load16(from)), index);
            low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, both_pairs(weight + p)));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, both_pairs(weight + plan->pairs + p)));
        }
        const __m128i sum = _mm_add_epi32(wide_settle(low, high), _mm_set1_epi32(ST_HALF));
        const __m128i value = _mm_srai_epi32(sum, ST_WEIGHT_BITS);
        out[v] = clip(_mm_cvtsi128_si32(value));
        out[v + 1] = clip(_mm_extract_epi32(value, 1));
        out[v + 2] = clip(_mm_extract_epi32(value, 2));
    }
}

void st_across_wide_avx2(const struct st_pairs *plan, uint8_t *const *out, const uint8_t *const *in,
                         int32_t rows)
{
    for (int32_t y = 0; y < rows; y++)
        if (plan->channels == 1)
            wide_row1(plan, out[y], in[y]);
        else
            wide_row3(plan, out[y], in[y]);
}

const struct st_kernels st_kernels_avx2 = {
    .name = "avx2",
    .across_size = across_size,
    .across_plan = across_plan,
    .across = across,
    .down = down,
    .finish = st_finish_avx2,
};
