/* rgb_rows.h - red, green and blue taken apart and put together again, and grey: for each kind of CPU
 *
 * Included by colour_rows.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_COLOUR_RGB_ROWS_H
#define ST_OP_COLOUR_RGB_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "op/kernels/rgb_pixels.h"

enum { CHUNK = 128 }; /* pixels split into planes at a time */

struct planes {
    float r[CHUNK], g[CHUNK], b[CHUNK];
};

static inline uint32_t luma(uint32_t r, uint32_t g, uint32_t b)
{
    return (19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16;
}

#if defined(__AVX2__)

static inline void to_floats(float *to, __m256i numbers)
{
    _mm256_storeu_ps(to, _mm256_cvtepi32_ps(numbers));
}

static inline __m256i from_floats(const float *from)
{
    return _mm256_cvttps_epi32(_mm256_loadu_ps(from));
}

static inline size_t split_blocks(struct planes *p, const uint8_t *row, size_t count)
{
    const __m256i byte = _mm256_set1_epi32(255);
    size_t i = 0;
    for (; i + RGB_BLOCK <= count; i += RGB_BLOCK) {
        const __m256i rgb = take_pixels(row + 3 * i);
        to_floats(p->r + i, _mm256_and_si256(rgb, byte));
        to_floats(p->g + i, _mm256_and_si256(_mm256_srli_epi32(rgb, 8), byte));
        to_floats(p->b + i, _mm256_srli_epi32(rgb, 16));
    }
    return i;
}

static inline size_t join_blocks(uint8_t *row, const struct planes *p, size_t count)
{
    const __m128i index = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    size_t i = 0;
    for (; i + RGB_BLOCK <= count; i += RGB_BLOCK) {
        const __m256i green = _mm256_slli_epi32(from_floats(p->g + i), 8);
        const __m256i blue = _mm256_slli_epi32(from_floats(p->b + i), 16);
        const __m256i rgb = _mm256_or_si256(_mm256_or_si256(from_floats(p->r + i), green), blue);
        put_pixels(row + 3 * i, rgb, index);
    }
    return i;
}

/* The grey values of eight pixels. The multiplier takes signed words, for which green's weight is too
 * large: half of it is added twice. */
static inline __m256i grey_lanes(const uint8_t *row)
{
    const __m256i rgb = take_pixels(row);
    const __m256i red_blue = _mm256_and_si256(rgb, _mm256_set1_epi32(0xff00ff));
    const __m256i green =
        _mm256_madd_epi16(_mm256_srli_epi16(rgb, 8), _mm256_set1_epi32(38470 / 2));
    const __m256i others = _mm256_madd_epi16(red_blue, _mm256_set1_epi32(19595 | 7471 << 16));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(green, green),
                                         _mm256_add_epi32(others, _mm256_set1_epi32(0x8000)));
    return _mm256_srli_epi32(sum, 16);
}

static inline size_t grey_blocks(uint8_t *to, const uint8_t *row, size_t count)
{
    const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    size_t i = 0;
    for (; i + 4 * RGB_BLOCK <= count; i += 4 * RGB_BLOCK, row += 12 * RGB_BLOCK) {
        const __m256i first = _mm256_packs_epi32(grey_lanes(row), grey_lanes(row + 24));
        const __m256i second = _mm256_packs_epi32(grey_lanes(row + 48), grey_lanes(row + 72));
        _mm256_storeu_si256(
            (__m256i *)(void *)(to + i),
            _mm256_permutevar8x32_epi32(_mm256_packus_epi16(first, second), in_order));
    }
    return i;
}

static inline size_t grey3_blocks(uint8_t *out, const uint8_t *row, size_t count)
{
    const __m128i index = _mm_setr_epi8(0, 0, 0, 4, 4, 4, 8, 8, 8, 12, 12, 12, -1, -1, -1, -1);
    size_t i = 0;
    for (; i + RGB_BLOCK <= count; i += RGB_BLOCK)
        put_pixels(out + 3 * i, grey_lanes(row + 3 * i), index);
    return i;
}

/* Of at most 2^23 pixels. */
static inline size_t grey_sum_blocks(uint32_t *sum, const uint8_t *row, size_t count)
{
    __m256i total = _mm256_setzero_si256();
    uint32_t lanes[8];
    size_t i = 0;
    for (; i + RGB_BLOCK <= count; i += RGB_BLOCK)
        total = _mm256_add_epi32(total, grey_lanes(row + 3 * i));
    _mm256_storeu_si256((__m256i *)(void *)lanes, total);
    for (int k = 0; k < 8; k++)
        *sum += lanes[k];
    return i;
}

#else /* the compiler vectorises the loops over single pixels */

#define split_blocks(...)    0
#define join_blocks(...)     0
#define grey_blocks(...)     0
#define grey3_blocks(...)    0
#define grey_sum_blocks(...) 0

#endif

static void split(struct planes *restrict p, const uint8_t *restrict row, size_t count)
{
    for (size_t i = split_blocks(p, row, count); i < count; i++) {
        p->r[i] = row[3 * i];
        p->g[i] = row[3 * i + 1];
        p->b[i] = row[3 * i + 2];
    }
}

static void join(uint8_t *restrict row, const struct planes *restrict p, size_t count)
{
    for (size_t i = join_blocks(row, p, count); i < count; i++) {
        row[3 * i] = (uint8_t)(int32_t)p->r[i];
        row[3 * i + 1] = (uint8_t)(int32_t)p->g[i];
        row[3 * i + 2] = (uint8_t)(int32_t)p->b[i];
    }
}

static void grey(uint8_t *restrict to, const uint8_t *restrict row, size_t count)
{
    for (size_t i = grey_blocks(to, row, count); i < count; i++)
        to[i] = (uint8_t)luma(row[3 * i], row[3 * i + 1], row[3 * i + 2]);
}

static void grey3(uint8_t *out, const uint8_t *row, size_t count)
{
    for (size_t i = grey3_blocks(out, row, count); i < count; i++)
        out[3 * i] = out[3 * i + 1] = out[3 * i + 2] =
            (uint8_t)luma(row[3 * i], row[3 * i + 1], row[3 * i + 2]);
}

static uint64_t grey_sum(const uint8_t *row, size_t count)
{
    uint64_t total = 0;
    while (count) { /* in parts whose sum fits into 32 bits */
        const size_t n = count < 1 << 20 ? count : 1 << 20;
        uint32_t sum = 0;
        for (size_t i = grey_sum_blocks(&sum, row, n); i < n; i++)
            sum += luma(row[3 * i], row[3 * i + 1], row[3 * i + 2]);
        total += sum;
        row += 3 * n;
        count -= n;
    }
    return total;
}

#endif
