/* stage.h - from a tile's pixels to the output: pending ops, blur, the final type and layout, erased
 * boxes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_STAGE_H
#define ST_GPU_STAGE_H

#include "gpu/products.h"

ST_BOTH const struct st_job_pending *st_pending_of(const struct st_gpu_batch *batch,
                                                   const struct st_job *job)
{
    return (const struct st_job_pending *)(const void *)(batch->raw + job->pending);
}

/* The offset of a value of the batch. */
ST_BOTH uint64_t st_offset_of(const struct st_gpu_batch *batch, uint32_t row, int32_t c, int32_t y,
                              int32_t x)
{
    const uint64_t plane = (uint64_t)batch->pitch * (uint64_t)batch->height;
    const uint64_t pixel = (uint64_t)y * (uint64_t)batch->pitch + (uint64_t)x;
    const uint64_t channels = (uint64_t)batch->channels;
    const uint64_t at = batch->planar ? (uint64_t)c * plane + pixel : pixel * channels + (uint64_t)c;
    return (row * channels * plane + at) * batch->element;
}

ST_BOTH uint8_t *st_place_of(const struct st_gpu_batch *batch, uint32_t row, int32_t c, int32_t y,
                             int32_t x)
{
    return batch->images + st_offset_of(batch, row, c, y, x);
}

/* The spot in an image that is mirrored and flipped. */
ST_BOTH void st_spot_turn(const struct st_gpu_batch *batch, struct st_spot *spot, uint32_t mirror,
                          uint32_t flip)
{
    spot->mirror = mirror;
    spot->flip = flip;
    spot->out_x = mirror ? batch->width - spot->x - spot->width : spot->x;
    spot->out_y = flip ? batch->height - spot->y - spot->height : spot->y;
    spot->at = st_offset_of(batch, spot->row, 0, spot->out_y, spot->out_x);
}

ST_BOTH struct st_spot st_spot_of(const struct st_gpu_batch *batch, uint32_t block)
{
    struct st_spot spot;
    spot.row = block / (uint32_t)batch->tiles;
    const int32_t at = (int32_t)(block - spot.row * (uint32_t)batch->tiles);
    spot.job = batch->jobs + spot.row;
    spot.y = at / batch->tiles_across * ST_TILE;
    spot.x = at % batch->tiles_across * ST_TILE;
    spot.width = batch->width - spot.x < ST_TILE ? batch->width - spot.x : ST_TILE;
    spot.height = batch->height - spot.y < ST_TILE ? batch->height - spot.y : ST_TILE;
    /* Images in scratch memory are already mirrored and flipped. */
    st_spot_turn(batch, &spot, batch->stage == 0 && spot.job->mirror,
                 batch->stage == 0 && spot.job->flip);
    return spot;
}

/* ---- the beginning of a block ------------------------------------------------------------------ */

ST_BOTH void st_plan(const struct st_gpu_batch *batch, struct st_tile_plan *plan, uint32_t row)
{
    const struct st_job *job = batch->jobs + row;
    const struct st_job_pending *pending = st_pending_of(batch, job);
    const uint32_t count = job->from == ST_JOB_BLANK ? 0 : job->pending_count;
    uint32_t stage = 0, from = 0;
    while (stage < batch->stage && from < count)
        if (st_pending_begins(pending[from++].kind))
            stage++;
    plan->idle = stage < batch->stage;
    plan->sum = 0;
    plan->channels = job->channels;
    if (plan->idle)
        return;
    plan->from = batch->stage ? from - 1 : 0; /* including the op that starts the stage */
    plan->to = from;
    while (plan->to < count && !st_pending_begins(pending[plan->to].kind))
        plan->to++;
    plan->last = plan->to == count;
    plan->summed = !plan->last && pending[plan->to].kind == ST_PENDING_CONTRAST;
    plan->counted = !plan->last && st_pending_counts(pending[plan->to].kind);
    if (batch->stage && pending[plan->from].kind == ST_PENDING_CONTRAST)
        plan->level = st_mean_level(batch->sums[row * ST_PENDING_MAX + batch->stage - 1],
                                    batch->width, batch->height);
}

