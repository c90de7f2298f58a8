/* products.h - the two passes of a resize as matrix products, which GPUs have hardware for
 *
 * A pass is a product of a matrix of pixels and a matrix of weights. Most weights are 0, but 16 lines x
 * 8 outputs x 32 taps at once take a warp less time than one tap at a time takes it for a single line.
 * The hardware multiplies bytes, exactly: the 24 bits of a weight are three bytes, each with a product
 * of its own, whose sums are then added up. So the result is that of op/, whatever the order.
 *
 * The first pass reads rows and writes columns, the second reads these as its lines and writes rows:
 * both are the same function. All lies in the tile's pool:
 *
 *   weights    [3 bytes][ST_TILE outputs][taps], for x and for y
 *   columns    [3 channels][ST_TILE][input rows]
 *   rows       [3 channels][chunk of input rows][input columns]
 *
 * Eight outputs share a window of inputs, a multiple of 32 of them, which starts at a multiple of four.
 * Where windows reach beyond what is needed, the bytes there are arbitrary, and their weights 0.
 * Distances between lines are such that the lanes of a warp read from different banks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_PRODUCTS_H
#define ST_GPU_PRODUCTS_H

#include "gpu/lines.h"

#include <assert.h>

enum {
    ST_PRODUCT_LINES = 16,
    ST_PRODUCT_OUTPUTS = ST_JOB_GROUP,
    ST_PRODUCT_TAPS = 32,
    ST_WEIGHT_PARTS = 3,
    ST_RGB = 3,
    ST_INVERSE_OF_ONE = 1 << 16,
};

/* ---- the plan ------------------------------------------------------------------------------------ */

/* n / d, for n up to 256 and d up to 255; `inverse` is d's, rounded up. */
ST_BOTH int32_t st_quotient(uint32_t n, int32_t inverse)
{
    return (int32_t)(n * (uint32_t)inverse / ST_INVERSE_OF_ONE);
}

/* Where the window of output `o` (counted from the reach's first) starts, counted from the first
 * input. */
ST_BOTH int32_t st_window_start(const struct st_axis *axis, const struct st_reach *reach, int32_t o)
{
    const int32_t first = reach->from + o / ST_PRODUCT_OUTPUTS * ST_PRODUCT_OUTPUTS;
    return (st_axis_first(axis, first) - reach->first) & ~3;
}

ST_BOTH int32_t st_weights_pitch(const struct st_reach *reach)
{
    return reach->steps * ST_PRODUCT_TAPS + 16;
}

ST_BOTH int32_t st_weights_bytes(const struct st_reach *reach)
{
    return ST_WEIGHT_PARTS * ST_TILE * st_weights_pitch(reach);
}

/* Input `origin` is a multiple of four in memory. */
ST_BOTH struct st_reach st_reach_of(const struct st_axis *axis, int32_t from, int32_t count,
                                    int32_t origin)
{
    struct st_reach reach;
    const int32_t first = st_axis_first(axis, from), last = st_axis_first(axis, from + count - 1);
    reach.from = from;
    reach.count = count;
    reach.first = first - ((first - origin) & 3);
    reach.inputs = last + axis->taps - reach.first;
    reach.steps = (axis->window + 3 + ST_PRODUCT_TAPS - 1) / ST_PRODUCT_TAPS;
    const int32_t end = st_window_start(axis, &reach, count - 1) + reach.steps * ST_PRODUCT_TAPS;
    reach.pitch = ((end + 7) & ~15) + 8; /* a multiple of 8, and an odd one */
    return reach;
}

ST_BOTH struct st_products st_products_for(const struct st_spot *spot, const struct st_region_in *in,
                                           int32_t y, int32_t rows)
{
    struct st_products p;
    p.x = st_reach_of(&in->x, spot->x, spot->width, in->in_planes ? -in->planes.x : 0);
    p.y = st_reach_of(&in->y, y, rows, st_axis_first(&in->y, y));
    const int32_t lines = (p.y.inputs + ST_PRODUCT_LINES - 1) & ~(ST_PRODUCT_LINES - 1);
    p.y.pitch = p.y.pitch < lines ? lines + 8 : p.y.pitch;
    p.weights_y = st_weights_bytes(&p.x);
    p.columns = p.weights_y + st_weights_bytes(&p.y);
    p.rows = p.columns + ST_RGB * ST_TILE * p.y.pitch;
    p.chunk = (ST_TILE_POOL - p.rows) / (ST_RGB * p.x.pitch) & ~(ST_PRODUCT_LINES - 1);
    p.chunk = p.rows >= ST_TILE_POOL ? 0 : p.chunk < lines ? p.chunk : lines;
    p.across = (p.x.inputs + 3) / 4;
    p.inverse = ST_INVERSE_OF_ONE / p.across + 1;
    return p;
}

