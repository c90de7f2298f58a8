/* blocks.h - the kernels: the work of one block, phase by phase
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_BLOCKS_H
#define ST_GPU_BLOCKS_H

#include "gpu/values.h"
#include "gpu/warp.h"

/* Fills what does not come from the image. */
ST_BOTH void st_border_tile(struct st_tile *tile, const struct st_spot *spot, uint32_t thread)
{
    const struct st_job *job = spot->job;
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    const uint32_t across = (uint32_t)(spot->x + lane - job->inner_x);
    const uint32_t beside = across >= (uint32_t)job->inner_width;
    ST_ROLLED
    for (int32_t y = warp; lane < spot->width && y < spot->height; y += ST_GPU_WARPS)
        if (beside || (uint32_t)(spot->y + y - job->inner_y) >= (uint32_t)job->inner_height)
            *st_out_at(tile, spot, lane, y) = job->fill;
}

ST_BOTH void st_make_strip(struct st_tile *tile, const struct st_spot *spot,
                           const struct st_region_in *in, const struct st_strip *strip, uint32_t thread)
{
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    if (lane >= spot->width)
        return;
    const struct st_column column = st_column_of(in, spot->x + lane);
    ST_ROLLED
    for (int32_t r = warp; r < strip->rows; r += ST_GPU_WARPS)
        *st_out_at(tile, spot, lane, strip->y - spot->y + r) =
            !strip->kept        ? st_lone_pixel(*in, column, strip->y + r, strip->down_first)
            : strip->down_first ? st_second_across(tile, column, in->x.taps, *strip, r)
                                : st_second_down(tile, in, strip, lane, r);
}

ST_BOTH void st_make_blurred(struct st_tile *tile, const struct st_spot *spot,
                             const struct st_blur *blur, const struct st_blur_strip *strip,
                             uint32_t thread)
{
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    if (lane >= spot->width)
        return;
    ST_ROLLED
    for (int32_t r = warp; r < strip->rows; r += ST_GPU_WARPS)
        *st_out_at(tile, spot, lane, strip->y - spot->y + r) =
            strip->kept ? st_blur_kept(tile, blur, strip, lane, r)
                        : st_blur_lone(*blur, spot->x + lane, strip->y + r);
}

ST_BOTH void st_make_sharp(const struct st_gpu_batch *batch, struct st_tile *tile,
                           const struct st_spot *spot, float factor, uint32_t thread)
{
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    if (lane >= spot->width)
        return;
    ST_ROLLED
    for (int32_t y = warp; y < spot->height; y += ST_GPU_WARPS)
        *st_out_at(tile, spot, lane, y) =
            st_sharp_pixel(batch, spot->row, spot->x + lane, spot->y + y, factor);
}

/* Loads the pixels left by the previous stage. */
ST_BOTH void st_make_copies(const struct st_gpu_batch *batch, struct st_tile *tile,
                            const struct st_spot *spot, uint32_t thread)
{
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    const uint32_t *plane = st_plane(batch, spot->row, batch->stage - 1);
    if (lane >= spot->width)
        return;
    ST_ROLLED
    for (int32_t y = warp; y < spot->height; y += ST_GPU_WARPS)
        *st_out_at(tile, spot, lane, y) =
            st_load(plane + (int64_t)(spot->y + y) * batch->width + spot->x + lane);
}

/* The rest of a block, once its pixels are made: ops, then either the sum or the counts are passed on
 * or the tile is finished. */
ST_BOTH void st_end(const struct st_gpu_batch *batch, struct st_tile *tile, const struct st_spot *spot)
{
    if (tile->plan.from < tile->plan.to || !tile->plan.last)
        ST_PHASE(st_pending_tile(batch, tile, spot, thread));
    if (tile->plan.last) {
        ST_PHASE(st_finish_tile(batch, tile, spot, thread));
        if (spot->job->erase_count)
            ST_PHASE(st_erase_tile(batch, spot, thread));
    } else if (tile->plan.summed) {
        ST_PHASE(if (thread == 0) st_add_u64(
            batch->sums + spot->row * ST_PENDING_MAX + batch->stage, tile->plan.sum));
    } else if (tile->plan.counted) {
        st_count_tile(batch, tile, spot);
    }
}

/* Makes rows of a tile by products of matrices, as planned. Returns how many. */
ST_BOTH int32_t st_make_products(struct st_tile *tile)
{
    const int32_t made = tile->products.y.count, inputs = tile->products.y.inputs,
                  chunk = tile->products.chunk;
    ST_ROLLED
    for (int32_t first = 0; first < inputs; first += chunk) {
        const int32_t count = inputs - first < chunk ? inputs - first : chunk;
        ST_PHASE(if (!first) st_put_weights(tile, thread); st_make_rows(tile, first, count, thread));
        ST_PHASE(st_multiply_rows(tile, first, count, thread));
    }
    ST_PHASE(st_multiply_columns(tile, thread));
    return made;
}

/* The same, sum by sum: for one pass or none, for one channel, and where products have no room or the
 * GPU has none. */
ST_RARE int32_t st_make_sums(const struct st_gpu_batch *batch, struct st_tile *tile, uint32_t block,
                             int32_t y)
{
    const struct st_spot spot = st_spot_of(batch, block);
    const struct st_region_in in = st_region_of(batch, spot.job);
    const struct st_strip strip = st_strip_at(&spot, &in, y);
    ST_PHASE(st_load_weights(tile, &spot, &in, thread));
    if (strip.kept)
        ST_PHASE(st_first_pass(tile, &spot, &in, &strip, thread));
    ST_PHASE(st_make_strip(tile, &spot, &in, &strip, thread));
    return strip.rows;
}