ST_BOTH void st_begin(const struct st_gpu_batch *batch, struct st_tile *tile, uint32_t block,
                      uint32_t thread)
{
    if (thread == 0)
        st_plan(batch, &tile->plan, block / (uint32_t)batch->tiles);
    if (thread == ST_GPU_WARP) { /* of another warp, at the same time */
        tile->spot = st_spot_of(batch, block);
        if (!batch->stage && tile->spot.job->from != ST_JOB_BLANK)
            st_plan_products(batch, tile, tile->spot.y);
    }
    uint32_t bits[ST_RGB]; /* fetched before the first is stored */
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++)
        bits[c] = !batch->lut             ? thread
                  : c < batch->channels ? st_load(batch->lut + c * ST_GPU_THREADS + thread)
                                        : 0;
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++)
        tile->lut[(uint32_t)c * ST_GPU_THREADS + thread] = bits[c];
}

/* ---- ops on one pixel -------------------------------------------------------------------------- */

ST_BOTH uint32_t st_pending_done(const struct st_gpu_batch *batch, const struct st_job_pending *op,
                                 uint32_t px, float level, const struct st_tile *tile, int32_t channels)
{
    switch (op->kind) {
    case ST_PENDING_BRIGHTNESS: return st_px_blend(px, 0, op->factor);
    case ST_PENDING_CONTRAST: return st_px_blend(px, level, op->factor);
    case ST_PENDING_SATURATION: return channels == 3 ? st_px_saturate(px, op->factor) : px;
    case ST_PENDING_HUE: return channels == 3 ? st_px_hue(px, op->factor) : px;
    case ST_PENDING_GREY: return channels == 3 ? st_px_grey(px) : px;
    case ST_PENDING_SOLARIZE: return st_px_solarize(px, op->level);
    case ST_PENDING_PERMUTE: return channels == 3 ? st_bytes_of(px, 0, op->level) : px;
    case ST_PENDING_POSTERIZE: return px & op->level * 0x010101;
    case ST_PENDING_LIGHTEN: return st_px_lighten(px, op->level);
    case ST_PENDING_AUTOCONTRAST:
    case ST_PENDING_EQUALIZE: return st_px_replace(px, tile->values.table);
    case ST_PENDING_TABLE: return st_px_look_up(px, batch->raw + op->more);
    default: return px; /* blur, sharpness and warps: already done when the pixel was made */
    }
}

ST_BOTH uint32_t *st_plane(const struct st_gpu_batch *batch, uint32_t row, uint32_t stage)
{
    return batch->planes + (stage % 2 ? batch->other : 0) +
           (uint64_t)row * ((uint64_t)batch->width * (uint64_t)batch->height);
}

/* Runs the ops on all pixels of the tile, in place; if another stage follows, stores them in the plane
 * and adds to the sum. */
ST_BOTH void st_pending_tile(const struct st_gpu_batch *batch, struct st_tile *tile,
                           const struct st_spot *spot, uint32_t thread)
{
    const int32_t x = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    const struct st_job_pending *pending = st_pending_of(batch, spot->job);
    const struct st_tile_plan *plan = &tile->plan; /* constant, except for its sum */
    const uint32_t from = plan->from, to = plan->to, last = plan->last, summed = plan->summed;
    const float level = plan->level;
    const int32_t channels = plan->channels;
    uint32_t *plane = st_plane(batch, spot->row, batch->stage);
    uint32_t sum = 0;
    if (x >= spot->width)
        return;
    ST_ROLLED
    for (int32_t y = warp; y < spot->height; y += ST_GPU_WARPS) {
        uint32_t px = tile->out[y * ST_TILE + x];
        ST_ROLLED
        for (uint32_t i = from; i < to; i++)
            px = st_pending_done(batch, &pending[i], px, level, tile, channels);
        tile->out[y * ST_TILE + x] = px;
        if (last)
            continue;
        plane[(int64_t)(spot->out_y + y) * batch->width + spot->out_x + x] = px;
        sum += channels == 3 ? st_px_luma(px) : st_byte(px, 0);
    }
    if (summed)
        st_add_u32(&tile->plan.sum, sum);
}

/* ---- blur -------------------------------------------------------------------------------------- */

struct st_blur {
    const uint32_t *plane;
    const float *across, *down; /* half kernels */
    int32_t half_across, half_down, width, height;
};

struct st_rgb {
    float r, g, b;
};

ST_BOTH struct st_blur st_blur_of(const struct st_gpu_batch *batch, const struct st_spot *spot,
                                  const struct st_job_pending *op)
{
    struct st_blur blur;
    blur.plane = st_plane(batch, spot->row, batch->stage - 1);
    blur.across = (const float *)(const void *)(batch->raw + op->more);
    blur.half_across = op->across / 2;
    blur.half_down = op->down / 2;
    blur.down = blur.across + blur.half_across + 1;
    blur.width = batch->width;
    blur.height = batch->height;
    return blur;
}

