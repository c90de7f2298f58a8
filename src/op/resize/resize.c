/* resize.c - Pillow's resampling, byte for byte: the two passes and their order
 *
 * Rows flow through small rings, so that everything between the input and the destination stays in the
 * nearest cache:
 *
 *     horizontal first: input rows -> across, four at a time -> ring -> down -> row -> destination
 *     vertical first:   input rows -> down -> four rows -> across -> rows -> destination
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/resize/taps.h"
#include "op/geometry/turn.h"

#include <string.h>

enum {
    BLOCK = 4,     /* rows that the horizontal kernels process at once */
    PART = 384,    /* bytes of a row that are made between fetches of the destination */
    PART_TAPS = 16 /* at most, of a row that is made in parts */
};

/* Where finished rows go: to a view, or through a row buffer to their destination. */
struct sink {
    struct st_view *view;
    const struct st_finish *finish;
    const struct st_place *place;
    bool mirror, flip; /* still to be applied to rows */
    int32_t width, height, channels;
    uint8_t *rows[BLOCK];
};

struct run {
    const struct st_kernels *kernels;
    struct st_arena *arena;
    const struct st_view *in;
    struct sink sink;
    struct st_taps x, y;
    void *plan; /* of the horizontal kernel */
};

static struct st_side side(const struct st_resize *job, int32_t in, int32_t out, uint32_t from,
                           uint32_t count, struct st_span span)
{
    if (span.length == 0)
        span = (struct st_span){0, in};
    return (struct st_side){job->filter, in, out, (int32_t)from, (int32_t)count, span, job->floored};
}

struct st_side st_resize_side_x(const struct st_resize *job)
{
    return side(job, job->in_width, job->out_width, job->window.x, job->window.width, job->span_x);
}

struct st_side st_resize_side_y(const struct st_resize *job)
{
    return side(job, job->in_height, job->out_height, job->window.y, job->window.height, job->span_y);
}

struct st_region st_resize_needs(const struct st_resize *job)
{
    const struct st_side x = st_resize_side_x(job), y = st_resize_side_y(job);
    int32_t left, right, top, bottom;
    st_side_needs(&x, &left, &right);
    st_side_needs(&y, &top, &bottom);
    return (struct st_region){(uint32_t)left, (uint32_t)top, (uint32_t)(right - left),
                              (uint32_t)(bottom - top)};
}

/* Pillow 13 starts with the vertical pass if it shrinks the image much more than the horizontal one. */
bool st_resize_vertical_first(const struct st_resize *job)
{
    const int64_t rows = (int64_t)job->in_height - job->out_height;
    const int64_t columns = (int64_t)job->in_width - job->out_width;
    return job->pillow >= 13 && rows > 0 && rows > 2 * columns;
}

/* ---- the sink ---------------------------------------------------------------------------------- */

/* Where row `y` of the result is written, which is number `slot` of the up to BLOCK rows in progress. */
static uint8_t *sink_row(const struct sink *sink, int32_t y, int32_t slot)
{
    return sink->view ? st_row(sink->view, y) : sink->rows[slot];
}

static void sink_done(const struct sink *sink, const struct st_kernels *kernels, int32_t y,
                      const uint8_t *row)
{
    if (sink->view)
        return;
    st_finish_row(sink->finish, kernels, row, sink->mirror, sink->flip, y, sink->place);
}

/* Allocates `count` rows of `bytes` bytes, each aligned and padded for vectors that overshoot. */
static bool take_rows(struct st_arena *arena, uint64_t bytes, int32_t count, uint8_t **rows)
{
    const uint64_t pitch = st_align(bytes + 64, ST_CACHE_LINE);
    uint64_t size;
    if (!st_mul(pitch, (uint64_t)count, &size))
        return false;
    uint8_t *block = st_arena_take(arena, size);
    for (int32_t i = 0; block && i < count; i++)
        rows[i] = block + (uint64_t)i * pitch;
    return block != NULL;
}

static bool sink_open(struct sink *sink, struct st_arena *arena, const struct st_resize *job,
                      int32_t channels)
{
    sink->width = (int32_t)job->window.width;
    sink->height = (int32_t)job->window.height;
    sink->channels = channels;
    const uint64_t bytes = (uint64_t)sink->width * (uint64_t)channels;
    if (sink->view)
        return st_view_take(sink->view, arena, sink->width, sink->height, channels);
    return take_rows(arena, bytes, BLOCK, sink->rows);
}

/* ---- the passes -------------------------------------------------------------------------------- */

static void sink_ahead(const struct sink *sink, int32_t y, struct st_fraction share)
{
    if (!sink->view)
        st_finish_ahead(sink->finish, sink->flip, y, share, sink->place);
}

