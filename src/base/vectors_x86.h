/* vectors_x86.h - the widest vectors that the including file is compiled for, under common names
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_VECTORS_X86_H
#define ST_BASE_VECTORS_X86_H

#include <immintrin.h>

#if defined(__AVX512F__)
typedef __m512i vector;
typedef __m512 floats;
#define V(operation) _mm512_##operation
#define V_BITS(operation) _mm512_##operation##_si512
#elif defined(__AVX2__)
typedef __m256i vector;
typedef __m256 floats;
#define V(operation) _mm256_##operation
#define V_BITS(operation) _mm256_##operation##_si256
#else
typedef __m128i vector;
typedef __m128 floats;
#define V(operation) _mm_##operation
#define V_BITS(operation) _mm_##operation##_si128
#endif

#define ST_INLINE static inline __attribute__((always_inline))

/* Adds to each sum the products of two adjacent pairs of 16-bit values. */
ST_INLINE vector plus_products(vector sum, vector pairs, vector factors)
{
#if defined(__AVX512VNNI__)
    return V(dpwssd_epi32)(sum, pairs, factors);
#else
    return V(add_epi32)(sum, V(madd_epi16)(pairs, factors));
#endif
}

#endif