/* Reflects an index at the ends of [0, count). */
ST_BOTH int32_t st_reflected(int32_t i, int32_t count)
{
    return i < 0 ? -i : i >= count ? 2 * (count - 1) - i : i;
}

/* Adds in the same order as op/: the centre, then outwards, after adding both sides to each other. */
ST_BOTH struct st_rgb st_blur_down(const struct st_blur *blur, int32_t x, int32_t y)
{
    const uint32_t *column = blur->plane + st_reflected(x, blur->width);
    const uint32_t middle = st_load(column + (int64_t)y * blur->width);
    const float w0 = st_load_float(blur->down);
    struct st_rgb sum = {w0 * (float)st_byte(middle, 0), w0 * (float)st_byte(middle, 1),
                         w0 * (float)st_byte(middle, 2)};
    ST_BY_FOUR
    for (int32_t k = 1; k <= blur->half_down; k++) {
        const uint32_t above =
            st_load(column + (int64_t)st_reflected(y - k, blur->height) * blur->width);
        const uint32_t below =
            st_load(column + (int64_t)st_reflected(y + k, blur->height) * blur->width);
        const float w = st_load_float(blur->down + k);
        sum.r += w * (float)(st_byte(above, 0) + st_byte(below, 0));
        sum.g += w * (float)(st_byte(above, 1) + st_byte(below, 1));
        sum.b += w * (float)(st_byte(above, 2) + st_byte(below, 2));
    }
    return sum;
}

/* Rows of a tile that are blurred at once. Their columns and those to the sides, blurred vertically, are
 * kept: [rows][3][columns]. */
struct st_blur_strip {
    int32_t y, rows, columns;
    uint32_t kept; /* there is room for at least one row */
};

ST_BOTH struct st_blur_strip st_blur_strip_at(const struct st_spot *spot, const struct st_blur *blur,
                                              int32_t y)
{
    struct st_blur_strip strip;
    strip.y = y;
    strip.rows = spot->y + spot->height - y;
    strip.columns = spot->width + 2 * blur->half_across;
    const int32_t room = ST_TILE_MID / (3 * strip.columns);
    strip.kept = room > 0;
    strip.rows = strip.kept && room < strip.rows ? room : strip.rows;
    return strip;
}

ST_BOTH void st_blur_first(struct st_tile *tile, const struct st_spot *spot, const struct st_blur *blur,
                           const struct st_blur_strip *strip, uint32_t thread)
{
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    const int32_t n = strip->columns;
    ST_ROLLED
    for (int32_t r = warp; r < strip->rows; r += ST_GPU_WARPS)
        ST_ROLLED
        for (int32_t i = lane; i < n; i += ST_GPU_WARP) {
            const struct st_rgb sum = st_blur_down(blur, spot->x - blur->half_across + i, strip->y + r);
            float *to = tile->blurred + 3 * r * n + i;
            to[0] = sum.r;
            to[n] = sum.g;
            to[2 * n] = sum.b;
        }
}

/* The horizontal blur of vertically blurred values. */
ST_BOTH struct st_rgb st_rgb_times(struct st_rgb a, float weight)
{
    const struct st_rgb product = {weight * a.r, weight * a.g, weight * a.b};
    return product;
}

ST_BOTH void st_rgb_add(struct st_rgb *sum, float weight, struct st_rgb left, struct st_rgb right)
{
    sum->r += weight * (left.r + right.r);
    sum->g += weight * (left.g + right.g);
    sum->b += weight * (left.b + right.b);
}

ST_BOTH uint32_t st_rgb_pixel(struct st_rgb sum)
{
    const uint32_t r = (uint8_t)(int32_t)(sum.r + 0.5f), g = (uint8_t)(int32_t)(sum.g + 0.5f);
    return r | g << 8 | (uint32_t)(uint8_t)(int32_t)(sum.b + 0.5f) << 16;
}

ST_BOTH struct st_rgb st_rgb_kept(const float *from, int32_t columns)
{
    const struct st_rgb sum = {from[0], from[columns], from[2 * columns]};
    return sum;
}