/* A row of the vertical pass, while row `next` of the destination is fetched. */
static void down_in_parts(const struct run *run, uint8_t *out, const uint8_t *const *rows,
                          const int32_t *weight, int32_t taps, size_t bytes, int32_t next)
{
    const uint8_t *part[PART_TAPS];
    for (size_t at = 0, some; at < bytes; at += some) {
        some = bytes - at < PART ? bytes - at : PART;
        for (int32_t k = 0; k < taps; k++)
            part[k] = rows[k] + at;
        run->kernels->down(out + at, part, weight, taps, some);
        sink_ahead(&run->sink, next, (struct st_fraction){at, at + some, bytes});
    }
}

/* One output row of the vertical pass. Zero weights at either end are skipped. */
static void down_row(const struct run *run, uint8_t *out, const uint8_t *const *rows, int32_t y,
                     size_t bytes, int32_t next)
{
    const int32_t *weight = run->y.weight + (size_t)y * (size_t)run->y.width;
    int32_t from = 0, to = run->y.width;
    while (to > 1 && weight[to - 1] == 0)
        to--;
    while (from < to - 1 && weight[from] == 0)
        from++;
    if (!run->sink.view && to - from <= PART_TAPS) {
        down_in_parts(run, out, rows + from, weight + from, to - from, bytes, next);
        return;
    }
    sink_ahead(&run->sink, next, ST_ALL_OF_IT);
    run->kernels->down(out, rows + from, weight + from, to - from, bytes);
}

static int across_only(const struct run *run)
{
    for (int32_t y = 0, n; y < run->sink.height; y += n) {
        const uint8_t *in[BLOCK];
        uint8_t *out[BLOCK];
        n = run->sink.height - y < BLOCK ? run->sink.height - y : BLOCK;
        for (int32_t i = 0; i < n; i++) {
            in[i] = st_row(run->in, y + i);
            out[i] = sink_row(&run->sink, y + i, i);
            sink_ahead(&run->sink, y + i, ST_ALL_OF_IT);
        }
        run->kernels->across(run->plan, out, in, n);
        for (int32_t i = 0; i < n; i++)
            sink_done(&run->sink, run->kernels, y + i, out[i]);
    }
    return STOKER_OK;
}

/* Pointers to the input's rows. */
static const uint8_t **input_rows(const struct run *run)
{
    const uint8_t **rows = st_arena_take(run->arena, (uint64_t)run->in->height * sizeof *rows);
    for (int32_t y = 0; rows && y < run->in->height; y++)
        rows[y] = st_row(run->in, y);
    return rows;
}

static int down_only(const struct run *run)
{
    const uint8_t **rows = input_rows(run);
    const size_t bytes = (size_t)run->sink.width * (size_t)run->sink.channels;
    if (!rows)
        return STOKER_ENOMEM;
    for (int32_t y = 0; y < run->sink.height; y++) {
        uint8_t *out = sink_row(&run->sink, y, 0);
        down_row(run, out, rows + run->y.first[y], y, bytes, y + 1);
        sink_done(&run->sink, run->kernels, y, out);
    }
    return STOKER_OK;
}

static int down_then_across(const struct run *run)
{
    const size_t bytes = (size_t)run->in->width * (size_t)run->in->channels;
    const uint8_t **rows = input_rows(run);
    uint8_t *between[BLOCK], *out[BLOCK];
    if (!rows || !take_rows(run->arena, bytes, BLOCK, between))
        return STOKER_ENOMEM;
    for (int32_t y = 0, n; y < run->sink.height; y += n) {
        n = run->sink.height - y < BLOCK ? run->sink.height - y : BLOCK;
        for (int32_t i = 0; i < n; i++) {
            down_row(run, between[i], rows + run->y.first[y + i], y + i, bytes, y + i + BLOCK);
            out[i] = sink_row(&run->sink, y + i, i);
        }
        run->kernels->across(run->plan, out, (const uint8_t *const *)between, n);
        for (int32_t i = 0; i < n; i++)
            sink_done(&run->sink, run->kernels, y + i, out[i]);
    }
    return STOKER_OK;
}

/* The ring holds the rows that the next output needs, and one more block. Its pointers are listed twice,
 * so that any run of them is contiguous. */