/* Plans as many of the tile's rows from `y` on as there is room for; a chunk of 0: they are not made
 * here. One thread does this for its block. */
ST_BOTH void st_plan_products(const struct st_gpu_batch *batch, struct st_tile *tile, int32_t y)
{
    const struct st_spot *spot = &tile->spot;
    const struct st_region_in in = st_region_of(batch, spot->job);
    int32_t rows = spot->y + spot->height - y;
    tile->in = in;
    tile->products.chunk = 0;
    /* After sums, rows may not start at a group of outputs, for which windows are known to suffice. */
    if (!ST_HAS_PRODUCTS || in.channels != ST_RGB || in.x.window <= 0 || in.y.window <= 0 ||
        spot->job->vertical_first || !st_lines_aligned(&in) || y % ST_PRODUCT_OUTPUTS)
        return;
    ST_ROLLED
    for (;; rows = rows > ST_TILE / 2 ? ST_TILE / 2 : ST_PRODUCT_OUTPUTS) {
        tile->products = st_products_for(spot, &in, y, rows);
        if (tile->products.chunk || rows <= ST_PRODUCT_OUTPUTS)
            return;
    }
}

/* ---- weights ------------------------------------------------------------------------------------- */

/* Four weights of an output, which has `taps` of them. The first is number `k`, at `from`. Those that it
 * does not have are 0, and not read. */
ST_BOTH void st_put_four_weights(uint8_t *to, int32_t part, const int32_t *from, int32_t taps, int32_t k)
{
    uint32_t weight[4];
    ST_UNROLL
    for (int32_t i = 0; i < 4; i++)
        weight[i] = (uint32_t)(k + i) < (uint32_t)taps ? st_load(from + i) : 0;
    const uint32_t first = st_bytes_of(weight[0], weight[1], 0x5140),
                   second = st_bytes_of(weight[2], weight[3], 0x5140);
    *(uint32_t *)(void *)to = st_bytes_of(first, second, 0x5410);
    *(uint32_t *)(void *)(to + part) = st_bytes_of(first, second, 0x7632);
    *(uint32_t *)(void *)(to + 2 * part) =
        st_bytes_of(st_bytes_of(weight[0], weight[1], 0x0062),
                    st_bytes_of(weight[2], weight[3], 0x0062), 0x5410);
}

enum { ST_AXIS_THREADS = ST_GPU_THREADS / 2 };

/* The weights of an axis, by four threads per output. */
ST_BOTH void st_put_axis_weights(uint8_t *to, const struct st_axis *axis, const struct st_reach *reach,
                                 int32_t thread)
{
    enum { EACH = ST_AXIS_THREADS / ST_TILE, AT_ONCE = 4 * EACH };
    const int32_t o = thread / EACH, output = reach->from + (o < reach->count ? o : 0);
    const int32_t taps = o < reach->count ? axis->taps : 0, pitch = st_weights_pitch(reach);
    const int32_t skipped = /* inputs of the window before the first that this output needs */
        st_axis_first(axis, output) - reach->first - st_window_start(axis, reach, output - reach->from);
    int32_t k = thread % EACH * 4 - skipped;
    const int32_t *from = axis->weight + (output * axis->taps + k);
    to += o * pitch + thread % EACH * 4;
    ST_ROLLED
    for (int32_t step = 0; step < reach->steps; step++) {
        ST_UNROLL
        for (int32_t i = 0; i < ST_PRODUCT_TAPS; i += AT_ONCE)
            st_put_four_weights(to + i, ST_TILE * pitch, from + i, taps, k + i);
        k += ST_PRODUCT_TAPS;
        from += ST_PRODUCT_TAPS;
        to += ST_PRODUCT_TAPS;
    }
}