/* A pixel of a strip that is kept, `r` rows into it. */
ST_BOTH uint32_t st_blur_kept(const struct st_tile *tile, const struct st_blur *blur,
                              const struct st_blur_strip *strip, int32_t lane, int32_t r)
{
    const int32_t n = strip->columns;
    const float *at = tile->blurred + 3 * r * n + lane + blur->half_across;
    const float *left = at, *right = at, *weight = blur->across;
    struct st_rgb sum = st_rgb_times(st_rgb_kept(at, n), st_load_float(weight));
    ST_BY_FOUR
    for (int32_t k = blur->half_across; k > 0; k--) {
        left--, right++, weight++;
        st_rgb_add(&sum, st_load_float(weight), st_rgb_kept(left, n), st_rgb_kept(right, n));
    }
    return st_rgb_pixel(sum);
}

/* A pixel of a strip that is not kept. */
ST_RARE uint32_t st_blur_lone(const struct st_blur blur, int32_t x, int32_t y)
{
    struct st_rgb sum = st_rgb_times(st_blur_down(&blur, x, y), st_load_float(blur.across));
    ST_ROLLED
    for (int32_t k = 1; k <= blur.half_across; k++)
        st_rgb_add(&sum, st_load_float(blur.across + k), st_blur_down(&blur, x - k, y),
                   st_blur_down(&blur, x + k, y));
    return st_rgb_pixel(sum);
}

/* ---- output ------------------------------------------------------------------------------------ */

/* A part of the output that is contiguous in memory and in the tile: one row of one channel. */
struct st_run {
    uint8_t *to;
    const uint32_t *pixels;
    const uint32_t *lut;
    int32_t count, channel;
};

ST_BOTH uint32_t st_run_bits(const struct st_run *run, int32_t i)
{
    return run->lut[run->channel * 256 + ((const uint8_t *)run->pixels)[4 * i + run->channel]];
}

ST_BOTH void st_put(uint8_t *to, uint32_t element, uint32_t bits)
{
    if (element == 4)
        *(uint32_t *)(void *)to = bits;
    else if (element == 2)
        *(uint16_t *)(void *)to = (uint16_t)bits;
    else
        *to = (uint8_t)bits;
}

/* Writes words, one per lane, where the run is aligned to them; else values. `element` is a constant. */
ST_BOTH void st_run_put(const struct st_run *run, int32_t element, int32_t lane)
{
    const int32_t each = 4 / element;
    const uint32_t aligned = ((uintptr_t)run->to & 3) == 0;
    ST_ROLLED
    for (int32_t i = lane * each; i < run->count; i += ST_GPU_WARP * each) {
        uint8_t *to = run->to + i * element;
        if (aligned && i + each <= run->count) {
            uint32_t word = 0;
            ST_UNROLL
            for (int32_t k = 0; k < each; k++)
                word |= st_run_bits(run, i + k) << (8 * element * k);
            *(uint32_t *)(void *)to = word;
            continue;
        }
        ST_ROLLED
        for (int32_t k = 0; k < each && i + k < run->count; k++)
            st_put(to + k * element, (uint32_t)element, st_run_bits(run, i + k));
    }
}

ST_BOTH void st_finish_planes(const struct st_gpu_batch *batch, const struct st_tile *tile,
                              const struct st_spot *spot, uint32_t thread)
{
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    ST_ROLLED
    for (int32_t y = warp; y < spot->height; y += ST_GPU_WARPS)
        ST_ROLLED
        for (int32_t c = 0; c < batch->channels; c++) {
            const struct st_run run = {
                st_place_of(batch, spot->row, c, spot->out_y + y, spot->out_x), tile->out + y * ST_TILE,
                tile->lut, spot->width, c};
            if (batch->element == 2)
                st_run_put(&run, 2, lane);
            else if (batch->element == 4)
                st_run_put(&run, 4, lane);
            else
                st_run_put(&run, 1, lane);
        }
}

/* The bits of value `i` of some pixels, counted over their channels; `i` is a constant. */
ST_BOTH uint32_t st_rgb_bits(const struct st_tile *tile, const uint32_t *px, int32_t i)
{
    return tile->lut[i % ST_RGB * 256 + (int32_t)st_byte(px[i / ST_RGB], i % ST_RGB)];
}

/* The bits of as many values as fill a word. `element` is a constant. */
ST_BOTH uint32_t st_joined(const uint32_t *bits, int32_t element)
{
    return element == 4   ? bits[0]
           : element == 2 ? st_bytes_of(bits[0], bits[1], 0x5410)
                          : st_bytes_of(st_bytes_of(bits[0], bits[1], 0x0040),
                                        st_bytes_of(bits[2], bits[3], 0x0040), 0x5410);
}

/* Three channels that take turns: as many pixels at once as fill three words. `element` is a
 * constant. */
