/* lines.h - a region's input rows as three planes of bytes, four columns at a time
 *
 * Fetching from memory and computing are separate steps, so that a thread can fetch for several groups
 * of columns before it has to wait for the first. Addresses are aligned to words, which is why the first
 * column of a group is a multiple of four: of the region's pixels in the heap, or of the image's
 * samples. Words without a byte of the region are not fetched: they may be behind the end of the memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_LINES_H
#define ST_GPU_LINES_H

#include "gpu/resample.h"

/* Four columns: a word per channel, the first column in the lowest byte. */
struct st_four {
    uint32_t r, g, b;
};

/* Whether rows can be fetched in words. */
ST_BOTH uint32_t st_lines_aligned(const struct st_region_in *in)
{
    const struct st_planes *planes = &in->planes;
    const uintptr_t samples = (uintptr_t)planes->luma | (uintptr_t)planes->blue |
                              (uintptr_t)planes->red | planes->stride | planes->chroma_stride;
    return ((in->in_planes ? samples : (uintptr_t)in->pixels | in->stride) & 3) == 0;
}

/* ---- from interleaved bytes ---------------------------------------------------------------------- */

struct st_heap_words {
    uint32_t word[3];
};

/* The first `left` columns are needed, of those that start at `from`. */
ST_BOTH struct st_heap_words st_heap_fetch(const uint8_t *from, int32_t left)
{
    struct st_heap_words words;
    ST_UNROLL
    for (int32_t k = 0; k < 3; k++)
        words.word[k] = 3 * left > 4 * k ? st_load(from + 4 * k) : 0;
    return words;
}

ST_BOTH struct st_four st_heap_four(const struct st_heap_words *heap)
{
    const uint32_t first = heap->word[0], second = heap->word[1], third = heap->word[2];
    const struct st_four four = {st_bytes_of(st_bytes_of(first, second, 0x0630), third, 0x5210),
                                 st_bytes_of(st_bytes_of(first, second, 0x0741), third, 0x6210),
                                 st_bytes_of(st_bytes_of(first, second, 0x0052), third, 0x7410)};
    return four;
}

/* ---- from a JPEG's samples ----------------------------------------------------------------------- */

/* Samples for four columns. Chroma with half the columns: the first column's sample is byte 1, after its
 * neighbour, and the last column's neighbour is byte 3. */
struct st_sample_words {
    uint32_t light;
    uint32_t blue, red;
    uint32_t far_blue, far_red; /* of the neighbouring row, with half the rows */
};

/* Which of the bytes from max(before, 0) on are samples `before` to `before + 4`: at the edges the
 * outermost is repeated. */
ST_BOTH uint32_t st_edge_select(int32_t before, int32_t last)
{
    const int32_t most = last - (before < 0 ? 0 : before);
    const uint32_t select = before < 0 ? 0x2100 : 0x3210;
    return most >= 3   ? select
           : most == 2 ? (before < 0 ? 0x2100 : 0x2210)
           : most == 1 ? (before < 0 ? 0x1100 : 0x1110)
                       : 0;
}

/* What is the same in all rows of four columns. */
struct st_sample_columns {
    uint32_t light;     /* where they are in a row of luma */
    uint32_t chroma;    /* and of chroma: an aligned word, */
    uint32_t straddles; /* the next one, */
    uint32_t select;    /* and which bytes of the two */
};

/* `x` is of the image. `halved`, a constant: chroma has half the columns or half the rows. */
ST_BOTH struct st_sample_columns st_sample_columns_of(const struct st_planes *planes, int32_t x,
                                                      uint32_t halved)
{
    struct st_sample_columns columns;
    columns.light = columns.chroma = (uint32_t)x;
    columns.straddles = columns.select = 0;
    if (!halved)
        return columns;
    const int32_t before = (x >> planes->half_x) - 1;
    const int32_t first = !planes->half_x ? x : before < 0 ? 0 : before, over = first & 3;
    columns.chroma = (uint32_t)(first - over);
    columns.straddles = over && planes->last_x + 1 - first > 4 - over;
    columns.select =
        (planes->half_x ? st_edge_select(before, planes->last_x) : 0x3210) + 0x1111 * (uint32_t)over;
    return columns;
}

ST_BOTH uint32_t st_load_chroma(const uint8_t *at, const struct st_sample_columns *columns)
{
    const uint32_t low = st_load(at), high = columns->straddles ? st_load(at + 4) : 0;
    return st_bytes_of(low, high, columns->select);
}

