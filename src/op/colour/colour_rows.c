/* colour_rows.c - the inner loops of the colour ops, written for auto-vectorisation
 *
 * Compiled once for each kind of CPU; ST_COLOUR_ROWS is the name of the table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/colour/blur_rows.h"
#include "op/colour/colour.h"
#include "op/colour/formulas.h"
#include "op/colour/replace.h"
#include "op/colour/rgb_rows.h"

#include <string.h>

/* Pillow's blend: two rounded operations, or one where its compiler fused them; then truncation. */
static inline float blended(float from, float to, float factor)
{
#if defined(ST_COLOUR_FUSED)
    const float mixed = __builtin_fmaf(factor, to - from, from);
#else
    const float mixed = from + factor * (to - from);
#endif
    const float above = mixed > 0 ? mixed : 0;
    return above < 255 ? above : 255;
}

static void blend(uint8_t *restrict row, size_t count, float level, float factor)
{
    for (size_t i = 0; i < count; i++)
        row[i] = (uint8_t)(int32_t)blended(level, row[i], factor);
}

static void saturate(uint8_t *out, const uint8_t *row, size_t count, float factor)
{
    struct planes p;
    for (size_t done = 0; done < count; done += CHUNK, row += 3 * CHUNK, out += 3 * CHUNK) {
        const size_t n = count - done < CHUNK ? count - done : CHUNK;
        split(&p, row, n);
        for (size_t i = 0; i < n; i++) {
            /* Floats below 2^24 represent integers exactly, so this is the same sum as in luma(). */
            const float sum = 19595 * p.r[i] + 38470 * p.g[i] + 7471 * p.b[i] + 0x8000;
            const float grey = (float)((int32_t)sum >> 16);
            p.r[i] = blended(grey, p.r[i], factor);
            p.g[i] = blended(grey, p.g[i], factor);
            p.b[i] = blended(grey, p.b[i], factor);
        }
        join(out, &p, n);
    }
}

/* ---- hue ---------------------------------------------------------------------------------------- */

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
#define LEVEL (1.0f / 255) /* a product with it gives the same bytes as dividing by 255 */

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t ivec __attribute__((vector_size(LANES * 4)));

static inline vec either(ivec which, vec yes, vec no)
{
    return (vec)(((ivec)yes & which) | ((ivec)no & ~which));
}

#if defined(__AVX512F__)
static inline vec least(vec a, vec b) { return (vec)_mm512_min_ps((__m512)a, (__m512)b); }
static inline vec most(vec a, vec b) { return (vec)_mm512_max_ps((__m512)a, (__m512)b); }
#elif defined(__AVX2__)
static inline vec least(vec a, vec b) { return (vec)_mm256_min_ps((__m256)a, (__m256)b); }
static inline vec most(vec a, vec b) { return (vec)_mm256_max_ps((__m256)a, (__m256)b); }
#else
static inline vec least(vec a, vec b) { return either(a < b, a, b); }
static inline vec most(vec a, vec b) { return either(a > b, a, b); }
#endif
static inline vec whole(vec a) { return __builtin_convertvector(__builtin_convertvector(a, ivec), vec); }

/* A channel: `high`, reduced by the fraction of its depth that the position on the colour circle
 * requires. */
static inline vec channel(vec high, vec depth, vec share)
{
    const vec none = {0};
    return whole(high * (1 - depth * (most(least(share, none + 255), none) * LEVEL)) + 0.5f);
}

/* Each step of a pixel waits for the one before, and a CPU looks ahead no further than a few pixels. So
 * the work is done in loops of their own: while one pixel waits, others are made. */
struct vectors {
    vec r, g, b;
};

static inline struct vectors vectors_at(const struct planes *p, size_t i)
{
    struct vectors v;
    memcpy(&v.r, p->r + i, sizeof v.r);
    memcpy(&v.g, p->g + i, sizeof v.g);
    memcpy(&v.b, p->b + i, sizeof v.b);
    return v;
}

static inline void put_vectors(struct planes *p, size_t i, struct vectors v)
{
    memcpy(p->r + i, &v.r, sizeof v.r);
    memcpy(p->g + i, &v.g, sizeof v.g);
    memcpy(p->b + i, &v.b, sizeof v.b);
}

/* Red, green and blue become the sixth of the colour circle, times six, -1 to 5; the depth; and the
 * highest of the three. The middle one's position between the other two takes one rounded division. */
static inline struct vectors to_sixths(struct vectors v)
{
    const vec none = {0}, r = v.r, g = v.g, b = v.b;
    const vec high = most(most(r, g), b), low = least(least(r, g), b), span = high - low;
    const vec mid = r + g + b - high - low;
    const vec x = (high - mid) / either(span > 0, span, none + 1);
    const vec in_r = either(g >= b, 1 - x, x - 1);
    const vec in_g = either(r >= b, 1 + x, 3 - x);
    const vec in_b = either(g >= r, 3 + x, 5 - x);
    const vec depth = whole(span * 255 / either(high > 0, high, none + 1)) * LEVEL;
    return (struct vectors){either(r >= high, in_r, either(g >= high, in_g, in_b)), depth, high};
}