ST_BOTH void st_finish_rgb(const struct st_gpu_batch *batch, const struct st_tile *tile,
                           const struct st_spot *spot, int32_t element, uint32_t thread)
{
    const int32_t each = 4 / element, across = ST_TILE / each, every = ST_GPU_THREADS / across;
    const int32_t x = (int32_t)thread % across * each, width = spot->width, height = spot->height;
    const uint32_t pitch = (uint32_t)(batch->pitch * ST_RGB * element);
    uint8_t *const first = batch->images + (spot->at + (uint32_t)(x * ST_RGB * element));
    ST_ROLLED
    for (int32_t y = (int32_t)thread / across; y < height; y += every) {
        uint8_t *to = first + (uint32_t)y * pitch;
        uint32_t px[4], bits[4], words[ST_RGB];
        ST_UNROLL
        for (int32_t k = 0; k < each; k++)
            px[k] = tile->out[y * ST_TILE + x + k];
        if (((uintptr_t)to & 3) == 0 && x + each <= width) {
            ST_UNROLL
            for (int32_t w = 0; w < ST_RGB; w++) {
                ST_UNROLL
                for (int32_t k = 0; k < each; k++)
                    bits[k] = st_rgb_bits(tile, px, w * each + k);
                words[w] = st_joined(bits, element);
            }
            ST_UNROLL
            for (int32_t w = 0; w < ST_RGB; w++)
                ((uint32_t *)(void *)to)[w] = words[w];
            continue;
        }
        ST_UNROLL
        for (int32_t k = 0; k < ST_RGB * each; k++)
            if (x + k / ST_RGB < width)
                st_put(to + k * element, (uint32_t)element, st_rgb_bits(tile, px, k));
    }
}

ST_BOTH void st_finish_tile(const struct st_gpu_batch *batch, const struct st_tile *tile,
                            const struct st_spot *spot, uint32_t thread)
{
    if (batch->planar || batch->channels != ST_RGB)
        st_finish_planes(batch, tile, spot, thread);
    else if (batch->element == 2)
        st_finish_rgb(batch, tile, spot, 2, thread);
    else if (batch->element == 4)
        st_finish_rgb(batch, tile, spot, 4, thread);
    else
        st_finish_rgb(batch, tile, spot, 1, thread);
}

ST_BOTH uint32_t st_erase_bits(const struct st_gpu_batch *batch, const struct st_job_erase *box,
                               int32_t c, int32_t y, int32_t x)
{
    if (!box->values)
        return box->bits[c];
    const int64_t at = ((int64_t)c * box->height + (y - box->y)) * box->width + (x - box->x);
    const uint8_t *value = batch->raw + box->values + (uint64_t)at * batch->element;
    if (batch->element == 4)
        return st_load(value);
    if (batch->element == 2)
        return st_load_byte(value) | st_load_byte(value + 1) << 8;
    return st_load_byte(value);
}

/* Each thread has its own pixels, so that where boxes overlap, the last one wins. */
ST_BOTH void st_erase_tile(const struct st_gpu_batch *batch, const struct st_spot *spot, uint32_t thread)
{
    const int32_t x = spot->out_x + (int32_t)(thread % ST_GPU_WARP),
                  warp = (int32_t)(thread / ST_GPU_WARP);
    const struct st_job_erase *boxes =
        (const struct st_job_erase *)(const void *)(batch->raw + spot->job->erases);
    if (x >= spot->out_x + spot->width)
        return;
    ST_ROLLED
    for (int32_t y = spot->out_y + warp; y < spot->out_y + spot->height; y += ST_GPU_WARPS)
        ST_ROLLED
        for (uint32_t i = 0; i < spot->job->erase_count; i++) {
            const struct st_job_erase *box = &boxes[i];
            if (x < box->x || x >= box->x + box->width || y < box->y || y >= box->y + box->height)
                continue;
            ST_ROLLED
            for (int32_t c = 0; c < batch->channels; c++)
                st_put(st_place_of(batch, spot->row, c, y, x), batch->element,
                       st_erase_bits(batch, box, c, y, x));
        }
}

ST_BOTH void st_blank_tile(const struct st_gpu_batch *batch, const struct st_spot *spot, uint32_t thread)
{
    const int32_t x = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    ST_ROLLED
    for (int32_t y = warp; x < spot->width && y < spot->height; y += ST_GPU_WARPS)
        ST_ROLLED
        for (int32_t c = 0; c < batch->channels; c++)
            st_put(st_place_of(batch, spot->row, c, spot->out_y + y, spot->out_x + x), batch->element,
                   0);
}

#endif