ST_BOTH void st_put_weights(struct st_tile *tile, uint32_t thread)
{
    const struct st_products *p = &tile->products;
    if (thread < ST_AXIS_THREADS)
        st_put_axis_weights(tile->pool, &tile->in.x, &p->x, (int32_t)thread);
    else
        st_put_axis_weights(tile->pool + p->weights_y, &tile->in.y, &p->y,
                            (int32_t)thread - ST_AXIS_THREADS);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

/* A thread's share of the input rows: four columns, the same ones of every few rows. What depends on the
 * columns is then computed once. */
static_assert(ST_TILE_POOL / (ST_RGB * ST_PRODUCT_LINES) / 4 <= 255,
              "the pool may hold rows with more groups of columns than st_quotient divides by");
struct st_share {
    int32_t column; /* the first of the four, counted from the first input */
    int32_t row, every; /* the first of its rows, and how many rows further the next one is */
};

ST_BOTH struct st_share st_share_of(const struct st_products *p, uint32_t thread)
{
    struct st_share share;
    const int32_t row = st_quotient(thread, p->inverse);
    share.every = st_quotient(ST_GPU_THREADS, p->inverse);
    share.column = 4 * ((int32_t)thread - row * p->across);
    share.row = row < share.every ? row : ST_TILE_POOL; /* the last few threads have none */
    return share;
}

ST_BOTH void st_put_four(uint8_t *to, int32_t channel, struct st_four four)
{
    *(uint32_t *)(void *)to = four.r;
    *(uint32_t *)(void *)(to + channel) = four.g;
    *(uint32_t *)(void *)(to + 2 * channel) = four.b;
}

/* Input rows `first` to `first + count`, counted from the first that is needed. Several are fetched
 * before the first is used. */
ST_BOTH void st_make_heap_rows(struct st_tile *tile, int32_t first, int32_t count, uint32_t thread)
{
    enum { AT_ONCE = 3 };
    const struct st_products *p = &tile->products;
    const struct st_share share = st_share_of(p, thread);
    const int32_t pitch = p->x.pitch, channel = p->chunk * pitch, step = share.every * pitch;
    const int32_t left = p->x.inputs - share.column;
    const uint32_t stride = tile->in.stride, skip = (uint32_t)share.every * stride;
    uint32_t at = (uint32_t)share.row * stride;
    const uint8_t *from = st_pixel_at(&tile->in, p->x.first + share.column, p->y.first + first);
    uint8_t *to = tile->pool + p->rows + share.column + share.row * pitch;
    ST_ROLLED
    for (int32_t row = share.row; row < count; row += AT_ONCE * share.every) {
        struct st_heap_words words[AT_ONCE];
        ST_UNROLL
        for (int32_t k = 0; k < AT_ONCE; k++, at += skip)
            words[k] = st_heap_fetch(from + at, row + k * share.every < count ? left : 0);
        ST_UNROLL
        for (int32_t k = 0; k < AT_ONCE; k++, to += step)
            if (row + k * share.every < count)
                st_put_four(to, channel, st_heap_four(&words[k]));
    }
}

/* `halved` is a constant. */
ST_BOTH void st_make_sample_rows(struct st_tile *tile, int32_t first, int32_t count, uint32_t halved,
                                 uint32_t thread)
{
    enum { AT_ONCE = 2 };
    const struct st_products *p = &tile->products;
    const struct st_share share = st_share_of(p, thread);
    const struct st_planes planes = tile->in.planes;
    const struct st_sample_columns columns =
        st_sample_columns_of(&planes, planes.x + p->x.first + share.column, halved);
    const int32_t top = planes.y + p->y.first + first;
    const int32_t pitch = p->x.pitch, channel = p->chunk * pitch, step = share.every * pitch;
    uint8_t *to = tile->pool + p->rows + share.column + share.row * pitch;
    ST_ROLLED
    for (int32_t row = share.row; row < count; row += AT_ONCE * share.every) {
        struct st_sample_words words[AT_ONCE];
        ST_UNROLL
        for (int32_t k = 0; k < AT_ONCE; k++) {
            const int32_t next = row + k * share.every;
            words[k] = st_samples_fetch(&planes, &columns, top + (next < count ? next : row), halved);
        }
        ST_UNROLL
        for (int32_t k = 0; k < AT_ONCE; k++, to += step) {
            const int32_t next = row + k * share.every;
            if (next < count)
                st_put_four(to, channel, st_samples_four(&planes, &words[k], top + next, halved));
        }
    }
}

ST_BOTH void st_make_rows(struct st_tile *tile, int32_t first, int32_t count, uint32_t thread)
{
    if (!tile->in.in_planes)
        st_make_heap_rows(tile, first, count, thread);
    else if (tile->in.planes.half_x | tile->in.planes.half_y)
        st_make_sample_rows(tile, first, count, 1, thread);
    else
        st_make_sample_rows(tile, first, count, 0, thread);
}

/* ---- products ------------------------------------------------------------------------------------ */

/* Eight outputs of sixteen lines, of three channels; of these a lane has two outputs, `output` and the
 * next one, of two lines, `line` and the next one. */
struct st_product {
    int32_t line, output;
    int32_t value[ST_RGB][2][2]; /* of a channel, an output and a line; not clamped */
};

struct st_factors {
    const uint8_t *lines; /* the first of sixteen, at the start of the window */
    int32_t pitch, channel; /* bytes from line to line, and from channel to channel */
    const uint8_t *weights; /* of the first of eight outputs */
    int32_t weights_pitch;
    int32_t steps;
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/* Adds (high << 16) + (mid << 8) + low to the sums, from the highest on: one after the other, they need
 * the fewest registers. `begins`, a constant: the sums begin here, with the half that rounds them. */
ST_BOTH void st_add_products(const struct st_factors *f, const uint8_t *line, const uint8_t *weight,
                             uint32_t sum[ST_RGB][4], uint32_t begins)
{
    const int32_t part = ST_TILE * f->weights_pitch;
    const uint32_t half = begins ? 1u << (ST_WEIGHT_BITS - 1) : 0;
    uint32_t pixels[ST_RGB][4], high[ST_RGB][4];
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++) {
        pixels[c][0] = st_word(line + c * f->channel);
        pixels[c][1] = st_word(line + c * f->channel + f->pitch);
        pixels[c][2] = st_word(line + c * f->channel + 16);
        pixels[c][3] = st_word(line + c * f->channel + f->pitch + 16);
        high[c][0] = high[c][1] = high[c][2] = high[c][3] = 0;
    }
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++) {
        st_mma_signed(high[c], pixels[c], st_word(weight + 2 * part), st_word(weight + 2 * part + 16));
        ST_UNROLL
        for (int32_t i = 0; i < 4; i++)
            high[c][i] = (high[c][i] << 8) + (half >> 8);
    }
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++) {
        st_mma_unsigned(high[c], pixels[c], st_word(weight + part), st_word(weight + part + 16));
        ST_UNROLL
        for (int32_t i = 0; i < 4; i++)
            sum[c][i] = (begins ? 0 : sum[c][i]) + (high[c][i] << 8);
    }
    ST_UNROLL
    for (int32_t c = 0; c < ST_RGB; c++)
        st_mma_unsigned(sum[c], pixels[c], st_word(weight), st_word(weight + 16));
}
#endif

