/* rgb_pixels.h - eight pixels of three bytes in the lanes of a vector, and back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_RGB_PIXELS_H
#define ST_OP_KERNELS_RGB_PIXELS_H

#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>

enum { RGB_BLOCK = 8 }; /* pixels at a time */

/* Each in a lane: red in the lowest byte, then green and blue, and zero. */
static inline __m256i take_pixels(const uint8_t *row)
{
    /* The upper half loads from eight bytes on, so that nothing behind the pixels is read. */
    const __m256i index = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, /* */
                                           4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)row);
    const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(row + 8));
    return _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), index);
}

/* Stores the 12 bytes of each half that the index names. */
static inline void put_pixels(uint8_t *row, __m256i pixels, __m128i index)
{
    const __m256i halves = _mm256_shuffle_epi8(pixels, _mm256_broadcastsi128_si256(index));
    const __m256i packed =
        _mm256_permutevar8x32_epi32(halves, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7));
    _mm_storeu_si128((__m128i *)(void *)row, _mm256_castsi256_si128(packed));
    _mm_storel_epi64((__m128i *)(void *)(row + 16), _mm256_extracti128_si256(packed, 1));
}

#endif
#endif
