/* transform_avx512.c - the inverse DCT with AVX-512 (VBMI, VNNI), four blocks at a time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/transform_x86.h"

/* ---- from zigzag order to pieces --------------------------------------------------------------- */

#define BYTES(k) 2 * (k), 2 * (k) + 1
#define PIECE(a, b, c, d, e, f, g, h) \
    {BYTES(a), BYTES(b), BYTES(c), BYTES(d), BYTES(e), BYTES(f), BYTES(g), BYTES(h)}
static const _Alignas(64) uint8_t places[8][16] = {PIECES(PIECE)};

/* Positions among the first sixteen coefficients of four consecutive blocks. */
#define FROM(at, a, b, c, d, e, f, g, h) \
    {at + a, at + b, at + c, at + d, at + e, at + f, at + g, at + h}
#define OF_FOUR(...) \
    {FROM(0, __VA_ARGS__), FROM(16, __VA_ARGS__), FROM(32, __VA_ARGS__), FROM(48, __VA_ARGS__)}
static const _Alignas(64) uint16_t quarter_places[2][4][8] = {QUARTER_02(OF_FOUR), QUARTER_13(OF_FOUR)};

/* Transposes: from four pieces of one block per vector to one piece of four blocks per vector. */
ST_INLINE void exchange(__m512i pieces[4], const __m512i block[4])
{
    const __m512i a = _mm512_shuffle_i32x4(block[0], block[1], 0x44);
    const __m512i b = _mm512_shuffle_i32x4(block[0], block[1], 0xEE);
    const __m512i c = _mm512_shuffle_i32x4(block[2], block[3], 0x44);
    const __m512i d = _mm512_shuffle_i32x4(block[2], block[3], 0xEE);
    pieces[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    pieces[1] = _mm512_shuffle_i32x4(a, c, 0xDD);
    pieces[2] = _mm512_shuffle_i32x4(b, d, 0x88);
    pieces[3] = _mm512_shuffle_i32x4(b, d, 0xDD);
}

/* Permuting one vector is cheaper than permuting two. */
ST_INLINE void arrange(vectors *pieces, const int16_t *const *coefs, const bool half)
{
    for (int side = 0; side < 2; side++) {
        const __m512i at = _mm512_load_si512(places[4 * side]);
        const __mmask64 first_half = _mm512_cmplt_epu8_mask(at, _mm512_set1_epi8(2 * HALF));
        __m512i block[BLOCKS];
        for (int k = 0; k < BLOCKS; k++) {
            const __m512i first = _mm512_load_si512(coefs[k]);
            block[k] = half ? _mm512_maskz_permutexvar_epi8(first_half, at, first)
                            : _mm512_permutex2var_epi8(first, at, _mm512_load_si512(coefs[k] + HALF));
        }
        exchange(pieces->v + 4 * side, block);
    }
}

/* The first sixteen coefficients of two blocks. */
ST_INLINE __m512i two_beginnings(const int16_t *const *coefs)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_load_si256((const __m256i *)coefs[0])),
                              _mm256_load_si256((const __m256i *)coefs[1]), 1);
}

ST_INLINE void arrange_quarter(__m512i pieces[2], const int16_t *const *coefs)
{
    const __m512i first = two_beginnings(coefs), second = two_beginnings(coefs + 2);
    for (int p = 0; p < 2; p++)
        pieces[p] = _mm512_permutex2var_epi16(first, _mm512_load_si512(quarter_places[p]), second);
}

ST_INLINE __m512i even_pairs(__m512i a, __m512i b)
{
    return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0x88));
}

ST_INLINE __m512i odd_pairs(__m512i a, __m512i b)
{
    return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), 0xDD));
}

ST_INLINE __m512i widen(__m128i v) { return _mm512_zextsi128_si512(v); }

ST_INLINE __m512i greater(__m512i a, __m512i b) { return _mm512_max_epi32(a, b); }

/* ---- storing ----------------------------------------------------------------------------------- */

/* Bytes of row 0, then of row 1, across four blocks: for each block, four columns of four rows are in
 * one vector and the other columns in another. */
#define COLUMNS(at) at, at + 4, at + 8, at + 12, 64 + at, 68 + at, 72 + at, 76 + at
static const _Alignas(64) uint8_t row_places[64] = {COLUMNS(0), COLUMNS(16), COLUMNS(32), COLUMNS(48),
                                                    COLUMNS(1), COLUMNS(17), COLUMNS(33), COLUMNS(49)};

ST_INLINE __m512i bytes_of(const __m512i column[4])
{
    return _mm512_packus_epi16(_mm512_packs_epi32(column[0], column[1]),
                               _mm512_packs_epi32(column[2], column[3]));
}

ST_INLINE void save_two(uint8_t *out, size_t stride, __m512i rows)
{
    _mm256_storeu_si256((__m256i *)out, _mm512_castsi512_si256(rows));
    _mm256_storeu_si256((__m256i *)(out + stride), _mm512_extracti64x4_epi64(rows, 1));
}

ST_INLINE void save_rows(uint8_t *out, size_t stride, const vectors *columns)
{
    const __m512i left = bytes_of(columns->v), right = bytes_of(columns->v + 4);
    const __m512i rows_01 = _mm512_load_si512(row_places);
    const __m512i rows_23 = _mm512_add_epi8(rows_01, _mm512_set1_epi8(2));
    save_two(out, stride, _mm512_permutex2var_epi8(left, rows_01, right));
    save_two(out + 2 * stride, stride, _mm512_permutex2var_epi8(left, rows_23, right));
}

ST_INLINE void save_flat(uint8_t *out, size_t stride, __m128i pixels)
{
    const __m128i words = _mm_packs_epi32(pixels, pixels);
    const __m256i bytes = _mm256_broadcastsi128_si256(_mm_packus_epi16(words, words));
    const __m256i row = _mm256_shuffle_epi8(
        bytes, _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    for (size_t y = 0; y < BLOCK; y++)
        _mm256_storeu_si256((__m256i *)(out + y * stride), row);
}

bool st_jpeg_transform_avx512(uint8_t *out, size_t stride, const struct st_jpeg_block *blocks,
                              int32_t count, const struct st_jpeg_quant *quant)
{
    const __m512i most = transform(out, stride, blocks, count, quant);
    return _mm512_cmpgt_epi32_mask(most, _mm512_set1_epi32(ST_JPEG_COLUMN_MAX)) == 0;
}