static int across_then_down(const struct run *run)
{
    const size_t bytes = (size_t)run->sink.width * (size_t)run->sink.channels;
    const int32_t size = run->y.width + BLOCK;
    int32_t made = 0;
    uint8_t **ring = st_arena_take(run->arena, 2 * (uint64_t)size * sizeof *ring);
    if (!ring || !take_rows(run->arena, bytes, size, ring))
        return STOKER_ENOMEM;
    memcpy(ring + size, ring, (size_t)size * sizeof *ring);
    for (int32_t y = 0; y < run->sink.height; y++) {
        while (made < run->y.first[y] + run->y.width) {
            const int32_t n = run->in->height - made < BLOCK ? run->in->height - made : BLOCK;
            const uint8_t *in[BLOCK];
            for (int32_t i = 0; i < n; i++)
                in[i] = st_row(run->in, made + i);
            run->kernels->across(run->plan, ring + made % size, in, n);
            made += n;
        }
        uint8_t *out = sink_row(&run->sink, y, 0);
        down_row(run, out, (const uint8_t *const *)ring + run->y.first[y] % size, y, bytes,
                 y + 1);
        sink_done(&run->sink, run->kernels, y, out);
    }
    return STOKER_OK;
}

/* Of three bytes, copied as four: the next pixel overwrites the last. */
static void nearest_pixels(uint8_t *out, const uint8_t *in, const int32_t *x, int32_t count)
{
    for (int32_t i = 0; i < count - 1; i++)
        memcpy(out + (size_t)i * 3, in + (size_t)x[i] * 3, 4);
    memcpy(out + (size_t)(count - 1) * 3, in + (size_t)x[count - 1] * 3, 3);
}

static int nearest(const struct st_resize *job, struct run *run)
{
    const struct st_side sx = st_resize_side_x(job), sy = st_resize_side_y(job);
    const int32_t channels = run->sink.channels;
    int32_t *x, *y;
    if (!st_side_nearest(&sx, run->sink.mirror, run->arena, &x) ||
        !st_side_nearest(&sy, false, run->arena, &y))
        return STOKER_ENOMEM;
    run->sink.mirror = false;
    for (int32_t row = 0; row < run->sink.height; row++) {
        const uint8_t *in = st_row(run->in, y[row]);
        uint8_t *out = sink_row(&run->sink, row, 0);
        sink_ahead(&run->sink, row + 1, ST_ALL_OF_IT);
        if (channels == 3)
            nearest_pixels(out, in, x, run->sink.width);
        else
            for (int32_t i = 0; i < run->sink.width; i++)
                out[i] = in[x[i]];
        sink_done(&run->sink, run->kernels, row, out);
    }
    return STOKER_OK;
}

static int resample(const struct st_resize *job, struct run *run)
{
    const struct st_side sx = st_resize_side_x(job), sy = st_resize_side_y(job);
    const bool across = !st_side_stays(&sx), down = !st_side_stays(&sy);
    if (across) {
        if (!st_side_taps(&sx, run->sink.mirror, run->arena, &run->x))
            return STOKER_ENOMEM;
        run->sink.mirror = false;
        run->plan = st_arena_take(run->arena, run->kernels->across_size(&run->x, run->in->channels));
        if (!run->plan)
            return STOKER_ENOMEM;
        run->kernels->across_plan(run->plan, &run->x, run->in->channels);
    }
    if (down && !st_side_taps(&sy, false, run->arena, &run->y))
        return STOKER_ENOMEM;
    if (!down)
        return across_only(run);
    if (!across)
        return down_only(run);
    return st_resize_vertical_first(job) ? down_then_across(run) : across_then_down(run);
}

static int resize(const struct st_resize *job, struct run *run)
{
    if (!sink_open(&run->sink, run->arena, job, run->in->channels))
        return STOKER_ENOMEM;
    return job->filter == ST_FILTER_NEAREST ? nearest(job, run) : resample(job, run);
}

static bool all_stays(const struct st_resize *job)
{
    const struct st_side x = st_resize_side_x(job), y = st_resize_side_y(job);
    return st_side_stays(&x) && st_side_stays(&y);
}

int st_resize_view(const struct st_resize *job, const struct st_kernels *kernels, struct st_arena *arena,
                   const struct st_view *pixels, struct st_view *out)
{
    struct run run = {.kernels = kernels, .arena = arena, .in = pixels, .sink.view = out};
    if (!all_stays(job))
        return resize(job, &run);
    if (!st_view_take(out, arena, pixels->width, pixels->height, pixels->channels))
        return STOKER_ENOMEM;
    for (int32_t y = 0; y < pixels->height; y++)
        memcpy(st_row(out, y), st_row(pixels, y), (size_t)out->stride);
    return STOKER_OK;
}

int st_resize_finish(const struct st_resize *job, const struct st_kernels *kernels,
                     struct st_arena *arena, const struct st_view *pixels,
                     const struct st_finish *finish, bool mirror, bool flip,
                     const struct st_place *place)
{
    struct run run = {.kernels = kernels,
                      .arena = arena,
                      .in = pixels,
                      .sink = {.finish = finish, .place = place, .mirror = mirror, .flip = flip}};
    if (!all_stays(job))
        return resize(job, &run);
    st_finish_view(finish, kernels, pixels, mirror, flip, place);
    return STOKER_OK;
}
