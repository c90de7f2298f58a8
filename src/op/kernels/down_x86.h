/* down_x86.h - the vertical pass shared by SSE2 and AVX2
 *
 * The including file defines the functions declared here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_DOWN_X86_H
#define ST_OP_KERNELS_DOWN_X86_H

#include "base/vectors_x86.h"
#include "op/kernels/across_x86.h"

#include <string.h>

ST_INLINE vector load(const void *from);
ST_INLINE void save(void *to, vector v);
/* Combines the sums of low and high parts into integers, not yet clipped. */
ST_INLINE vector settle(vector low, vector high);

/* One vector of bytes. Unpacking changes their order; packing restores it. */
ST_INLINE void down_vector(uint8_t *out, const struct st_down_pair *pairs, int32_t count, size_t x)
{
    const vector zero = V(set1_epi32)(0);
    vector low[4], high[4];
    for (int i = 0; i < 4; i++) {
        low[i] = V(set1_epi32)(ST_HALF);
        high[i] = zero;
    }
    for (int32_t p = 0; p < count; p++) {
        const vector a = load(pairs[p].rows[0] + x), b = load(pairs[p].rows[1] + x);
        const vector first = V(unpacklo_epi8)(a, b), second = V(unpackhi_epi8)(a, b);
        const vector taps[4] = {V(unpacklo_epi8)(first, zero), V(unpackhi_epi8)(first, zero),
                                V(unpacklo_epi8)(second, zero), V(unpackhi_epi8)(second, zero)};
        const vector low_weight = V(set1_epi32)(pairs[p].low);
        const vector high_weight = V(set1_epi32)(pairs[p].high);
        for (int i = 0; i < 4; i++) {
            low[i] = V(add_epi32)(low[i], V(madd_epi16)(taps[i], low_weight));
            high[i] = V(add_epi32)(high[i], V(madd_epi16)(taps[i], high_weight));
        }
    }
    const vector words0 = V(packs_epi32)(settle(low[0], high[0]), settle(low[1], high[1]));
    const vector words1 = V(packs_epi32)(settle(low[2], high[2]), settle(low[3], high[3]));
    save(out, V(packus_epi16)(words0, words1));
}

ST_INLINE void down_pairs(uint8_t *out, const struct st_down_pair *pairs, int32_t count, size_t bytes)
{
    size_t x = 0;
    for (; x + sizeof(vector) <= bytes; x += sizeof(vector))
        down_vector(out + x, pairs, count, x);
    if (x < bytes) {
        uint8_t last[sizeof(vector)];
        down_vector(last, pairs, count, x);
        memcpy(out + x, last, bytes - x);
    }
}

static void down(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, int32_t taps,
                 size_t bytes)
{
    st_down_with(down_pairs, out, rows, weight, taps, bytes);
}

#endif
