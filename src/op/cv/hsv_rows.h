/* hsv_rows.h - hue, saturation and value with OpenCV's arithmetic: for each kind of CPU
 *
 * Included by colour_rows.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_CV_HSV_ROWS_H
#define ST_OP_CV_HSV_ROWS_H

#include "op/kernels/rgb_pixels.h"
#include "op/cv/colour.h"
#include "op/cv/cv.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { CHUNK = 128 }; /* pixels split into planes at a time */

static inline int32_t clipped(int32_t value) { return value < 0 ? 0 : value > 255 ? 255 : value; }

struct planes {
    int32_t first[CHUNK], second[CHUNK], third[CHUNK];
};

static void split(struct planes *restrict p, const uint8_t *restrict row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        p->first[i] = row[3 * i];
        p->second[i] = row[3 * i + 1];
        p->third[i] = row[3 * i + 2];
    }
}

static void join(uint8_t *restrict row, const struct planes *restrict p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        row[3 * i] = (uint8_t)p->first[i];
        row[3 * i + 1] = (uint8_t)p->second[i];
        row[3 * i + 2] = (uint8_t)p->third[i];
    }
}

enum { HSV_SHIFT = 12, HUES = 180, VECTOR = ST_CV_HSV_VECTOR };

/* A quotient in fixed point, rounded, which OpenCV has in a table. It is never close to a tie: its
 * divisor has no more than 7 factors of 2. Of black and grey it is multiplied by 0. */
static inline int32_t parts_of(int32_t of, int32_t value)
{
    return (int32_t)((float)of / (float)(value ? value : 1) + 0.5f);
}

static void to_hsv(struct planes *restrict p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const int32_t r = p->first[i], g = p->second[i], b = p->third[i];
        const int32_t rg = r > g ? r : g, v = rg > b ? rg : b;
        const int32_t least = r < g ? r : g, depth = v - (least < b ? least : b);
        const int32_t s = (depth * parts_of(255 << HSV_SHIFT, v) + (1 << (HSV_SHIFT - 1))) >> HSV_SHIFT;
        const int32_t sixth = v == r ? g - b : v == g ? b - r + 2 * depth : r - g + 4 * depth;
        const int32_t h =
            (sixth * parts_of((HUES << HSV_SHIFT) / 6, depth) + (1 << (HSV_SHIFT - 1))) >> HSV_SHIFT;
        p->first[i] = h < 0 ? h + HUES : h;
        p->second[i] = s;
        p->third[i] = v;
    }
}

static inline int32_t byte_of(float value, bool cut)
{
    return (int32_t)(cut ? value : st_cv_round(value));
}

/* Bytes of the first `cut` pixels lose their fractions, as in OpenCV's vectors; others are rounded. */
static void from_hsv(struct planes *restrict p, size_t count, size_t cut)
{
    for (size_t i = 0; i < count; i++) {
        const float h = (float)p->first[i] * (6.f / HUES);
        const float s = (float)p->second[i] * (1.f / 255), v = (float)p->third[i] * (1.f / 255);
        const int32_t sector = (int32_t)h;
        const float part = h - (float)sector;
        const float low = v * (1 - s), down = v * __builtin_fmaf(-s, part, 1),
                    up = v * __builtin_fmaf(-s, 1 - part, 1);
        const float r = sector == 0 || sector == 5 ? v : sector == 1 ? down : sector == 4 ? up : low;
        const float g = sector == 1 || sector == 2 ? v : sector == 3 ? down : sector == 0 ? up : low;
        const float b = sector == 3 || sector == 4 ? v : sector == 5 ? down : sector == 2 ? up : low;
        p->first[i] = byte_of(r * 255, i < cut);
        p->second[i] = byte_of(g * 255, i < cut);
        p->third[i] = byte_of(b * 255, i < cut);
    }
}

static void through_hsv_plainly(uint8_t *rgb, size_t count, size_t in_vectors,
                                const uint8_t table[3][256])
{
    struct planes p;
    for (size_t done = 0; done < count; done += CHUNK, rgb += 3 * CHUNK) {
        const size_t n = count - done < CHUNK ? count - done : CHUNK;
        split(&p, rgb, n);
        to_hsv(&p, n);
        for (size_t i = 0; i < n; i++) {
            p.first[i] = table[0][p.first[i]];
            p.second[i] = table[1][p.second[i]];
            p.third[i] = table[2][p.third[i]];
        }
        from_hsv(&p, n, in_vectors > done ? in_vectors - done : 0);
        join(rgb, &p, n);
    }
}

