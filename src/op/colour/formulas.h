/* formulas.h - values replaced by those of formulas, and their extent: for each kind of CPU
 *
 * Included by colour_rows.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_COLOUR_FORMULAS_H
#define ST_OP_COLOUR_FORMULAS_H

#include "base/pixels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* Two loops, since the compiler vectorises neither if it has to assume both. */
static void fold_plainly(uint8_t *out, const uint8_t *row, size_t count, uint32_t level, uint8_t mask)
{
    const uint8_t from = (uint8_t)level, bits = level < 256 ? 255 : 0;
    if (out == row)
        for (size_t i = 0; i < count; i++)
            out[i] = (uint8_t)((out[i] ^ (out[i] < from ? 0 : bits)) & mask);
    else
        for (size_t i = 0; i < count; i++)
            out[i] = (uint8_t)((row[i] ^ (row[i] < from ? 0 : bits)) & mask);
}

static inline uint8_t on_line(uint8_t value, float mul, float add)
{
    const int32_t whole = (int32_t)__builtin_fmaf(value, mul, add);
    return (uint8_t)(whole < 0 ? 0 : whole > 255 ? 255 : whole);
}

static void line_plainly(uint8_t *out, const uint8_t *row, size_t count, int32_t channels,
                         const float *mul, const float *add)
{
    if (channels == 1)
        for (size_t i = 0; i < count; i++)
            out[i] = on_line(row[i], mul[0], add[0]);
    else
        for (size_t i = 0; i + 3 <= count; i += 3)
            for (size_t c = 0; c < 3; c++)
                out[i + c] = on_line(row[i + c], mul[c], add[c]);
}

static void extent_plainly(const uint8_t *row, size_t count, int32_t channels, uint8_t *low,
                           uint8_t *high)
{
    for (size_t i = 0; i < count; i += (size_t)channels)
        for (int32_t c = 0; c < channels; c++) {
            const uint8_t value = row[i + (size_t)c];
            low[c] = value < low[c] ? value : low[c];
            high[c] = value > high[c] ? value : high[c];
        }
}

#if defined(__AVX2__)

static inline __m256i load32(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}
static inline void save32(uint8_t *to, __m256i v) { _mm256_storeu_si256((__m256i *)(void *)to, v); }

static inline __m256i folded(__m256i v, __m256i from, __m256i bits)
{
    return _mm256_xor_si256(v, _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(v, from), v), bits));
}

static void fold(uint8_t *out, const uint8_t *row, size_t count, uint32_t level, uint8_t mask)
{
    const __m256i from = _mm256_set1_epi8((char)level), bits = _mm256_set1_epi8(level < 256 ? -1 : 0);
    const __m256i kept = _mm256_set1_epi8((char)mask);
    size_t i = 0;
    for (; i + 64 <= count; i += 64) {
        const __m256i first = load32(row + i), second = load32(row + i + 32);
        save32(out + i, _mm256_and_si256(folded(first, from, bits), kept));
        save32(out + i + 32, _mm256_and_si256(folded(second, from, bits), kept));
    }
    fold_plainly(out + i, row + i, count - i, level, mask);
}

/* 32 values, whose channels are those of the vectors of `mul` and `add` in turn. */
static inline void line32(uint8_t *out, const uint8_t *row, const __m256 mul[3],
                          const __m256 add[3], int turn)
{
    __m256i v[4];
    for (int k = 0; k < 4; k++) {
        const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(row + 8 * k));
        const __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
        v[k] = _mm256_cvttps_epi32(
            _mm256_fmadd_ps(value, mul[(turn + k) % 3], add[(turn + k) % 3]));
    }
    const __m256i first = _mm256_packs_epi32(v[0], v[1]), second = _mm256_packs_epi32(v[2], v[3]);
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    save32(out, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), in_order));
}

static void line(uint8_t *out, const uint8_t *row, size_t count, int32_t channels, const float *mul,
                 const float *add)
{
    enum { TURN = 96 }; /* bytes after which vectors and channels begin anew */
    float all[2][24]; /* of the values of three vectors */
    __m256 muls[3], adds[3];
    size_t i = 0;
    for (int k = 0; k < 24; k++) {
        all[0][k] = mul[channels == 3 ? k % 3 : 0];
        all[1][k] = add[channels == 3 ? k % 3 : 0];
    }
    for (int k = 0; k < 3; k++) {
        muls[k] = _mm256_loadu_ps(all[0] + 8 * k);
        adds[k] = _mm256_loadu_ps(all[1] + 8 * k);
    }
    for (; i + TURN <= count; i += TURN) {
        line32(out + i, row + i, muls, adds, 0);
        line32(out + i + 32, row + i + 32, muls, adds, 1);
        line32(out + i + 64, row + i + 64, muls, adds, 2);
    }
    line_plainly(out + i, row + i, count - i, channels, mul, add);
}

static void extent(const struct st_view *pixels, uint8_t *low, uint8_t *high)
{
    enum { TURN = 96 };
    const size_t count = (size_t)pixels->width * (size_t)pixels->channels;
    __m256i least[3], most[3];
    uint8_t ends[2][TURN];
    for (int k = 0; k < 3; k++) {
        least[k] = _mm256_set1_epi8(-1);
        most[k] = _mm256_setzero_si256();
    }
    for (int32_t y = 0; y < pixels->height; y++) {
        const uint8_t *row = st_row(pixels, y);
        size_t i = 0;
        for (; i + TURN <= count; i += TURN)
            for (int k = 0; k < 3; k++) {
                least[k] = _mm256_min_epu8(least[k], load32(row + i + 32 * k));
                most[k] = _mm256_max_epu8(most[k], load32(row + i + 32 * k));
            }
        extent_plainly(row + i, count - i, pixels->channels, low, high);
    }
    for (int k = 0; k < 3; k++) {
        save32(ends[0] + 32 * k, least[k]);
        save32(ends[1] + 32 * k, most[k]);
    }
    for (int32_t i = 0; i < TURN; i++) {
        const int32_t c = i % pixels->channels;
        low[c] = ends[0][i] < low[c] ? ends[0][i] : low[c];
        high[c] = ends[1][i] > high[c] ? ends[1][i] : high[c];
    }
}

#else

static void fold(uint8_t *out, const uint8_t *row, size_t count, uint32_t level, uint8_t mask)
{
    fold_plainly(out, row, count, level, mask);
}

static void line(uint8_t *out, const uint8_t *row, size_t count, int32_t channels, const float *mul,
                 const float *add)
{
    line_plainly(out, row, count, channels, mul, add);
}

static void extent(const struct st_view *pixels, uint8_t *low, uint8_t *high)
{
    for (int32_t y = 0; y < pixels->height; y++)
        extent_plainly(st_row(pixels, y), (size_t)pixels->width * (size_t)pixels->channels,
                       pixels->channels, low, high);
}

#endif

#endif
