/* resample_sse2.c - resampling for any x86-64; see across_x86.h
 *
 * SSE2 cannot shuffle bytes, so the horizontal pass makes one output pixel at a time: two adjacent input
 * pixels lie in eight bytes, and two unpack instructions pair up their colours. The weights are laid out
 * as vectors beforehand.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/down_x86.h"

enum { ROWS = ST_ROWS };

/* ---- horizontal -------------------------------------------------------------------------------- */

struct weights {
    _Alignas(16) int32_t low[4], high[4];
};

/* One channel is rare and left to plain C, whose plan then takes the place of the weights. */
struct plan {
    const struct st_taps *taps;
    int32_t channels, pairs;
    struct weights weights[]; /* [output pixel][pair] */
};

static uint64_t across_size(const struct st_taps *taps, int32_t channels)
{
    const uint64_t pairs = (uint64_t)taps->count * (((uint64_t)taps->width + 1) / 2);
    return sizeof(struct plan) + (channels == 1 ? st_kernels_c.across_size(taps, channels)
                                                : pairs * sizeof(struct weights));
}

static void plan_weights(struct weights *to, const struct st_taps *taps)
{
    const int32_t *weight = taps->weight;
    for (int32_t o = 0; o < taps->count; o++, weight += taps->width)
        for (int32_t t = 0; t < taps->width; t += 2, to++) {
            const int32_t a = weight[t], b = t + 1 < taps->width ? weight[t + 1] : 0;
            for (int k = 0; k < 4; k++) {
                to->low[k] = st_pair_low(a, b);
                to->high[k] = st_pair_high(a, b);
            }
        }
}

static void across_plan(void *memory, const struct st_taps *taps, int32_t channels)
{
    struct plan *plan = memory;
    *plan = (struct plan){taps, channels, (taps->width + 1) / 2};
    if (channels == 1)
        st_kernels_c.across_plan(plan->weights, taps, channels);
    else
        plan_weights(plan->weights, taps);
}

/* The colours of two adjacent pixels as pairs of 16 bits; the fourth pair is unused. */
ST_INLINE __m128i two_pixels(const uint8_t *from)
{
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)from);
    const __m128i words = _mm_unpacklo_epi8(bytes, _mm_setzero_si128());
    return _mm_unpacklo_epi16(words, _mm_srli_si128(words, 3 * sizeof(int16_t)));
}

/* One output pixel of four rows, four bytes each. */
ST_INLINE __m128i pixel_rows(const struct weights *weights, const uint8_t *const *in, size_t at,
                             int32_t pairs)
{
    __m128i low[ROWS], high[ROWS];
    for (int r = 0; r < ROWS; r++) {
        low[r] = _mm_set1_epi32(ST_HALF);
        high[r] = _mm_setzero_si128();
    }
    for (int32_t p = 0; p < pairs; p++)
        for (int r = 0; r < ROWS; r++) {
            const __m128i taps = two_pixels(in[r] + at + 6 * (size_t)p);
            low[r] = _mm_add_epi32(low[r], _mm_madd_epi16(taps, load(weights[p].low)));
            high[r] = _mm_add_epi32(high[r], _mm_madd_epi16(taps, load(weights[p].high)));
        }
    return _mm_packus_epi16(
        _mm_packs_epi32(settle(low[0], high[0]), settle(low[1], high[1])),
        _mm_packs_epi32(settle(low[2], high[2]), settle(low[3], high[3])));
}

ST_INLINE void across_rows(const struct plan *plan, uint8_t *const *out, const uint8_t *const *in,
                           const int32_t pairs)
{
    const struct weights *weights = plan->weights;
    const int32_t *first = plan->taps->first, last = plan->taps->count - 1;
    for (int32_t o = 0; o <= last; o++, weights += pairs) {
        uint32_t done[ROWS];
        _mm_storeu_si128((__m128i *)done, pixel_rows(weights, in, (size_t)first[o] * 3, pairs));
        /* The extra byte is overwritten by the next pixel, if there is one. */
        for (int r = 0; r < ROWS; r++)
            memcpy(out[r] + 3 * o, &done[r], o < last ? 4 : 3);
    }
}

ST_INLINE void four_rows(const void *memory, uint8_t *const *out, const uint8_t *const *in,
                         int32_t channels)
{
    const struct plan *plan = memory;
    (void)channels;
    if (plan->pairs == 1)
        across_rows(plan, out, in, 1);
    else if (plan->pairs == 2)
        across_rows(plan, out, in, 2);
    else
        across_rows(plan, out, in, plan->pairs);
}

static void across(const void *memory, uint8_t *const *out, const uint8_t *const *in, int32_t rows)
{
    const struct plan *plan = memory;
    if (plan->channels == 1)
        st_kernels_c.across(plan->weights, out, in, rows);
    else
        st_by_four_rows(four_rows, plan, 3, out, in, rows);
}

const struct st_kernels st_kernels_sse2 = {
    .name = "sse2",
    .across_size = across_size,
    .across_plan = across_plan,
    .across = across,
    .down = down,
    .finish = st_finish_c,
};
