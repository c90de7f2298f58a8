/* values.h - ops on a GPU that need histograms, and sharpness
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_VALUES_H
#define ST_GPU_VALUES_H

#include "gpu/stage.h"

/* ---- histograms -------------------------------------------------------------------------------- */

/* Each thread has one value, of all channels. */
static_assert(ST_GPU_THREADS == 256, "a thread has a value of a byte");

ST_BOTH uint32_t *st_counts(const struct st_gpu_batch *batch, uint32_t row, uint32_t stage)
{
    return batch->counts + ((uint64_t)(stage % 2) * batch->rows + row) * (ST_RGB * 256);
}

ST_BOTH void st_count_column(struct st_tile *tile, const struct st_spot *spot, int32_t channels,
                             uint32_t thread)
{
    const int32_t x = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    if (x >= spot->width)
        return;
    ST_ROLLED
    for (int32_t y = warp; y < spot->height; y += ST_GPU_WARPS)
        ST_ROLLED
        for (int32_t c = 0; c < channels; c++)
            st_add_u32(&tile->values.counts[c][st_byte(tile->out[y * ST_TILE + x], c)], 1);
}

/* Counts the tile's values, and adds them to those of the image. */
ST_RARE void st_count_tile(const struct st_gpu_batch *batch, struct st_tile *tile,
                           const struct st_spot *spot)
{
    uint32_t *counts = st_counts(batch, spot->row, batch->stage);
    ST_PHASE(for (uint32_t c = 0; c < ST_RGB; c++) tile->values.counts[c][thread] = 0);
    ST_PHASE(st_count_column(tile, spot, tile->plan.channels, thread));
    ST_PHASE(for (uint32_t c = 0; c < ST_RGB; c++) if (tile->values.counts[c][thread])
                 st_add_u32(&counts[c * 256 + thread], tile->values.counts[c][thread]));
}

ST_BOTH void st_get_counts(const struct st_gpu_batch *batch, struct st_tile *tile, uint32_t row,
                           uint32_t value)
{
    const uint32_t *counts = st_counts(batch, row, batch->stage - 1);
    ST_UNROLL
    for (uint32_t c = 0; c < ST_RGB; c++)
        tile->values.up_to[0][c][value] = st_load(counts + c * 256 + value);
}

/* A step of the sums of counts: after those with distances 1, 2, 4 and so on to 128, each is of all
 * values up to its own. */
ST_BOTH void st_sum_counts(struct st_tile *tile, uint32_t distance, uint32_t from, uint32_t value)
{
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++) {
        const uint32_t *sum = tile->values.up_to[from][c];
        tile->values.up_to[1 - from][c][value] =
            sum[value] + (value >= distance ? sum[value - distance] : 0);
    }
}

ST_BOTH uint32_t st_below(const uint32_t *up_to, uint32_t value) { return value ? up_to[value - 1] : 0; }

/* One thread has the least value, and one the greatest. */
ST_BOTH void st_find_ends(struct st_tile *tile, uint32_t value)
{
    struct st_tile_values *v = &tile->values;
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++) {
        const uint32_t *up_to = v->up_to[0][c];
        const uint32_t below = st_below(up_to, value), count = up_to[value] - below;
        if (count && !below)
            v->low[c] = (int32_t)value;
        if (count && up_to[value] == up_to[255]) {
            v->high[c] = (int32_t)value;
            v->last[c] = count;
        }
    }
}

ST_BOTH void st_put_tables(struct st_tile *tile, uint32_t kind, int32_t channels, uint32_t value)
{
    struct st_tile_values *v = &tile->values;
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++) {
        const uint32_t *up_to = v->up_to[0][c];
        if (c < channels)
            v->table[c][value] =
                (uint8_t)(kind == ST_PENDING_EQUALIZE
                              ? st_equalized(value, st_below(up_to, value), up_to[255], v->last[c])
                              : st_autocontrasted((int32_t)value, v->low[c], v->high[c]));
    }
}

/* The tables of the op that this stage starts with. */
ST_RARE void st_make_tables(const struct st_gpu_batch *batch, struct st_tile *tile, uint32_t row,
                            uint32_t kind)
{
    uint32_t from = 0;
    ST_PHASE(st_get_counts(batch, tile, row, thread));
    ST_ROLLED
    for (uint32_t distance = 1; distance < 256; distance *= 2, from = 1 - from)
        ST_PHASE(st_sum_counts(tile, distance, from, thread));
    ST_PHASE(st_find_ends(tile, thread));
    ST_PHASE(st_put_tables(tile, kind, tile->plan.channels, thread));
}

/* ---- sharpness --------------------------------------------------------------------------------- */

/* A pixel of the image that the previous stage left, sharpened; those at the border stay. */
ST_RARE uint32_t st_sharp_pixel(const struct st_gpu_batch *batch, uint32_t row, int32_t x, int32_t y,
                                float factor)
{
    const uint32_t *at = st_plane(batch, row, batch->stage - 1) + (int64_t)y * batch->width + x;
    const uint32_t px = st_load(at);
    if (x == 0 || y == 0 || x == batch->width - 1 || y == batch->height - 1)
        return px;
    uint32_t sum[ST_RGB], out[ST_RGB];
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++)
        sum[c] = 4 * st_byte(px, c);
    ST_UNROLL
    for (int32_t k = 0; k < 9; k++) {
        const uint32_t near = st_load(at + (int64_t)(k / 3 - 1) * batch->width + (k % 3 - 1));
        ST_UNROLL
        for (int32_t c = 0; c < ST_RGB; c++)
            sum[c] += st_byte(near, c);
    }
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++)
        out[c] = (uint32_t)(int32_t)st_blended((float)st_soft(sum[c]), (float)st_byte(px, c), factor);
    return out[0] | out[1] << 8 | out[2] << 16;
}

#endif
