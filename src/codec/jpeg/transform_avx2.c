/* transform_avx2.c - the inverse DCT with AVX2, two blocks at a time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/transform_x86.h"

/* ---- from zigzag order to pieces --------------------------------------------------------------- */

/* Which bytes of the eight coefficients from 8 j on belong to a piece, and whether there are any. */
#define BYTES(j, k) (k) / 8 == (j) ? 2 * ((k) % 8) : 128, (k) / 8 == (j) ? 2 * ((k) % 8) + 1 : 128
#define SHUFFLE(j, a, b, c, d, e, f, g, h) \
    {BYTES(j, a), BYTES(j, b), BYTES(j, c), BYTES(j, d), \
     BYTES(j, e), BYTES(j, f), BYTES(j, g), BYTES(j, h)}
#define SHUFFLES(...) \
    {SHUFFLE(0, __VA_ARGS__), SHUFFLE(1, __VA_ARGS__), SHUFFLE(2, __VA_ARGS__), \
     SHUFFLE(3, __VA_ARGS__), SHUFFLE(4, __VA_ARGS__), SHUFFLE(5, __VA_ARGS__), \
     SHUFFLE(6, __VA_ARGS__), SHUFFLE(7, __VA_ARGS__)}
#define BIT(k) 1 << (k) / 8
#define USED(a, b, c, d, e, f, g, h) \
    BIT(a) | BIT(b) | BIT(c) | BIT(d) | BIT(e) | BIT(f) | BIT(g) | BIT(h)
static const _Alignas(16) uint8_t shuffles[8][8][16] = {PIECES(SHUFFLES)};
static const uint8_t used[8] = {PIECES(USED)};
static const _Alignas(16) uint8_t quarter_shuffles[2][8][16] = {QUARTER_02(SHUFFLES),
                                                                QUARTER_13(SHUFFLES)};

/* Eight coefficients from `at` on, for both blocks. */
ST_INLINE __m256i both(const int16_t *const *coefs, int at)
{
    return _mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_load_si128((const __m128i *)(coefs[0] + at))),
        _mm_load_si128((const __m128i *)(coefs[1] + at)), 1);
}

ST_INLINE __m256i shuffled(__m256i v, const uint8_t *how)
{
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)how)));
}

ST_INLINE void arrange(vectors *pieces, const int16_t *const *coefs, const bool half)
{
    const int parts = half ? 4 : 8;
    __m256i part[8];
    for (int j = 0; j < parts; j++)
        part[j] = both(coefs, 8 * j);
#pragma GCC unroll 8
    for (int p = 0; p < 8; p++) {
        pieces->v[p] = no_bits();
#pragma GCC unroll 8
        for (int j = 0; j < parts; j++)
            if (used[p] >> j & 1)
                pieces->v[p] = _mm256_or_si256(pieces->v[p], shuffled(part[j], shuffles[p][j]));
    }
}

ST_INLINE void arrange_quarter(__m256i pieces[2], const int16_t *const *coefs)
{
    const __m256i first = both(coefs, 0), second = both(coefs, 8);
    for (int p = 0; p < 2; p++)
        pieces[p] = _mm256_or_si256(shuffled(first, quarter_shuffles[p][0]),
                                    shuffled(second, quarter_shuffles[p][1]));
}

ST_INLINE __m256i even_pairs(__m256i a, __m256i b)
{
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}

ST_INLINE __m256i odd_pairs(__m256i a, __m256i b)
{
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xDD));
}

ST_INLINE __m256i widen(__m128i v) { return _mm256_zextsi128_si256(v); }

ST_INLINE __m256i greater(__m256i a, __m256i b) { return _mm256_max_epi32(a, b); }

/* ---- storing ----------------------------------------------------------------------------------- */

/* Transposes four columns of four pixels to four rows of four bytes. */
ST_INLINE __m256i rows_of(const __m256i column[4])
{
    const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(column[0], column[1]),
                                              _mm256_packs_epi32(column[2], column[3]));
    return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order));
}

/* Rearranges two rows per block to two rows across the blocks. */
ST_INLINE void save_two(uint8_t *out, size_t stride, __m256i rows)
{
    const __m256i sorted = _mm256_permute4x64_epi64(rows, 0xD8);
    _mm_storeu_si128((__m128i *)out, _mm256_castsi256_si128(sorted));
    _mm_storeu_si128((__m128i *)(out + stride), _mm256_extracti128_si256(sorted, 1));
}

ST_INLINE void save_rows(uint8_t *out, size_t stride, const vectors *columns)
{
    const __m256i left = rows_of(columns->v), right = rows_of(columns->v + 4);
    save_two(out, stride, _mm256_unpacklo_epi32(left, right));
    save_two(out + 2 * stride, stride, _mm256_unpackhi_epi32(left, right));
}

ST_INLINE void save_flat(uint8_t *out, size_t stride, __m128i pixels)
{
    const __m128i words = _mm_packs_epi32(pixels, pixels);
    const __m128i row = _mm_shuffle_epi8(_mm_packus_epi16(words, words),
                                         _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
    for (size_t y = 0; y < BLOCK; y++)
        _mm_storeu_si128((__m128i *)(out + y * stride), row);
}

bool st_jpeg_transform_avx2(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks,
                            int32_t count, const struct st_jpeg_quant *quant)
{
    const __m256i most = transform(out, stride, blocks, count, quant);
    const __m256i too_large = _mm256_cmpgt_epi32(most, _mm256_set1_epi32(ST_JPEG_COLUMN_MAX));
    return _mm256_testz_si256(too_large, too_large);
}
