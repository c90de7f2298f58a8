/* resample.h - makes a tile's pixels from a row's region: both passes of Pillow's resampling, or nearest
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_RESAMPLE_H
#define ST_GPU_RESAMPLE_H

#include "gpu/arith.h"
#include "gpu/batch.h"
#include "gpu/planes.h"

ST_BOTH struct st_axis st_axis_of(const uint8_t *raw, const struct st_job_side *side, int32_t count)
{
    struct st_axis axis;
    axis.taps = side->width;
    axis.window = side->window;
    axis.first = (const int32_t *)(const void *)(raw + side->at);
    axis.weight = axis.first + count;
    return axis;
}

ST_BOTH struct st_region_in st_region_of(const struct st_gpu_batch *batch, const struct st_job *job)
{
    struct st_region_in in;
    in.in_planes = job->from == ST_JOB_PLANES;
    in.planes = st_planes_of(batch->raw, job);
    in.pixels = (job->from == ST_JOB_MADE ? batch->made : batch->raw) + (in.in_planes ? 0 : job->pixels);
    in.stride = job->stride;
    in.channels = job->channels;
    in.x = st_axis_of(batch->raw, &job->x, job->width);
    in.y = st_axis_of(batch->raw, &job->y, job->height);
    return in;
}

/* The first input of output `o`; `o` itself if the axis is not resized. */
ST_BOTH int32_t st_axis_first(const struct st_axis *axis, int32_t o)
{
    return axis->taps ? (int32_t)st_load(axis->first + o) : o;
}

ST_BOTH const uint8_t *st_pixel_at(const struct st_region_in *in, int32_t x, int32_t y)
{
    return in->pixels + (uint64_t)(uint32_t)y * in->stride + (uint64_t)(uint32_t)(x * in->channels);
}

ST_BOTH uint32_t st_pixel(const struct st_region_in *in, int32_t x, int32_t y)
{
    if (in->in_planes)
        return st_planes_pixel(&in->planes, x, y);
    const uint8_t *at = st_pixel_at(in, x, y);
    if (in->channels == 1)
        return st_load_byte(at);
    return st_load_byte(at) | st_load_byte(at + 1) << 8 | st_load_byte(at + 2) << 16;
}

/* An output column: its first input column and its weights. */
struct st_column {
    int32_t first;
    const int32_t *weight;
};

ST_BOTH struct st_column st_column_of(const struct st_region_in *in, int32_t x)
{
    struct st_column column;
    column.first = st_axis_first(&in->x, x);
    column.weight = in->x.weight + (int64_t)x * in->x.taps;
    return column;
}

/* Reads a run of bytes as aligned words; only words that contain bytes of the run are fetched. */
struct st_words {
    const uint8_t *next;
    int32_t left;         /* words still to be fetched */
    uint32_t low, shift;  /* the last word fetched, and the bit position in it */
};

ST_BOTH struct st_words st_words_at(const uint8_t *from, int32_t bytes)
{
    const int32_t over = (int32_t)((uintptr_t)from & 3);
    struct st_words words;
    words.next = from - over + 4;
    words.left = (over + bytes - 1) >> 2;
    words.low = st_load(from - over);
    words.shift = (uint32_t)over * 8;
    return words;
}

ST_BOTH uint32_t st_words_take(struct st_words *words)
{
    const uint32_t high = words->left > 0 ? st_load(words->next) : 0;
    const uint32_t bytes = st_straddle(words->low, high, words->shift);
    words->low = high;
    words->next += 4;
    words->left--;
    return bytes;
}

/* Up to four taps of `channels` bytes each; `i` and `channels` are constants. */
ST_BOTH void st_sums_taps(struct st_sums *sums, const uint32_t *part, int32_t i, uint32_t weight,
                          int32_t channels)
{
    const int32_t at = i * channels;
    sums->r += st_byte(part[at / 4], at % 4) * weight;
    if (channels == 3) {
        sums->g += st_byte(part[(at + 1) / 4], (at + 1) % 4) * weight;
        sums->b += st_byte(part[(at + 2) / 4], (at + 2) % 4) * weight;
    }
}

/* Weight `t` of a column: those in shared memory lie ST_TILE apart. `close`, a constant, says where they
 * are. */
ST_BOTH uint32_t st_weight(const void *weights, int32_t t, uint32_t close)
{
    return close ? ((const uint32_t *)weights)[t * ST_TILE] : st_load((const int32_t *)weights + t);
}

/* An output column's pixel for the input row whose taps start at `from`. `channels` and `close` are
 * constants. */