/* `y` is of the image. */
ST_BOTH struct st_sample_words st_samples_fetch(const struct st_planes *planes,
                                                const struct st_sample_columns *columns, int32_t y,
                                                uint32_t halved)
{
    struct st_sample_words words;
    words.light = st_load(planes->luma + ((uint32_t)y * planes->stride + columns->light));
    words.far_blue = words.far_red = 0;
    if (!halved) {
        const uint32_t at = (uint32_t)y * planes->chroma_stride + columns->chroma;
        words.blue = st_load(planes->blue + at);
        words.red = st_load(planes->red + at);
        return words;
    }
    const int32_t row = y >> planes->half_y;
    const uint32_t near = (uint32_t)row * planes->chroma_stride + columns->chroma;
    words.blue = st_load_chroma(planes->blue + near, columns);
    words.red = st_load_chroma(planes->red + near, columns);
    if (planes->half_y) {
        const uint32_t other = (uint32_t)st_chroma_far(row, y & 1, planes->last_y);
        const uint32_t far = other * planes->chroma_stride + columns->chroma;
        words.far_blue = st_load_chroma(planes->blue + far, columns);
        words.far_red = st_load_chroma(planes->red + far, columns);
    }
    return words;
}

/* Two values of 16 bits in a word each, which cannot overflow: samples 0 and 2, and samples 1 and 3. */
struct st_pairs {
    uint32_t even, odd;
};

ST_BOTH struct st_pairs st_pairs_of(uint32_t bytes)
{
    const struct st_pairs pairs = {bytes & 0x00ff00ff, bytes >> 8 & 0x00ff00ff};
    return pairs;
}

/* Chroma of four columns, of row `y`. */
ST_BOTH uint32_t st_chroma_four(const struct st_planes *planes, uint32_t near, uint32_t far, int32_t y)
{
    struct st_pairs pairs = st_pairs_of(near);
    if (planes->repeated) /* narrower than what is interpolated */
        return st_bytes_of(near, 0, 0x2211);
    if (planes->half_y) {
        const struct st_pairs others = st_pairs_of(far);
        pairs.even = 3 * pairs.even + others.even;
        pairs.odd = 3 * pairs.odd + others.odd;
    }
    if (!planes->half_x) {
        const uint32_t more = 0x00010001 * (1 + ((uint32_t)y & 1));
        return ((pairs.even + more) >> 2 & 0x00ff00ff) | ((pairs.odd + more) >> 2 & 0x00ff00ff) << 8;
    }
    /* Columns 0 and 3 mix samples 1 and 0, 2 and 3; columns 1 and 2 mix samples 1 and 2, 2 and 1. */
    const uint32_t nearer = 3 * st_bytes_of(pairs.odd, pairs.even, 0x7610);
    const uint32_t outer = nearer + st_bytes_of(pairs.even, pairs.odd, 0x7610);
    const uint32_t inner = nearer + st_bytes_of(pairs.even, pairs.odd, 0x5432);
    const uint32_t outer_four = planes->half_y ? (outer + 0x00070008) >> 4 : (outer + 0x00020001) >> 2;
    const uint32_t inner_four = planes->half_y ? (inner + 0x00080007) >> 4 : (inner + 0x00010002) >> 2;
    return st_bytes_of(outer_four, inner_four, 0x2640);
}

ST_BOTH struct st_four st_samples_four(const struct st_planes *planes,
                                       const struct st_sample_words *words, int32_t y, uint32_t halved)
{
    uint32_t blue = words->blue, red = words->red;
    struct st_ycc px[4];
    if (halved) {
        blue = st_chroma_four(planes, blue, words->far_blue, y);
        red = st_chroma_four(planes, red, words->far_red, y);
    }
    blue ^= ST_YCC_CENTRES;
    red ^= ST_YCC_CENTRES;
    ST_UNROLL
    for (int32_t k = 0; k < 4; k++)
        px[k] =
            st_ycc_of(st_ycc_light(words->light, k), st_signed_byte(blue, k), st_signed_byte(red, k));
    const struct st_four four = {st_clamped_four(px[0].r, px[1].r, px[2].r, px[3].r),
                                 st_clamped_four(px[0].g, px[1].g, px[2].g, px[3].g),
                                 st_clamped_four(px[0].b, px[1].b, px[2].b, px[3].b)};
    return four;
}

#endif