ST_BOTH struct st_product st_multiply(const struct st_factors *f, int32_t lane)
{
    struct st_product product;
    uint32_t sum[ST_RGB][4];
    product.line = lane / 4 * 2;
    product.output = lane % 4 * 2;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const uint8_t *line = f->lines + product.line * f->pitch + lane % 4 * 4;
    const uint8_t *weight = f->weights + lane / 4 * f->weights_pitch + lane % 4 * 4;
    st_add_products(f, line, weight, sum, 1);
    ST_ROLLED
    for (int32_t at = ST_PRODUCT_TAPS; at < f->steps * ST_PRODUCT_TAPS; at += ST_PRODUCT_TAPS)
        st_add_products(f, line + at, weight + at, sum, 0);
#else
    const int32_t part = ST_TILE * f->weights_pitch;
    for (int32_t i = 0; i < ST_RGB * 4; i++) {
        const uint8_t *line = f->lines + i / 4 * f->channel + (product.line + i % 4 / 2) * f->pitch;
        const uint8_t *weight = f->weights + (product.output + i % 2) * f->weights_pitch;
        sum[i / 4][i % 4] = 1u << (ST_WEIGHT_BITS - 1);
        for (int32_t k = 0; k < f->steps * ST_PRODUCT_TAPS; k++)
            sum[i / 4][i % 4] += line[k] * (weight[k] | (uint32_t)weight[k + part] << 8 |
                                            (uint32_t)(int8_t)weight[k + 2 * part] << 16);
    }
#endif
    ST_UNROLL
    for (int32_t i = 0; i < ST_RGB * 4; i++)
        product.value[i / 4][i % 2][i % 4 / 2] = (int32_t)sum[i / 4][i % 4] >> ST_WEIGHT_BITS;
    return product;
}