#if defined(__AVX2__)

/* Tables that add numbers, which takes less time than to look them up: hues go round, other values are
 * bounded, and a saturation of 0 stays. */
struct hsv_sums {
    int32_t hue, saturation, value;
};

static inline int32_t raised(int32_t value, int32_t by) { return clipped(value + by); }

/* False if the tables are others. */
static bool sums_of(const uint8_t table[3][256], struct hsv_sums *sums)
{
    const uint8_t *hue = table[0], *saturation = table[1], *value = table[2];
    int32_t wrong = saturation[0];
    sums->hue = hue[0];
    sums->saturation = saturation[255] < 255 ? saturation[255] - 255 : saturation[1] - 1;
    sums->value = value[255] < 255 ? value[255] - 255 : value[0];
    for (int32_t v = 0; v < HUES; v++)
        wrong |= hue[v] ^ (v + sums->hue - (v + sums->hue >= HUES ? HUES : 0));
    for (int32_t v = 1; v < 256; v++)
        wrong |= saturation[v] ^ raised(v, sums->saturation);
    for (int32_t v = 0; v < 256; v++)
        wrong |= value[v] ^ raised(v, sums->value);
    return !wrong;
}

/* The same as floats: all products and sums are integers below 2^24, so they are what they are there. */
static inline __m256 parts_of_eight(float of, __m256i value)
{
    const __m256 divisor = _mm256_cvtepi32_ps(_mm256_max_epi32(value, _mm256_set1_epi32(1)));
    const __m256 quotient = _mm256_div_ps(_mm256_set1_ps(of), divisor);
    return _mm256_round_ps(_mm256_add_ps(quotient, _mm256_set1_ps(0.5f)),
                           _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

static inline __m256i times_parts(__m256i number, __m256 parts)
{
    const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(number), parts);
    const __m256 half = _mm256_set1_ps(1 << (HSV_SHIFT - 1));
    const __m256 scale = _mm256_set1_ps(1.f / (1 << HSV_SHIFT));
    return _mm256_cvttps_epi32(_mm256_floor_ps(_mm256_mul_ps(_mm256_add_ps(product, half), scale)));
}

static inline __m256i raised_eight(__m256i value, int32_t by)
{
    const __m256i sum = _mm256_add_epi32(value, _mm256_set1_epi32(by));
    return _mm256_min_epi32(_mm256_max_epi32(sum, _mm256_setzero_si256()), _mm256_set1_epi32(255));
}

/* Hues from -180 on become those from 0 on. */
static inline __m256i round_up(__m256i hue)
{
    const __m256i negative = _mm256_srai_epi32(hue, 31);
    return _mm256_add_epi32(hue, _mm256_and_si256(negative, _mm256_set1_epi32(HUES)));
}

static inline __m256 times(__m256i number, float by)
{
    return _mm256_mul_ps(_mm256_cvtepi32_ps(number), _mm256_set1_ps(by));
}

/* A channel: the value, less what the place on the circle of hues takes from it, 0 to 1 of the
 * saturation. */
static inline __m256i byte_of_eight(__m256 value, __m256 saturation, __m256 part)
{
    const __m256 one = _mm256_set1_ps(1);
    const __m256 bounded = _mm256_min_ps(_mm256_max_ps(part, _mm256_setzero_ps()), one);
    const __m256 level = _mm256_mul_ps(value, _mm256_fnmadd_ps(saturation, bounded, one));
    return _mm256_cvttps_epi32(_mm256_mul_ps(level, _mm256_set1_ps(255)));
}

/* Eight pixels, in two steps: a CPU looks ahead no further than a few pixels, and each waits for its
 * divisions, so that all of a chunk make the first step before the second. */
struct hsv_eight {
    __m256i hue, saturation, value;
};

static inline struct hsv_eight to_hsv_eight(const uint8_t *rgb)
{
    const __m256i pixels = take_pixels(rgb), byte = _mm256_set1_epi32(255);
    const __m256i r = _mm256_and_si256(pixels, byte), b = _mm256_srli_epi32(pixels, 16);
    const __m256i g = _mm256_and_si256(_mm256_srli_epi32(pixels, 8), byte);
    const __m256i most = _mm256_max_epi32(_mm256_max_epi32(r, g), b);
    const __m256i depth = _mm256_sub_epi32(most, _mm256_min_epi32(_mm256_min_epi32(r, g), b));
    const __m256i two = _mm256_add_epi32(depth, depth), four = _mm256_add_epi32(two, two);
    const __m256i in_g = _mm256_add_epi32(_mm256_sub_epi32(b, r), two);
    const __m256i in_b = _mm256_add_epi32(_mm256_sub_epi32(r, g), four);
    const __m256i other = _mm256_blendv_epi8(in_b, in_g, _mm256_cmpeq_epi32(most, g));
    const __m256i sixth =
        _mm256_blendv_epi8(other, _mm256_sub_epi32(g, b), _mm256_cmpeq_epi32(most, r));
    return (struct hsv_eight){
        .hue = times_parts(sixth, parts_of_eight((HUES << HSV_SHIFT) / 6, depth)),
        .saturation = times_parts(depth, parts_of_eight(255 << HSV_SHIFT, most)),
        .value = most,
    };
}

/* Bytes are cut. The parts of a sector are differences that are not rounded. */
static inline void from_hsv_eight(uint8_t *rgb, struct hsv_eight v, const struct hsv_sums *sums)
{
    const __m256i less = _mm256_set1_epi32(sums->hue - HUES);
    const __m256i coloured = _mm256_cmpgt_epi32(v.saturation, _mm256_setzero_si256());
    const __m256 hue = times(round_up(_mm256_add_epi32(round_up(v.hue), less)), 6.f / HUES);
    const __m256 saturation =
        times(_mm256_and_si256(raised_eight(v.saturation, sums->saturation), coloured), 1.f / 255);
    const __m256 value = times(raised_eight(v.value, sums->value), 1.f / 255);
#define AT(number) _mm256_set1_ps(number)
    const __m256 red = _mm256_min_ps(_mm256_sub_ps(hue, AT(1)), _mm256_sub_ps(AT(5), hue));
    const __m256 green = _mm256_max_ps(_mm256_sub_ps(AT(1), hue), _mm256_sub_ps(hue, AT(3)));
    const __m256 blue = _mm256_max_ps(_mm256_sub_ps(AT(3), hue), _mm256_sub_ps(hue, AT(5)));
#undef AT
    const __m256i green_byte = _mm256_slli_epi32(byte_of_eight(value, saturation, green), 8);
    const __m256i blue_byte = _mm256_slli_epi32(byte_of_eight(value, saturation, blue), 16);
    put_pixels(rgb,
               _mm256_or_si256(byte_of_eight(value, saturation, red),
                               _mm256_or_si256(green_byte, blue_byte)),
               _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
}

static size_t through_hsv_in_blocks(uint8_t *rgb, size_t in_vectors, const uint8_t table[3][256])
{
    struct hsv_sums sums;
    struct hsv_eight made[CHUNK / RGB_BLOCK];
    if (!sums_of(table, &sums))
        return 0;
    for (size_t done = 0; done < in_vectors; done += CHUNK, rgb += 3 * CHUNK) {
        const size_t left = in_vectors - done, blocks = (left < CHUNK ? left : CHUNK) / RGB_BLOCK;
        for (size_t k = 0; k < blocks; k++)
            made[k] = to_hsv_eight(rgb + 3 * RGB_BLOCK * k);
        for (size_t k = 0; k < blocks; k++)
            from_hsv_eight(rgb + 3 * RGB_BLOCK * k, made[k], &sums);
    }
    return in_vectors;
}

#else
#define through_hsv_in_blocks(...) 0
#endif

static void through_hsv(uint8_t *rgb, size_t count, const uint8_t table[3][256])
{
    const size_t in_vectors = count / VECTOR * VECTOR;
    const size_t done = through_hsv_in_blocks(rgb, in_vectors, table);
    if (done < count)
        through_hsv_plainly(rgb + 3 * done, count - done, in_vectors - done, table);
}

#endif
