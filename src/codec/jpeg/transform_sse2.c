/* transform_sse2.c - the inverse DCT for any x86-64, one block at a time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/transform_x86.h"

#include <string.h>

/* ---- from zigzag order to pieces --------------------------------------------------------------- */

#define LIST(a, b, c, d, e, f, g, h) {a, b, c, d, e, f, g, h}
static const uint8_t places[8][8] = {PIECES(LIST)};
static const uint8_t quarter_places[2][8] = {QUARTER_02(LIST), QUARTER_13(LIST)};

/* Two coefficients, the second from a later position; those from `count` on are zero. */
ST_INLINE __m128i pair(const int16_t *coefs, const int first, const int second, const int count)
{
    int32_t two;
    if (first >= count)
        return no_bits();
    if (second >= count)
        return _mm_cvtsi32_si128((uint16_t)coefs[first]);
    memcpy(&two, coefs + first, sizeof two);
    return _mm_insert_epi16(_mm_cvtsi32_si128(two), coefs[second], 1);
}

/* SSE2 cannot shuffle bytes, so coefficients are loaded one by one. */
ST_INLINE __m128i piece(const int16_t *coefs, const uint8_t at[8], const int count)
{
    return _mm_unpacklo_epi64(_mm_unpacklo_epi32(pair(coefs, at[0], at[1], count),
                                                 pair(coefs, at[2], at[3], count)),
                              _mm_unpacklo_epi32(pair(coefs, at[4], at[5], count),
                                                 pair(coefs, at[6], at[7], count)));
}

ST_INLINE void arrange(vectors *pieces, const int16_t *const *coefs, const bool half)
{
#pragma GCC unroll 8
    for (int p = 0; p < 8; p++)
        pieces->v[p] = piece(coefs[0], places[p], half ? HALF : 64);
}

ST_INLINE void arrange_quarter(__m128i pieces[2], const int16_t *const *coefs)
{
#pragma GCC unroll 2
    for (int p = 0; p < 2; p++)
        pieces[p] = piece(coefs[0], quarter_places[p], ST_IDCT_QUARTER);
}

ST_INLINE __m128i even_pairs(__m128i a, __m128i b)
{
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0x88));
}

ST_INLINE __m128i odd_pairs(__m128i a, __m128i b)
{
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0xDD));
}

ST_INLINE __m128i widen(__m128i v) { return v; }

ST_INLINE __m128i greater(__m128i a, __m128i b)
{
    const __m128i is_a = _mm_cmpgt_epi32(a, b);
    return _mm_or_si128(_mm_and_si128(is_a, a), _mm_andnot_si128(is_a, b));
}

/* ---- storing ----------------------------------------------------------------------------------- */

ST_INLINE __m128i bytes_of(const __m128i column[4])
{
    return _mm_packus_epi16(_mm_packs_epi32(column[0], column[1]),
                            _mm_packs_epi32(column[2], column[3]));
}

ST_INLINE void save_two(uint8_t *out, size_t stride, __m128i rows)
{
    _mm_storel_epi64((__m128i *)out, rows);
    _mm_storel_epi64((__m128i *)(out + stride), _mm_unpackhi_epi64(rows, rows));
}

/* Interleaves columns: 0 and 4, then 0, 2, 4 and 6, then all. */
ST_INLINE void save_rows(uint8_t *out, size_t stride, const vectors *columns)
{
    const __m128i left = bytes_of(columns->v), right = bytes_of(columns->v + 4);
    const __m128i c0415 = _mm_unpacklo_epi8(left, right), c2637 = _mm_unpackhi_epi8(left, right);
    const __m128i even = _mm_unpacklo_epi8(c0415, c2637), odd = _mm_unpackhi_epi8(c0415, c2637);
    save_two(out, stride, _mm_unpacklo_epi8(even, odd));
    save_two(out + 2 * stride, stride, _mm_unpackhi_epi8(even, odd));
}

ST_INLINE void save_flat(uint8_t *out, size_t stride, __m128i pixels)
{
    const __m128i words = _mm_packs_epi32(pixels, pixels), row = _mm_packus_epi16(words, words);
    for (size_t y = 0; y < BLOCK; y++)
        _mm_storel_epi64((__m128i *)(out + y * stride), row);
}

bool st_jpeg_transform_sse2(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks,
                            int32_t count, const struct st_jpeg_quant *quant)
{
    const __m128i most = transform(out, stride, blocks, count, quant);
    return _mm_movemask_epi8(_mm_cmpgt_epi32(most, _mm_set1_epi32(ST_JPEG_COLUMN_MAX))) == 0;
}