ST_BOTH uint32_t st_across_taps(const uint8_t *from, const void *weights, int32_t taps, int32_t channels,
                                uint32_t close)
{
    struct st_words words = st_words_at(from, taps * channels);
    struct st_sums sums = st_sums_none();
    uint32_t part[3] = {0, 0, 0};
    int32_t left = taps;
    ST_ROLLED
    for (; left >= 4; left -= 4) {
        ST_UNROLL
        for (int32_t k = 0; k < channels; k++)
            part[k] = st_words_take(&words);
        ST_UNROLL
        for (int32_t i = 0; i < 4; i++)
            st_sums_taps(&sums, part, i, st_weight(weights, i, close), channels);
        weights = (const uint32_t *)weights + (close ? 4 * ST_TILE : 4);
    }
    if (left > 0) {
        ST_UNROLL
        for (int32_t k = 0; k < channels; k++)
            part[k] = st_words_take(&words);
        st_sums_taps(&sums, part, 0, st_weight(weights, 0, close), channels);
        if (left > 1)
            st_sums_taps(&sums, part, 1, st_weight(weights, 1, close), channels);
        if (left > 2)
            st_sums_taps(&sums, part, 2, st_weight(weights, 2, close), channels);
    }
    return st_sums_pixel(&sums);
}

ST_BOTH uint32_t st_across_planes(const struct st_region_in *in, const struct st_column *column,
                                  int32_t y)
{
    struct st_sums sums = st_sums_none();
    ST_ROLLED
    for (int32_t t = 0; t < in->x.taps; t++)
        st_sums_add(&sums, st_planes_pixel(&in->planes, column->first + t, y),
                    st_load(column->weight + t));
    return st_sums_pixel(&sums);
}

ST_BOTH uint32_t st_across(const struct st_region_in *in, const struct st_column *column, int32_t y)
{
    if (in->in_planes)
        return st_across_planes(in, column, y);
    const uint8_t *from = st_pixel_at(in, column->first, y);
    return in->channels == 3 ? st_across_taps(from, column->weight, in->x.taps, 3, 0)
                             : st_across_taps(from, column->weight, in->x.taps, 1, 0);
}

/* An output row's pixel for input column `x`. */
ST_BOTH uint32_t st_down(const struct st_region_in *in, int32_t x, int32_t y)
{
    const int32_t first = st_axis_first(&in->y, y);
    const int32_t *weight = in->y.weight + (int64_t)y * in->y.taps;
    struct st_sums sums = st_sums_none();
    ST_ROLLED
    for (int32_t t = 0; t < in->y.taps; t++)
        st_sums_add(&sums, st_pixel(in, x, first + t), st_load(weight + t));
    return st_sums_pixel(&sums);
}

/* ---- two passes -------------------------------------------------------------------------------- */

/* Output rows of a tile that are processed at once, and what the first pass makes for them. */
struct st_strip {
    int32_t y, rows;       /* of the output */
    int32_t first, extent; /* of the input: rows, or columns with the vertical pass first */
    uint32_t down_first;
    uint32_t kept;         /* there are two passes, and there is room for the first one's output */
};

ST_BOTH int32_t st_axis_extent(const struct st_axis *axis, int32_t from, int32_t count)
{
    return st_axis_first(axis, from + count - 1) + axis->taps - st_axis_first(axis, from);
}

ST_BOTH struct st_strip st_strip_at(const struct st_spot *spot, const struct st_region_in *in, int32_t y)
{
    struct st_strip strip;
    strip.y = y;
    strip.rows = spot->y + spot->height - y;
    strip.down_first = spot->job->vertical_first;
    strip.first = strip.extent = 0;
    strip.kept = 0;
    if (in->x.taps <= 0 || in->y.taps <= 0)
        return strip;
    int32_t rows = strip.rows;
    if (strip.down_first) {
        strip.first = st_axis_first(&in->x, spot->x);
        strip.extent = st_axis_extent(&in->x, spot->x, spot->width);
        rows = rows * strip.extent <= ST_TILE_MID ? rows : ST_TILE_MID / strip.extent;
    } else {
        strip.first = st_axis_first(&in->y, y);
        while (rows && (strip.extent = st_axis_extent(&in->y, y, rows)) > ST_TILE_MID / ST_TILE)
            rows /= 2;
    }
    strip.kept = rows > 0;
    strip.rows = rows > 0 ? rows : strip.rows;
    return strip;
}

/* The horizontal pass of one column, with weights in shared memory; `channels` is a constant. */
ST_BOTH void st_first_across(struct st_tile *tile, const struct st_region_in *in,
                             const struct st_strip *strip, int32_t first, int32_t lane, int32_t warp,
                             int32_t channels)
{
    const uint8_t *from = st_pixel_at(in, first, strip->first + warp);
    const uint32_t *weights = tile->weights + lane;
    uint32_t *mid = tile->mid + warp * ST_TILE + lane;
    ST_ROLLED
    for (int32_t r = warp; r < strip->extent; r += ST_GPU_WARPS) {
        *mid = st_across_taps(from, weights, in->x.taps, channels, 1);
        mid += ST_GPU_WARPS * ST_TILE;
        from += (uint64_t)in->stride * ST_GPU_WARPS;
    }
}

