/* blur_rows.h - weighted sums of neighbours, in floats: for each kind of CPU
 *
 * Included by colour_rows.c. Sums are rounded after each product and each addition, in the order of the
 * plain loops, on every CPU and every device.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_COLOUR_BLUR_ROWS_H
#define ST_OP_COLOUR_BLUR_ROWS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>

enum { BLUR_VECTORS = 4 }; /* whose sums stay in registers */

#if defined(__AVX512F__)
enum { BLUR_LANES = 16 };
typedef __m512 blur_vec;
static inline __m512i widened(const uint8_t *from)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}
static inline blur_vec one_row(const uint8_t *row) { return _mm512_cvtepi32_ps(widened(row)); }
static inline blur_vec two_rows(const uint8_t *a, const uint8_t *b)
{
    return _mm512_cvtepi32_ps(_mm512_add_epi32(widened(a), widened(b)));
}
static inline blur_vec loaded(const float *from) { return _mm512_loadu_ps(from); }
static inline void stored(float *to, blur_vec v) { _mm512_storeu_ps(to, v); }
static inline blur_vec same(float value) { return _mm512_set1_ps(value); }
static inline void store_bytes(uint8_t *to, const blur_vec v[BLUR_VECTORS])
{
    for (int k = 0; k < BLUR_VECTORS; k++)
        _mm_storeu_si128((__m128i *)(void *)(to + k * BLUR_LANES),
                         _mm512_cvtusepi32_epi8(_mm512_cvttps_epi32(v[k])));
}
#else
enum { BLUR_LANES = 8 };
typedef __m256 blur_vec;
static inline __m256i widened(const uint8_t *from)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}
static inline blur_vec one_row(const uint8_t *row) { return _mm256_cvtepi32_ps(widened(row)); }
static inline blur_vec two_rows(const uint8_t *a, const uint8_t *b)
{
    return _mm256_cvtepi32_ps(_mm256_add_epi32(widened(a), widened(b)));
}
static inline blur_vec loaded(const float *from) { return _mm256_loadu_ps(from); }
static inline void stored(float *to, blur_vec v) { _mm256_storeu_ps(to, v); }
static inline blur_vec same(float value) { return _mm256_set1_ps(value); }
static inline void store_bytes(uint8_t *to, const blur_vec v[BLUR_VECTORS])
{
    const __m256i a = _mm256_packs_epi32(_mm256_cvttps_epi32(v[0]), _mm256_cvttps_epi32(v[1]));
    const __m256i b = _mm256_packs_epi32(_mm256_cvttps_epi32(v[2]), _mm256_cvttps_epi32(v[3]));
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((__m256i *)(void *)to,
                        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), in_order));
}
#endif

enum { BLUR_BLOCK = BLUR_VECTORS * BLUR_LANES };

static inline void blur_down_block(float *out, const uint8_t *const *rows, size_t at,
                                   const float *weight, int32_t half)
{
    blur_vec sum[BLUR_VECTORS];
    const blur_vec middle = same(weight[0]);
    for (int v = 0; v < BLUR_VECTORS; v++)
        sum[v] = middle * one_row(rows[0] + at + v * BLUR_LANES);
    for (int32_t k = 1; k <= half; k++) {
        const uint8_t *above = rows[2 * k - 1] + at, *below = rows[2 * k] + at;
        const blur_vec w = same(weight[k]);
        for (int v = 0; v < BLUR_VECTORS; v++)
            sum[v] += w * two_rows(above + v * BLUR_LANES, below + v * BLUR_LANES);
    }
    for (int v = 0; v < BLUR_VECTORS; v++)
        stored(out + at + v * BLUR_LANES, sum[v]);
}

static inline void blur_across_block(uint8_t *out, const float *row, ptrdiff_t step, const float *weight,
                                     int32_t half)
{
    blur_vec sum[BLUR_VECTORS];
    const blur_vec middle = same(weight[0]), round_up = same(0.5f);
    for (int v = 0; v < BLUR_VECTORS; v++)
        sum[v] = middle * loaded(row + v * BLUR_LANES);
    for (int32_t k = 1; k <= half; k++) {
        const float *left = row - k * step, *right = row + k * step;
        const blur_vec w = same(weight[k]);
        for (int v = 0; v < BLUR_VECTORS; v++)
            sum[v] += w * (loaded(left + v * BLUR_LANES) + loaded(right + v * BLUR_LANES));
    }
    for (int v = 0; v < BLUR_VECTORS; v++)
        sum[v] += round_up;
    store_bytes(out, sum);
}
#endif

static void blur_down(float *restrict out, const uint8_t *const *rows, size_t count, const float *weight,
                      int32_t half)
{
    size_t begin = 0;
#if defined(__AVX2__)
    for (; begin + BLUR_BLOCK <= count; begin += BLUR_BLOCK)
        blur_down_block(out, rows, begin, weight, half);
#endif
    for (size_t i = begin; i < count; i++)
        out[i] = weight[0] * rows[0][i];
    for (int32_t k = 1; k <= half; k++) {
        const uint8_t *above = rows[2 * k - 1], *below = rows[2 * k];
        const float w = weight[k];
        for (size_t i = begin; i < count; i++)
            out[i] += w * (float)(above[i] + below[i]);
    }
}

static void blur_across_plainly(uint8_t *restrict out, const float *row, size_t count, ptrdiff_t step,
                                const float *weight, int32_t half)
{
    enum { STRIP = 256 };
    float sum[STRIP];
    for (size_t begin = 0; begin < count; begin += STRIP) {
        const size_t n = count - begin < STRIP ? count - begin : STRIP;
        const float *middle = row + begin;
        for (size_t i = 0; i < n; i++)
            sum[i] = weight[0] * middle[i];
        for (int32_t k = 1; k <= half; k++) {
            const float *left = middle - k * step, *right = middle + k * step;
            const float w = weight[k];
            for (size_t i = 0; i < n; i++)
                sum[i] += w * (left[i] + right[i]);
        }
        for (size_t i = 0; i < n; i++)
            out[begin + i] = (uint8_t)(int32_t)(sum[i] + 0.5f);
    }
}

static void blur_across(uint8_t *restrict out, const float *row, size_t count, int32_t channels,
                        const float *weight, int32_t half)
{
    size_t done = 0;
#if defined(__AVX2__)
    for (; done + BLUR_BLOCK <= count; done += BLUR_BLOCK)
        blur_across_block(out + done, row + done, channels, weight, half);
#endif
    blur_across_plainly(out + done, row + done, count - done, channels, weight, half);
}

#endif
