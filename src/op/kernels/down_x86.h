/* down_x86.h - the vertical pass, shared by SSE2, AVX2 and AVX-512
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_DOWN_X86_H
#define ST_OP_KERNELS_DOWN_X86_H

#include "base/vectors_x86.h"
#include "op/kernels/across_x86.h"

#include <string.h>

ST_INLINE vector load(const void *from) { return V_BITS(loadu)((const vector *)from); }
ST_INLINE void save(void *to, vector v) { V_BITS(storeu)((vector *)to, v); }

/* The first `count` bytes of a vector, at least one; those loaded beyond them do not matter. */
#if defined(__AVX512BW__)
ST_INLINE __mmask64 first_bytes(size_t count) { return ~(__mmask64)0 >> (sizeof(vector) - count); }

ST_INLINE vector load_first(const void *from, size_t count)
{
    return _mm512_maskz_loadu_epi8(first_bytes(count), from);
}

ST_INLINE void save_first(void *to, vector v, size_t count)
{
    _mm512_mask_storeu_epi8(to, first_bytes(count), v);
}
#else
ST_INLINE vector load_first(const void *from, size_t count)
{
    (void)count;
    return load(from);
}

ST_INLINE void save_first(void *to, vector v, size_t count)
{
    uint8_t bytes[sizeof(vector)];
    save(bytes, v);
    memcpy(to, bytes, count);
}
#endif

/* Combines the sums of low and high parts into integers, not yet clipped. */
ST_INLINE vector settle(vector low, vector high)
{
    return V(srai_epi32)(V(add_epi32)(low, V(slli_epi32)(high, ST_LOW_BITS)), ST_WEIGHT_BITS);
}

/* `bytes` bytes of the output, at most a vector. Unpacking changes their order; packing restores it. */
ST_INLINE vector down_vector(const struct st_down_pair *pairs, int32_t count, size_t x, size_t bytes)
{
    const vector zero = V(set1_epi32)(0);
    vector low[4], high[4];
    for (int i = 0; i < 4; i++) {
        low[i] = V(set1_epi32)(ST_HALF);
        high[i] = zero;
    }
    for (int32_t p = 0; p < count; p++) {
        const vector a = load_first(pairs[p].rows[0] + x, bytes);
        const vector b = load_first(pairs[p].rows[1] + x, bytes);
        const vector first = V(unpacklo_epi8)(a, b), second = V(unpackhi_epi8)(a, b);
        const vector taps[4] = {V(unpacklo_epi8)(first, zero), V(unpackhi_epi8)(first, zero),
                                V(unpacklo_epi8)(second, zero), V(unpackhi_epi8)(second, zero)};
        const vector low_weight = V(set1_epi32)(pairs[p].low);
        const vector high_weight = V(set1_epi32)(pairs[p].high);
        for (int i = 0; i < 4; i++) {
            low[i] = plus_products(low[i], taps[i], low_weight);
            high[i] = plus_products(high[i], taps[i], high_weight);
        }
    }
    const vector words0 = V(packs_epi32)(settle(low[0], high[0]), settle(low[1], high[1]));
    const vector words1 = V(packs_epi32)(settle(low[2], high[2]), settle(low[3], high[3]));
    return V(packus_epi16)(words0, words1);
}

ST_INLINE void down_pairs(uint8_t *out, const struct st_down_pair *pairs, int32_t count, size_t bytes)
{
    size_t x = 0;
    for (; x + sizeof(vector) <= bytes; x += sizeof(vector))
        save(out + x, down_vector(pairs, count, x, sizeof(vector)));
    if (x < bytes)
        save_first(out + x, down_vector(pairs, count, x, bytes - x), bytes - x);
}

static void down(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, int32_t taps,
                 size_t bytes)
{
    st_down_with(down_pairs, out, rows, weight, taps, bytes);
}

#endif