/* The place on the circle after the shift, 255 per sector of six. The hue is 0 to 255; the sum, the
 * sixth and the reduction to [0, 1) are each rounded once, as in Pillow. Grey has some place, too, which
 * its depth of 0 makes irrelevant. */
static inline struct vectors to_places(struct vectors v, float shift)
{
    const vec sixth = v.r / 6, turn = either(sixth < 0, sixth + 1, sixth);
    /* The integer part of the exact product turn * 255: where rounding took the product up to the next
     * integer, turn * 256 minus that integer (both exact) is less than turn. */
    const vec rounded = whole(turn * 255);
    const vec moved = either(turn * 256 - rounded < turn, rounded - 1, rounded) + shift;
    return (struct vectors){either(moved > 255, moved - 256, moved) * 6, v.g, v.b};
}

static inline struct vectors from_places(struct vectors v)
{
    const vec place = v.r, depth = v.g, high = v.b;
    return (struct vectors){channel(high, depth, least(place - 255, 1275 - place)),
                            channel(high, depth, most(255 - place, place - 765)),
                            channel(high, depth, most(765 - place, place - 1275))};
}

static void hue(uint8_t *out, const uint8_t *row, size_t count, uint8_t shift)
{
    struct planes p = {0};
    for (size_t done = 0; done < count; done += CHUNK, row += 3 * CHUNK, out += 3 * CHUNK) {
        const size_t n = count - done < CHUNK ? count - done : CHUNK;
        split(&p, row, n);
        for (size_t i = 0; i < n; i += LANES)
            put_vectors(&p, i, to_sixths(vectors_at(&p, i)));
        for (size_t i = 0; i < n; i += LANES)
            put_vectors(&p, i, to_places(vectors_at(&p, i), shift));
        for (size_t i = 0; i < n; i += LANES)
            put_vectors(&p, i, from_places(vectors_at(&p, i)));
        join(out, &p, n);
    }
}

/* ---- values -------------------------------------------------------------------------------------- */

/* Neighbours are often equal, and adding to what was just stored takes long: they are counted apart. */
enum { APART = 4 };
struct counts {
    uint32_t of[APART][3][256];
};

/* Eight values, the first of which is number `first` of the row; a load of all of them is cheaper than
 * eight. */
static inline void count_eight(struct counts *counts, const uint8_t *from, int first, int channels)
{
    uint64_t values;
    memcpy(&values, from, sizeof values);
#pragma GCC unroll 8
    for (int k = first; k < first + 8; k++, values >>= 8)
        counts->of[k / channels % APART][k % channels][values & 255]++;
}

static void count_row(struct counts *counts, const uint8_t *row, size_t count, int32_t channels)
{
    const size_t bytes = count * (size_t)channels;
    size_t i = 0;
    if (channels == 3)
        for (; i + 24 <= bytes; i += 24) {
            count_eight(counts, row + i, 0, 3);
            count_eight(counts, row + i + 8, 8, 3);
            count_eight(counts, row + i + 16, 16, 3);
        }
    else
        for (; i + 8 <= bytes; i += 8)
            count_eight(counts, row + i, 0, 1);
    for (; i < bytes; i++)
        counts->of[0][i % (size_t)channels][row[i]]++;
}

static void histogram(const struct st_view *pixels, uint64_t (*count_of)[256])
{
    struct counts counts = {0};
    uint64_t counted = 0;
    memset(count_of, 0, sizeof(uint64_t[256]) * (size_t)pixels->channels);
    for (int32_t y = 0; y < pixels->height; y++) {
        count_row(&counts, st_row(pixels, y), (size_t)pixels->width, pixels->channels);
        counted += (uint64_t)pixels->width;
        if (y < pixels->height - 1 && counted < 1u << 31) /* the next row can be counted in 32 bits */
            continue;
        for (int32_t c = 0; c < pixels->channels; c++)
            for (int v = 0; v < 256; v++)
                for (int k = 0; k < APART; k++)
                    count_of[c][v] += counts.of[k][c][v];
        counts = (struct counts){0};
        counted = 0;
    }
}

enum { SHARP = 256 }; /* values at a time */

/* A thirteenth of the sum of 3 x 3 values, the middle one counted five times; rounded. This is never a
 * tie, so it is what Pillow's sum of floats is rounded to. `sums` are those of three values in a
 * column. */
static inline void soften(uint16_t *restrict soft, const uint16_t *restrict sums,
                          const uint8_t *restrict row, size_t count, ptrdiff_t next)
{
    for (ptrdiff_t i = 0; i < (ptrdiff_t)count; i++) {
        const uint16_t sum = (uint16_t)(sums[i - next] + sums[i] + sums[i + next] + 4 * row[i] + 6);
        soft[i] = (uint16_t)((uint32_t)sum * 5042 >> 16); /* divided by 13: exact up to 6,553 */
    }
}