ST_BOTH void st_rows_block(const struct st_gpu_batch *batch, struct st_tile *tile, uint32_t block)
{
    const struct st_spot *spot = &tile->spot;
    ST_PHASE(st_begin(batch, tile, block, thread));
    if (spot->job->from == ST_JOB_BLANK) {
        ST_PHASE(st_blank_tile(batch, spot, thread));
        return;
    }
    ST_ROLLED
    for (int32_t y = spot->y; y < spot->y + spot->height;) {
        if (y > spot->y)
            ST_PHASE(if (thread == 0) st_plan_products(batch, tile, y));
        y += tile->products.chunk ? st_make_products(tile) : st_make_sums(batch, tile, block, y);
    }
    if (spot->job->bordered)
        ST_PHASE(st_border_tile(tile, spot, thread));
    st_end(batch, tile, spot);
}

ST_BOTH void st_pending_block(const struct st_gpu_batch *batch, struct st_tile *tile, uint32_t block)
{
    const struct st_spot spot = st_spot_of(batch, block);
    ST_PHASE(st_begin(batch, tile, block, thread));
    if (tile->plan.idle)
        return;
    const struct st_job_pending *op = st_pending_of(batch, spot.job) + tile->plan.from;
    if (op->kind == ST_PENDING_BLUR) {
        const struct st_blur blur = st_blur_of(batch, &spot, op);
        ST_ROLLED
        for (int32_t y = spot.y; y < spot.y + spot.height;) {
            const struct st_blur_strip strip = st_blur_strip_at(&spot, &blur, y);
            if (strip.kept)
                ST_PHASE(st_blur_first(tile, &spot, &blur, &strip, thread));
            ST_PHASE(st_make_blurred(tile, &spot, &blur, &strip, thread));
            y += strip.rows;
        }
    } else if (op->kind == ST_PENDING_SHARPNESS) {
        ST_PHASE(st_make_sharp(batch, tile, &spot, op->factor, thread));
    } else if (op->kind == ST_PENDING_WARP) {
        ST_PHASE(if (thread == 0) st_turn_spot(batch, &tile->spot, op));
        ST_PHASE(st_make_warped(batch, tile, &tile->spot, op, thread));
    } else {
        ST_PHASE(st_make_copies(batch, tile, &spot, thread));
        if (st_pending_counts(op->kind))
            st_make_tables(batch, tile, spot.row, op->kind);
    }
    st_end(batch, tile, &tile->spot);
}

/* ---- fronts -------------------------------------------------------------------------------------- */

/* Block `block` of as many for each row as the largest front has tiles. */
struct st_front_spot {
    const struct st_job *job; /* that has the front; NULL: there is nothing to do */
    uint32_t row, tile;
};

ST_BOTH struct st_front_spot st_front_spot(const struct st_gpu_batch *batch, uint32_t block)
{
    struct st_front_spot spot;
    spot.row = block / (uint32_t)batch->tiles;
    spot.tile = block - spot.row * (uint32_t)batch->tiles;
    spot.job = batch->jobs + spot.row;
    if (spot.job->from != ST_JOB_MADE)
        spot.job = NULL;
    return spot;
}

/* The batch of one row that a front is. Sums and counts are those of the row. */
ST_BOTH void st_front_batch(const struct st_gpu_batch *batch, const struct st_front_spot *spot,
                            struct st_gpu_batch *own)
{
    const struct st_job *front = (const struct st_job *)(const void *)(batch->raw + spot->job->front);
    *own = *batch;
    own->jobs = front;
    own->images = batch->made + front->made;
    own->planes = (uint32_t *)(void *)(batch->made + front->between);
    own->other = st_job_between(front->width, front->height, 1) / sizeof(uint32_t);
    own->sums = batch->sums + spot->row * ST_PENDING_MAX;
    own->counts = batch->counts + spot->row * (ST_RGB * 256);
    own->lut = NULL;
    own->width = front->width;
    own->height = front->height;
    own->channels = spot->job->channels;
    own->pitch = st_job_pitch(front->width);
    own->tiles_across = (front->width + ST_TILE - 1) / ST_TILE;
    own->tiles = own->tiles_across * ((front->height + ST_TILE - 1) / ST_TILE);
    own->element = 1;
    own->planar = 0;
}

ST_BOTH void st_front_rows_block(const struct st_gpu_batch *batch, struct st_gpu_batch *own,
                                 struct st_tile *tile, uint32_t block)
{
    const struct st_front_spot spot = st_front_spot(batch, block);
    if (!spot.job)
        return;
    ST_PHASE(if (thread == 0) st_front_batch(batch, &spot, own));
    if (spot.tile < (uint32_t)own->tiles)
        st_rows_block(own, tile, spot.tile);
}

ST_BOTH void st_front_pending_block(const struct st_gpu_batch *batch, struct st_gpu_batch *own,
                                    struct st_tile *tile, uint32_t block)
{
    const struct st_front_spot spot = st_front_spot(batch, block);
    if (!spot.job)
        return;
    ST_PHASE(if (thread == 0) st_front_batch(batch, &spot, own));
    if (spot.tile < (uint32_t)own->tiles)
        st_pending_block(own, tile, spot.tile);
}

#endif