/* The same with too many weights for that. */
ST_RARE void st_first_across_far(struct st_tile *tile, const struct st_region_in in,
                                 const struct st_strip strip, const struct st_column column,
                                 int32_t lane, int32_t warp)
{
    ST_ROLLED
    for (int32_t r = warp; r < strip.extent; r += ST_GPU_WARPS)
        tile->mid[r * ST_TILE + lane] = st_across(&in, &column, strip.first + r);
}

ST_RARE void st_first_down(struct st_tile *tile, const struct st_region_in in,
                           const struct st_strip strip, int32_t lane, int32_t warp)
{
    ST_ROLLED
    for (int32_t r = warp; r < strip.rows; r += ST_GPU_WARPS)
        ST_ROLLED
        for (int32_t i = lane; i < strip.extent; i += ST_GPU_WARP)
            tile->mid[r * strip.extent + i] = st_down(&in, strip.first + i, strip.y + r);
}

/* The first pass of a strip that is kept: into tile->mid, [extent][ST_TILE], or [rows][extent] if the
 * vertical pass comes first. */
ST_BOTH void st_first_pass(struct st_tile *tile, const struct st_spot *spot,
                           const struct st_region_in *in, const struct st_strip *strip, uint32_t thread)
{
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    if (strip->down_first) {
        st_first_down(tile, *in, *strip, lane, warp);
        return;
    }
    if (lane >= spot->width)
        return;
    const struct st_column column = st_column_of(in, spot->x + lane);
    if (in->x.taps > ST_TILE_TAPS || in->in_planes)
        st_first_across_far(tile, *in, *strip, column, lane, warp);
    else if (in->channels == 3)
        st_first_across(tile, in, strip, column.first, lane, warp, 3);
    else
        st_first_across(tile, in, strip, column.first, lane, warp, 1);
}

/* ---- the second pass ----------------------------------------------------------------------------- */

/* The second pass for a pixel, `row` rows into a strip that is kept. */
ST_BOTH uint32_t st_second_down(const struct st_tile *tile, const struct st_region_in *in,
                                const struct st_strip *strip, int32_t lane, int32_t row)
{
    const int32_t y = strip->y + row;
    const uint32_t *mid = tile->mid + (st_axis_first(&in->y, y) - strip->first) * ST_TILE + lane;
    const int32_t *weight = in->y.weight + (int64_t)y * in->y.taps;
    struct st_sums sums = st_sums_none();
    ST_BY_FOUR
    for (int32_t left = in->y.taps; left > 0; left--) {
        st_sums_add(&sums, *mid, st_load(weight));
        mid += ST_TILE;
        weight++;
    }
    return st_sums_pixel(&sums);
}

ST_RARE uint32_t st_second_across(const struct st_tile *tile, const struct st_column column,
                                  int32_t taps, const struct st_strip strip, int32_t row)
{
    const uint32_t *mid = tile->mid + row * strip.extent + column.first - strip.first;
    struct st_sums sums = st_sums_none();
    ST_ROLLED
    for (int32_t t = 0; t < taps; t++)
        st_sums_add(&sums, mid[t], st_load(column.weight + t));
    return st_sums_pixel(&sums);
}

/* Both passes for a single pixel. */
ST_BOTH uint32_t st_both_passes(const struct st_region_in *in, const struct st_column *column, int32_t y,
                                uint32_t down_first)
{
    struct st_sums sums = st_sums_none();
    const int32_t first = down_first ? column->first : st_axis_first(&in->y, y);
    const int32_t taps = down_first ? in->x.taps : in->y.taps;
    const int32_t *weight = down_first ? column->weight : in->y.weight + (int64_t)y * taps;
    ST_ROLLED
    for (int32_t t = 0; t < taps; t++)
        st_sums_add(&sums, down_first ? st_down(in, first + t, y) : st_across(in, column, first + t),
                    st_load(weight + t));
    return st_sums_pixel(&sums);
}

/* One output pixel without intermediate results: for one pass or none, for nearest, and for passes too
 * long to keep. */
ST_RARE uint32_t st_lone_pixel(const struct st_region_in in, const struct st_column column, int32_t y,
                               uint32_t down_first)
{
    if (in.x.taps > 0 && in.y.taps > 0)
        return st_both_passes(&in, &column, y, down_first);
    if (in.y.taps > 0)
        return st_down(&in, column.first, y);
    const int32_t from = st_axis_first(&in.y, y);
    return in.x.taps > 0 ? st_across(&in, &column, from) : st_pixel(&in, column.first, from);
}

/* Loads the horizontal weights of the tile's columns into shared memory. */
ST_BOTH void st_load_weights(struct st_tile *tile, const struct st_spot *spot,
                             const struct st_region_in *in, uint32_t thread)
{
    const int32_t taps = in->x.taps;
    const int32_t *from = in->x.weight + (int64_t)spot->x * taps;
    if (taps > ST_TILE_TAPS)
        return;
    ST_ROLLED
    for (int32_t i = (int32_t)thread; i < spot->width * taps; i += ST_GPU_THREADS)
        tile->weights[i % taps * ST_TILE + i / taps] = st_load(from + i);
}

#endif