#if defined(__AVX2__) && !defined(ST_COLOUR_FUSED)
static inline __m256i blended_eight(__m128i soft, __m128i bytes, __m256 factor)
{
    const __m256 from = _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(soft));
    const __m256 to = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    const __m256 mixed = _mm256_add_ps(from, _mm256_mul_ps(factor, _mm256_sub_ps(to, from)));
    const __m256 above = _mm256_max_ps(mixed, _mm256_setzero_ps());
    return _mm256_cvttps_epi32(_mm256_min_ps(above, _mm256_set1_ps(255)));
}

/* Bytes move away from soft ones. Returns how many are made: the rest is less than a vector. */
static inline size_t blend_blocks(uint8_t *out, const uint16_t *soft, const uint8_t *row, size_t count,
                                  float factor)
{
    const __m256 by = _mm256_set1_ps(factor);
    size_t i = 0;
    for (; i + 32 <= count; i += 32) {
        __m256i v[4];
        for (int k = 0; k < 4; k++)
            v[k] = blended_eight(_mm_loadu_si128((const __m128i *)(const void *)(soft + i + 8 * k)),
                                 _mm_loadl_epi64((const __m128i *)(const void *)(row + i + 8 * k)), by);
        const __m256i low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
        const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        save32(out + i, _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), in_order));
    }
    return i;
}
#else
#define blend_blocks(...) 0
#endif

static inline void sharpen_some(uint8_t *restrict out, const uint8_t *restrict above,
                                const uint8_t *restrict row, const uint8_t *restrict below, size_t count,
                                int32_t channels, float factor)
{
    uint16_t sums[SHARP + 2 * 4], soft[SHARP];
    const ptrdiff_t next = channels;
    for (ptrdiff_t i = -next; i < (ptrdiff_t)count + next; i++)
        sums[i + next] = (uint16_t)(above[i] + row[i] + below[i]);
    soften(soft, sums + next, row, count, next);
    for (size_t i = blend_blocks(out, soft, row, count, factor); i < count; i++)
        out[i] = (uint8_t)(int32_t)blended(soft[i], row[i], factor);
}

static void sharpen(uint8_t *out, const uint8_t *above, const uint8_t *row, const uint8_t *below,
                    size_t count, int32_t channels, float factor)
{
    const size_t end = count - (size_t)channels;
    for (size_t at = (size_t)channels; at < end; at += SHARP)
        sharpen_some(out + at, above + at, row + at, below + at, end - at < SHARP ? end - at : SHARP,
                     channels, factor);
}

/* ---- boxes --------------------------------------------------------------------------------------- */

static inline const uint8_t *strip_row(const uint8_t *strip, int64_t at, int32_t count)
{
    return strip + (at < 0 ? 0 : at >= count ? count - 1 : at) * ST_BOX_SIDE;
}

/* Moves the box by one: adds the values that enter it and subtracts those that leave. */
static inline void box_row(uint8_t *restrict out, uint32_t *restrict sum, const uint8_t *enters,
                           const uint8_t *leaves, const uint8_t *next, struct st_box box)
{
    for (int32_t k = 0; k < ST_BOX_SIDE; k++) {
        sum[k] += (uint32_t)enters[k] - leaves[k];
        const uint32_t ends = (uint32_t)leaves[k] + next[k];
        out[k] = (uint8_t)((sum[k] * box.whole + ends * box.ends + (1u << 23)) >> 24);
    }
}

static void box(uint8_t *out, const uint8_t *strip, int32_t count, struct st_box box)
{
    const int32_t inside = box.radius < count ? box.radius : count;
    const uint8_t *last = strip_row(strip, count - 1, count);
    uint32_t sum[ST_BOX_SIDE]; /* of the box around the row before the first */
    for (int32_t k = 0; k < ST_BOX_SIDE; k++)
        sum[k] = strip[k] * (uint32_t)(box.radius + 1) + last[k] * (uint32_t)(box.radius - inside);
    for (int32_t y = 0; y < inside; y++)
        for (int32_t k = 0; k < ST_BOX_SIDE; k++)
            sum[k] += strip[y * ST_BOX_SIDE + k];
    for (int32_t y = 0; y < count; y++)
        box_row(out + (ptrdiff_t)y * ST_BOX_SIDE, sum, strip_row(strip, (int64_t)y + box.radius, count),
                strip_row(strip, (int64_t)y - box.radius - 1, count),
                strip_row(strip, (int64_t)y + box.radius + 1, count), box);
}

extern const struct st_colour_rows ST_COLOUR_ROWS;
const struct st_colour_rows ST_COLOUR_ROWS = {
    .blend = blend,
    .saturate = saturate,
    .hue = hue,
    .grey = grey,
    .grey3 = grey3,
    .grey_sum = grey_sum,
    .replace = replace,
    .fold = fold,
    .line = line,
#if defined(__AVX2__)
    .line_is_fast = true,
#endif
    .extent = extent,
    .histogram = histogram,
    .sharpen = sharpen,
    .box = box,
    .blur_down = blur_down,
    .blur_across = blur_across,
};