/* The first pass of `count` rows that are kept, which are rows `first` and on. What is shared is read
 * before anything is stored there: the compiler cannot know that it does not change. */
ST_BOTH void st_multiply_rows(struct st_tile *tile, int32_t first, int32_t count, uint32_t thread)
{
    enum { ACROSS = ST_TILE / ST_PRODUCT_OUTPUTS, DOWN = ST_GPU_WARPS / ACROSS };
    const struct st_products *p = &tile->products;
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    const int32_t x = warp % ACROSS * ST_PRODUCT_OUTPUTS, from = warp / ACROSS * ST_PRODUCT_LINES;
    const int32_t pitch = p->x.pitch, column = p->y.pitch, weights_pitch = st_weights_pitch(&p->x);
    if (x >= p->x.count)
        return;
    struct st_factors factors = {
        tile->pool + p->rows + st_window_start(&tile->in.x, &p->x, x) + from * pitch, pitch,
        p->chunk * pitch, tile->pool + x * weights_pitch, weights_pitch, p->x.steps};
    uint8_t *to = tile->pool + p->columns + x * column + first + from;
    ST_ROLLED
    for (int32_t r = from; r < count; r += DOWN * ST_PRODUCT_LINES) {
        const struct st_product made = st_multiply(&factors, lane);
        uint8_t *at = to + made.output * column + made.line;
        ST_UNROLL
        for (int32_t c = 0; c < ST_RGB; c++) {
            st_store_two(at + c * ST_TILE * column, made.value[c][0][0], made.value[c][0][1]);
            st_store_two(at + (c * ST_TILE + 1) * column, made.value[c][1][0], made.value[c][1][1]);
        }
        factors.lines += DOWN * ST_PRODUCT_LINES * pitch;
        to += DOWN * ST_PRODUCT_LINES;
    }
}

ST_BOTH void st_multiply_columns(struct st_tile *tile, uint32_t thread)
{
    enum { ACROSS = ST_TILE / ST_PRODUCT_LINES }; /* each warp makes one product */
    const struct st_spot *spot = &tile->spot;
    const struct st_products *p = &tile->products;
    const int32_t lane = (int32_t)(thread % ST_GPU_WARP), warp = (int32_t)(thread / ST_GPU_WARP);
    const int32_t x = warp % ACROSS * ST_PRODUCT_LINES, y = warp / ACROSS * ST_PRODUCT_OUTPUTS;
    const int32_t width = p->x.count, height = p->y.count, weights_pitch = st_weights_pitch(&p->y);
    if (x >= width || y >= height)
        return;
    const struct st_factors factors = {
        tile->pool + p->columns + x * p->y.pitch + st_window_start(&tile->in.y, &p->y, y), p->y.pitch,
        ST_TILE * p->y.pitch, tile->pool + p->weights_y + y * weights_pitch, weights_pitch, p->y.steps};
    const struct st_product made = st_multiply(&factors, lane);
    const int32_t px = x + made.line, py = y + made.output;
    const int32_t right = spot->mirror ? -1 : 1, down = spot->flip ? -ST_TILE : ST_TILE;
    uint32_t *to = st_out_at(tile, spot, px, p->y.from - spot->y + py);
    ST_UNROLL
    for (int32_t i = 0; i < 4; i++)
        if (px + i / 2 < width && py + i % 2 < height)
            to[i / 2 * right + i % 2 * down] =
                st_clamped_four(made.value[0][i % 2][i / 2], made.value[1][i % 2][i / 2],
                                made.value[2][i % 2][i / 2], 0);
}

#endif
