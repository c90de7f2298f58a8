/* random_batch.c - for tests of the GPU's kernels: batches of any jobs, and what the CPU makes of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu_host/random_batch.h"
#include "codec/planes_rgb.h"
#include "op/colour/colour.h"
#include "op/filter/blur.h"
#include "op/geometry/turn.h"
#include "op/geometry/warp_nearest.h"
#include "op/resize/taps.h"
#include "op/tensor/erase.h"
#include "op/variants.h"
#include "pipe/job_edges.h"
#include "pipe/job_warp.h"

#include <math.h>

/* ---- the host half ----------------------------------------------------------------------------- */

static struct st_job *jobs(const struct random_batch *b) { return (struct st_job *)(void *)b->host; }

/* Room in the heap: its offset. What `b->host` was may move. */
static uint64_t take(struct random_batch *b, uint64_t bytes)
{
    const uint64_t at = st_align(b->used, ST_CACHE_LINE);
    b->used = at + bytes;
    if (b->used > b->capacity) {
        const uint64_t capacity = b->used * 3 / 2;
        b->host = st_grow(b->host, capacity, 1);
        if (!b->host)
            abort();
        memset(b->host + b->capacity, 0, capacity - b->capacity);
        b->capacity = capacity;
    }
    return at;
}

void batch_begin(struct random_batch *b, const struct st_device_want *want,
                 const struct st_finish_spec *spec, enum stoker_dtype dtype, enum stoker_layout layout)
{
    struct stoker_error err;
    b->want = *want;
    b->spec = *spec;
    b->want.finish = &b->finish;
    b->want.raw = true;
    if (st_finish_init(&b->finish, spec, dtype, layout, want->channels, &err))
        abort();
    b->bytes = (uint64_t)want->rows * (uint64_t)want->width * (uint64_t)want->height *
               (uint64_t)want->channels * b->finish.element;
    b->expected = exactly(b->bytes);
    memset(b->expected, 0, b->bytes);
    take(b, (uint64_t)want->rows * (sizeof(struct st_job) + sizeof(int64_t)));
}

void random_batch_free(struct random_batch *b)
{
    free(b->host);
    free(b->expected);
    st_arena_free(&b->arena);
}

void random_batch_place(struct random_batch *b, uint64_t raw)
{
    for (uint32_t row = 0; row < b->want.rows; row++) {
        struct st_job *job = &jobs(b)[row];
        if (job->from == ST_JOB_MADE)
            job = (struct st_job *)(void *)(b->host + job->front);
        if (job->from != ST_JOB_PLANES)
            continue;
        job->pixels += raw;
        for (int c = 0; c < 2 && job->planes.stride; c++)
            job->planes.chroma[c] += raw;
    }
}

static struct st_taps taps_of(struct random_batch *b, const struct st_side *side, const int32_t *edge, int32_t count)
{
    struct st_taps taps = {.count = side->count};
    int32_t *places = NULL;
    if (side->filter == ST_FILTER_NEAREST) {
        if (!st_side_nearest(side, false, &b->arena, &places))
            abort();
        taps = (struct st_taps){.count = side->count, .width = -1, .first = places};
    } else if (!st_side_stays(side) && !st_side_taps(side, false, &b->arena, &taps)) {
        abort();
    }
    if (edge && st_job_edge_taps(edge, count, &b->arena, &taps) != ST_JOB_EDGES_FIT)
        abort();
    return taps;
}

static struct st_job_side put_taps(struct random_batch *b, const struct st_taps *taps, int32_t before)
{
    const uint64_t list = (uint64_t)taps->count * sizeof(int32_t), each = taps->width < 0 ? 0 : (uint64_t)taps->width;
    if (!taps->width)
        return (struct st_job_side){0};
    struct st_job_side out = {take(b, list * (1 + each)), taps->width, 0};
    for (int32_t k = 0; k < taps->count; k++)
        ((int32_t *)(void *)(b->host + out.at))[k] = taps->first[k] + before;
    if (each) {
        memcpy(b->host + out.at + list, taps->weight, list * each);
        out.window = st_job_window(taps->first, taps->count, taps->width);
    }
    return out;
}

static uint64_t put_blur(struct random_batch *b, const struct st_pending *op)
{
    const int32_t across = op->across / 2 + 1, down = op->down / 2 + 1;
    const uint64_t at = take(b, (uint64_t)(across + down) * sizeof(float));
    float *weights = (float *)(void *)(b->host + at);
    st_blur_weights(op->across, op->sigma, weights);
    st_blur_weights(op->down, op->sigma, weights + across);
    return at;
}

static uint64_t put_warp(struct random_batch *b, const struct st_pending *op, struct st_turn after)
{
    const uint64_t at = take(b, st_job_warp_bytes(op, b->width, b->height));
    st_job_warp_put(op, b->width, b->height, after, b->host + at, at);
    return at;
}

static uint64_t put_pending(struct random_batch *b, const struct row_wish *wish, struct st_turn last)
{
    const uint64_t at = take(b, wish->pending_count * sizeof(struct st_job_pending));
    for (uint32_t i = 0; i < wish->pending_count; i++) {
        const struct st_pending *op = &wish->pending[i];
        struct st_job_pending job = {.kind = op->kind, .level = op->level, .factor = op->factor};
        if (op->kind == ST_PENDING_HUE)
            job.factor = st_hue_shift(op->factor);
        if (op->kind == ST_PENDING_BLUR) {
            job.more = put_blur(b, op);
            job.across = op->across;
            job.down = op->down;
        }
        if (op->kind == ST_PENDING_TABLE) {
            job.more = take(b, 3 * 256);
            memcpy(b->host + job.more, op->table, 3 * 256);
        }
        if (op->kind == ST_PENDING_WARP)
            job.more = put_warp(b, op, st_job_turn(wish->pending, i + 1, wish->pending_count, last));
        memcpy(b->host + at + i * sizeof job, &job, sizeof job);
    }
    return at;
}

/* ---- the two sides of a row -------------------------------------------------------------------- */

static uint32_t any_stride(struct random_batch *b, uint32_t least, bool aligned)
{
    const uint32_t stride = least + (uint32_t)between(&b->seed, 0, 5);
    return aligned ? (uint32_t)st_align(stride, 4) : stride;
}

/* A plane of samples: any, or only the extremes. With aligned rows, it is aligned itself. */
static uint64_t put_plane(struct random_batch *b, uint32_t stride, int32_t height, bool extremes)
{
    const uint64_t over = stride % 4 ? chance(&b->seed) % 4 : 0;
    const uint64_t at = take(b, (uint64_t)stride * (uint64_t)height + over) + over;
    for (uint64_t i = 0; i < (uint64_t)stride * (uint64_t)height; i++)
        b->host[at + i] = extremes ? (chance(&b->seed) & 1 ? 255 : 0) : (uint8_t)chance(&b->seed);
    return at;
}

/* A JPEG's planes, somewhat larger than the region. `view` becomes what they look like. */
static void put_planes(struct random_batch *b, struct st_view *view, struct st_job *job, bool aligned)
{
    const uint32_t bits = chance(&b->seed);
    struct st_job_planes *p = &job->planes;
    *p = (struct st_job_planes){.h = 1 + (bits & 1), .v = 1 + (bits >> 1 & 1)};
    p->x = bits & 4 ? between(&b->seed, 0, 20) : 0;
    p->y = bits & 8 ? between(&b->seed, 0, 20) : 0;
    const int32_t width = p->x + view->width + (bits & 16 ? between(&b->seed, 0, 20) : 0);
    const int32_t height = p->y + view->height + (bits & 32 ? between(&b->seed, 0, 20) : 0);
    p->width = (width + (int32_t)p->h - 1) / (int32_t)p->h;
    p->height = (height + (int32_t)p->v - 1) / (int32_t)p->v;
    p->stride = any_stride(b, (uint32_t)p->width, aligned);
    job->stride = any_stride(b, (uint32_t)width, aligned);
    job->from = ST_JOB_PLANES;
    job->pixels = put_plane(b, job->stride, height, bits & 64);
    for (int c = 0; c < 2; c++)
        p->chroma[c] = put_plane(b, p->stride, p->height, bits & 128);
    if (p->h == 1 && p->v == 1 && bits & 256) { /* grey */
        p->chroma[0] = p->chroma[1] = put_plane(b, (uint32_t)st_align((uint64_t)width, 4), 1, false);
        memset(b->host + p->chroma[0], ST_CHROMA_NONE, (size_t)width);
        p->stride = 0;
    }
    struct st_job here = *job; /* with addresses */
    here.pixels += (uint64_t)(uintptr_t)b->host;
    for (int c = 0; c < 2; c++)
        here.planes.chroma[c] += (uint64_t)(uintptr_t)b->host;
    planes_rgb(&here, view);
}

static struct st_view put_pixels(struct random_batch *b, const struct row_wish *wish, struct st_job *job)
{
    const struct st_region needs = st_resize_needs(&wish->resize);
    const int32_t channels = wish->three ? 3 : b->want.channels;
    struct st_view view;
    if (!st_view_take(&view, &b->arena, (int32_t)needs.width, (int32_t)needs.height, channels))
        abort();
    const uint32_t kind = chance(&b->seed) % 4;
    job->in_width = view.width;
    job->in_height = view.height;
    job->channels = channels;
    if (wish->device && channels == 3 && !b->fill) {
        put_planes(b, &view, job, wish->aligned);
        return view;
    }
    if (b->fill)
        b->fill(view.data);
    for (size_t i = 0; !b->fill && i < (size_t)view.height * (size_t)view.stride; i++)
        view.data[i] = kind == 0 ? (chance(&b->seed) & 1 ? 255 : 0) : (uint8_t)chance(&b->seed);
    job->stride = any_stride(b, (uint32_t)view.stride, wish->aligned);
    const uint64_t last = (uint64_t)job->stride * (uint64_t)(view.height - 1) + (uint64_t)view.stride;
    job->pixels = take(b, last);
    job->from = ST_JOB_HEAP;
    for (int32_t y = 0; y < view.height; y++)
        memcpy(b->host + job->pixels + (uint64_t)y * job->stride, st_row(&view, y), (size_t)view.stride);
    return view;
}

/* Boxes anywhere: in the job, and in the place. */
static uint64_t erase_both(struct random_batch *b, const struct row_wish *wish,
                           const struct st_place *place)
{
    const uint64_t at = take(b, wish->erase_count * sizeof(struct st_job_erase));
    for (uint32_t i = 0; i < wish->erase_count; i++) {
        struct st_erase box = {.box = {.x = (uint32_t)between(&b->seed, 0, place->width - 1),
                                       .y = (uint32_t)between(&b->seed, 0, place->height - 1)}};
        box.box.width = (uint32_t)between(&b->seed, 1, place->width - (int32_t)box.box.x);
        box.box.height = (uint32_t)between(&b->seed, 1, place->height - (int32_t)box.box.y);
        struct st_job_erase job = {.x = (int32_t)box.box.x, .y = (int32_t)box.box.y,
                                   .width = (int32_t)box.box.width, .height = (int32_t)box.box.height};
        for (int c = 0; c < 4; c++)
            box.bits[c] = job.bits[c] = chance(&b->seed);
        if (wish->random_values) {
            box.bytes = (uint64_t)box.box.width * box.box.height * (uint64_t)b->want.channels *
                        b->finish.element;
            job.values = take(b, box.bytes);
            for (uint64_t k = 0; k < box.bytes; k++)
                b->host[job.values + k] = (uint8_t)chance(&b->seed);
            box.values = b->host + job.values;
        }
        memcpy(b->host + at + i * sizeof job, &job, sizeof job);
        st_erase_write(&box, &b->finish, place);
    }
    return at;
}

static void leave_one(struct random_batch *b, struct st_view *view)
{
    struct st_view one;
    if (!st_view_take(&one, &b->arena, view->width, view->height, 1))
        abort();
    for (int32_t y = 0; y < one.height; y++)
        for (int32_t x = 0; x < one.width; x++)
            st_row(&one, y)[x] = st_row(view, y)[3 * x];
    *view = one;
}

static bool edge(struct random_batch *b, const struct st_edges *edges, struct st_view *view)
{
    const struct st_view inside = *view;
    return st_edges_view(edges, &inside, &b->arena, view);
}

static struct st_view make_job(struct random_batch *b, const struct row_wish *wish, int32_t width, int32_t height,
                               struct st_job *job);

/* Another job makes the pixels: the part of its result that the resize needs. */
static struct st_view put_front(struct random_batch *b, const struct row_wish *wish, struct st_job *job, int32_t *before)
{
    const struct st_region part = st_resize_needs(&wish->resize);
    const int32_t width = wish->resize.in_width, height = wish->resize.in_height;
    const struct st_turn turn = {.mirror = wish->front->mirror, .flip = wish->front->flip};
    struct st_job front;
    struct st_view view, turned;
    uint32_t stages = 0;
    view = make_job(b, wish->front, width, height, &front);
    if (!st_turn_view(turn, &view, &b->arena, &turned))
        abort();
    for (uint32_t k = 0; k < wish->front->pending_count; k++)
        stages += !st_pending_by_pixel(&wish->front->pending[k], 1);
    front.made = b->want.made_bytes;
    front.between = front.made + st_job_made_bytes(width, height, view.channels);
    b->want.made_bytes = front.between + st_job_between(width, height, stages);
    const struct st_side x = st_resize_side_x(&wish->resize);
    const bool listed = wish->edges || x.filter == ST_FILTER_NEAREST || !st_side_stays(&x);
    *before = listed ? (int32_t)part.x % 4 : 0;
    job->from = ST_JOB_MADE;
    job->front = take(b, sizeof front);
    memcpy(b->host + job->front, &front, sizeof front);
    job->channels = view.channels;
    job->stride = (uint32_t)(st_job_pitch(width) * view.channels);
    job->pixels = front.made + (uint64_t)part.y * job->stride + (uint64_t)(((int32_t)part.x - *before) * view.channels);
    job->in_width = (int32_t)part.width + *before;
    job->in_height = (int32_t)part.height;
    turned.data = st_row(&turned, (int32_t)part.y) + (ptrdiff_t)part.x * view.channels;
    turned.width = (int32_t)part.width;
    turned.height = (int32_t)part.height;
    return turned;
}

/* The job, but for its erased boxes, and the image before it is mirrored and flipped. */
static struct st_view make_job(struct random_batch *b, const struct row_wish *wish, int32_t width, int32_t height,
                               struct st_job *job)
{
    const struct st_kernels *kernels = st_kernels_for(st_cpu_level());
    const struct st_side x = st_resize_side_x(&wish->resize), y = st_resize_side_y(&wish->resize);
    const struct st_turn last = {.mirror = wish->mirror, .flip = wish->flip};
    const struct st_turn first = st_job_turn(wish->pending, 0, wish->pending_count, last);
    const struct st_edges *edges = wish->edges;
    int32_t before = 0;
    struct st_view out;
    *job = (struct st_job){.width = width, .height = height, .mirror = first.mirror, .flip = first.flip,
                           .pending_count = wish->pending_count, .erase_count = wish->erase_count};
    const struct st_view in = wish->front ? put_front(b, wish, job, &before) : put_pixels(b, wish, job);
    const struct st_taps across = taps_of(b, &x, edges ? edges->column : NULL, width);
    const struct st_taps down = taps_of(b, &y, edges ? edges->row : NULL, height);
    b->width = width;
    b->height = height;
    job->x = put_taps(b, &across, before);
    job->y = put_taps(b, &down, 0);
    if (edges)
        st_job_edges_put(edges, job);
    job->vertical_first = st_resize_vertical_first(&wish->resize);
    job->pending = put_pending(b, wish, last);
    if (st_resize_view(&wish->resize, kernels, &b->arena, &in, &out) ||
        (edges && !edge(b, edges, &out)) ||
        st_pending_run(wish->pending, wish->pending_count, st_colour_rows_for(st_cpu_level()),
                       st_warp_rows_for(st_cpu_level()), &b->arena, &out, &(bool){true}))
        abort();
    return out;
}

void batch_row(struct random_batch *b, uint32_t row, const struct row_wish *wish)
{
    const struct st_place place = {b->expected + row * (b->bytes / b->want.rows), b->want.width, b->want.height};
    struct st_job job;
    struct st_view out = make_job(b, wish, b->want.width, b->want.height, &job);
    if (wish->three)
        leave_one(b, &out);
    st_finish_view(&b->finish, st_kernels_for(st_cpu_level()), &out, wish->mirror, wish->flip, &place);
    job.erases = erase_both(b, wish, &place);
    jobs(b)[row] = job;
    st_arena_reset(&b->arena);
}

/* ---- by chance --------------------------------------------------------------------------------- */

static double share(uint64_t *seed) { return chance(seed) / 4294967296.0; }

/* An input side: of the output's order, the same, tiny, or much larger. */
static int32_t input_side(struct random_batch *b, int32_t out)
{
    switch (chance(&b->seed) % 8) {
    case 0: return out;
    case 1: return between(&b->seed, 1, 9);
    case 2: return between(&b->seed, 1, 700);
    default: return between(&b->seed, 1, 2 * out + 20);
    }
}

static struct st_span any_span(struct random_batch *b, int32_t in)
{
    if (chance(&b->seed) % 4)
        return (struct st_span){0};
    const double begin = share(&b->seed) * in * 0.4;
    return (struct st_span){begin, (in - begin) * (0.3 + 0.7 * share(&b->seed))};
}

static struct st_resize any_resize(struct random_batch *b)
{
    const int32_t width = b->want.width, height = b->want.height;
    struct st_resize r = {.filter = (enum st_filter)between(&b->seed, 0, ST_FILTERS - 1),
                          .pillow = chance(&b->seed) & 1 ? 12 : 13,
                          .out_width = width + between(&b->seed, 0, 9),
                          .out_height = height + between(&b->seed, 0, 9),
                          .window = {.width = (uint32_t)width, .height = (uint32_t)height}};
    r.window.x = (uint32_t)between(&b->seed, 0, r.out_width - width);
    r.window.y = (uint32_t)between(&b->seed, 0, r.out_height - height);
    r.in_width = input_side(b, r.out_width);
    r.in_height = input_side(b, r.out_height);
    r.span_x = any_span(b, r.in_width);
    r.span_y = any_span(b, r.in_height);
    return r;
}

/* Places of `count` positions in `side`: any, or in one direction; the first and the last few may be filled. */
static int32_t *any_places(struct random_batch *b, int32_t count, int32_t side, bool forwards)
{
    int32_t *place = st_arena_take(&b->arena, (uint64_t)count * sizeof *place);
    const int32_t filled = chance(&b->seed) % 4 ? between(&b->seed, 0, count) : 0;
    const int32_t begin = between(&b->seed, 0, filled), end = count - (filled - begin);
    const int32_t start = between(&b->seed, 0, side - 1), step = between(&b->seed, 0, 2);
    if (!place)
        abort();
    for (int32_t i = 0; i < count; i++) {
        const int32_t on = start + step * (i - begin);
        place[i] = i < begin || i >= end ? ST_EDGE_FILL
                   : forwards            ? (on < side ? on : side - 1)
                                         : between(&b->seed, 0, side - 1);
    }
    return place;
}

static struct st_edges any_edges(struct random_batch *b, struct st_resize *r)
{
    r->window.width = (uint32_t)between(&b->seed, 1, r->out_width);
    r->window.height = (uint32_t)between(&b->seed, 1, r->out_height);
    r->window.x = (uint32_t)between(&b->seed, 0, r->out_width - (int32_t)r->window.width);
    r->window.y = (uint32_t)between(&b->seed, 0, r->out_height - (int32_t)r->window.height);
    const struct st_side x = st_resize_side_x(r), y = st_resize_side_y(r);
    const bool nearest = r->filter == ST_FILTER_NEAREST;
    struct st_edges edges = {.width = b->want.width, .height = b->want.height};
    edges.column = any_places(b, edges.width, (int32_t)r->window.width, !nearest && !st_side_stays(&x));
    edges.row = any_places(b, edges.height, (int32_t)r->window.height, !nearest && !st_side_stays(&y));
    for (int c = 0; c < 4; c++)
        edges.fill[c] = (uint8_t)chance(&b->seed);
    return edges;
}

static double uniform(struct random_batch *b, double low, double high)
{
    return low + (high - low) * share(&b->seed);
}

/* Numbers of a map from small to far too large: some places are just inside, most for some, none for
 * others. */
static void any_map(struct random_batch *b, struct st_pixel_map *by)
{
    const uint32_t bits = chance(&b->seed);
    const double wild = bits % 8 ? 1.3 : pow(10, uniform(b, -6, 4));
    for (int k = 0; k < 6; k++)
        by->map[k] = uniform(b, -wild, wild);
    by->map[2] += uniform(b, 0, b->width);
    by->map[5] += uniform(b, 0, b->height);
    if (bits & 8) { /* not far from the identity */
        by->map[0] = by->map[4] = 1;
        by->map[2] = uniform(b, -3, 3);
        by->map[5] = uniform(b, -3, 3);
    }
    if ((bits >> 4) % 4 == 0)
        by->map[1] = by->map[3] = 0;
    if ((bits >> 6) % 4 == 0) /* halves and whole pixels */
        for (int k = 0; k < 6; k++)
            by->map[k] = rint(2 * by->map[k]) / 2;
    by->perspective = bits >> 8 & 1;
    for (int k = 6; by->perspective && k < 8; k++)
        by->map[k] = uniform(b, -1, 1) * pow(10, -between(&b->seed, 0, 4));
}

static struct st_pending any_warp(struct random_batch *b)
{
    struct st_pending op = {.kind = ST_PENDING_WARP};
    op.mirror = chance(&b->seed) & 1;
    op.flip = chance(&b->seed) & 1;
    op.warp.mix = (enum st_mix)between(&b->seed, ST_MIX_NEAREST,
                                       b->width == b->height ? ST_MIX_TRANSPOSED : ST_MIX_BICUBIC);
    for (int c = 0; c < 4; c++)
        op.warp.fill[c] = (uint8_t)(chance(&b->seed) % 4 ? chance(&b->seed) : 0);
    do /* what is far is never left to a device */
        any_map(b, &op.warp);
    while (op.warp.mix == ST_MIX_NEAREST && !op.warp.perspective &&
           st_warp_nearest_way(op.warp.map, b->width, b->height) == ST_NEAREST_FAR);
    return op;
}

static struct st_pending any_op(struct random_batch *b)
{
    struct st_pending op = {.kind = (enum st_pending_kind)between(&b->seed, 0, ST_PENDING_KINDS - 1)};
    op.factor =
        op.kind == ST_PENDING_HUE ? (float)(share(&b->seed) - 0.5) : (float)(2.2 * share(&b->seed));
    if (op.kind == ST_PENDING_WARP)
        return any_warp(b);
    if (op.kind == ST_PENDING_TABLE) {
        uint8_t *table = st_arena_take(&b->arena, 3 * 256);
        for (int k = 0; k < 3 * 256; k++)
            table[k] = (uint8_t)chance(&b->seed);
        op.table = table;
    }
    if (op.kind == ST_PENDING_SOLARIZE)
        op.level = (uint32_t)between(&b->seed, 0, 256);
    if (op.kind == ST_PENDING_PERMUTE) {
        static const uint32_t orders[] = {0x210, 0x120, 0x201, 0x021, 0x102, 0x012};
        op.level = orders[chance(&b->seed) % 6];
    }
    if (op.kind == ST_PENDING_LIGHTEN)
        op.level = (uint32_t)between(&b->seed, 0, 128);
    if (op.kind == ST_PENDING_POSTERIZE)
        op.level = 256 - (1u << between(&b->seed, 0, 7));
    if (op.kind == ST_PENDING_BLUR) {
        const int32_t most = 12;
        const int32_t across = b->width < most ? b->width : most;
        const int32_t down = b->height < most ? b->height : most;
        op.across = 2 * between(&b->seed, 0, across - 1) + 1;
        op.down = 2 * between(&b->seed, 0, down - 1) + 1;
        op.sigma = 0.1 + 4 * share(&b->seed);
    }
    return op;
}

/* An image of `width` x `height` that another one is made of, with ops of its own. */
static struct row_wish any_front(struct random_batch *b, int32_t width, int32_t height, struct st_pending *pending,
                                 const struct batch_limits *limits)
{
    struct row_wish front = {.resize = any_resize(b), .pending = pending};
    const uint32_t bits = chance(&b->seed);
    front.resize.out_width = width;
    front.resize.out_height = height;
    front.resize.window = (struct st_region){0, 0, (uint32_t)width, (uint32_t)height};
    front.mirror = bits & 1;
    front.flip = bits & 2;
    front.device = bits & 4;
    front.aligned = bits & 8;
    b->width = width;
    b->height = height;
    front.pending_count = bits >> 4 & 3;
    for (uint32_t i = 0; i < front.pending_count; i++)
        pending[i] = limits->warps && chance(&b->seed) % 4 ? any_warp(b) : any_op(b);
    return front;
}

static void any_row(struct random_batch *b, uint32_t row, const struct batch_limits *limits)
{
    struct st_pending pending[ST_PENDING_MAX];
    struct row_wish wish = {.resize = any_resize(b), .pending = pending};
    const uint32_t bits = chance(&b->seed);
    struct st_pending before[3];
    struct row_wish front;
    struct st_edges edges;
    if (bits % 16 == 0)
        return; /* blank */
    if (bits >> 24 & 1) {
        edges = any_edges(b, &wish.resize);
        wish.edges = &edges;
    }
    wish.mirror = bits & 32;
    wish.flip = bits & 64;
    wish.device = bits & 128;
    wish.aligned = chance(&b->seed) & 1;
    wish.random_values = bits & 256;
    wish.erase_count = bits & 512 ? 0 : bits >> 10 & 3;
    if (limits->pending && bits & 4096)
        wish.pending_count = bits & 0xe000 ? bits >> 16 & 7 : ST_PENDING_MAX;
    if (limits->pending && bits >> 25 & 1 && wish.resize.in_width * wish.resize.in_height < 1 << 18) {
        front = any_front(b, wish.resize.in_width, wish.resize.in_height, before, limits);
        wish.front = &front;
    }
    b->width = b->want.width;
    b->height = b->want.height;
    for (uint32_t i = 0; i < wish.pending_count; i++)
        pending[i] = limits->warps && chance(&b->seed) % 4 ? any_warp(b) : any_op(b);
    wish.three = b->want.channels == 1 && !wish.front && wish.pending_count && chance(&b->seed) & 1;
    if (wish.three)
        pending[wish.pending_count - 1] = (struct st_pending){.kind = ST_PENDING_GREY};
    batch_row(b, row, &wish);
}

void random_batch_make(struct random_batch *b, uint64_t seed, const struct batch_limits *limits)
{
    static const enum stoker_dtype types[] = {STOKER_DTYPE_U8, STOKER_DTYPE_F32, STOKER_DTYPE_F16, STOKER_DTYPE_BF16};
    *b = (struct random_batch){.seed = seed};
    const enum stoker_dtype dtype = types[chance(&b->seed) % 4];
    struct st_finish_spec spec = {.scaled = dtype != STOKER_DTYPE_U8,
                                  .dtype = dtype == STOKER_DTYPE_U8 ? STOKER_DTYPE_U8 : STOKER_DTYPE_F32,
                                  .steps = dtype != STOKER_DTYPE_U8 && chance(&b->seed) & 1};
    for (int c = 0; c < 4; c++) {
        spec.step[0].mean[c] = (float)share(&b->seed);
        spec.step[0].std[c] = (float)(0.1 + share(&b->seed));
    }
    struct st_device_want want = {.rows = limits->rows};
    const int32_t most = limits->out_most;
    want.width = limits->width ? limits->width : between(&b->seed, 1, most);
    want.height = limits->height ? limits->height : between(&b->seed, 1, most);
    want.channels = limits->channels ? limits->channels : chance(&b->seed) % 4 ? 3 : 1;
    batch_begin(b, &want, &spec, dtype, chance(&b->seed) & 1 ? STOKER_LAYOUT_NHWC : STOKER_LAYOUT_NCHW);
    for (uint32_t row = 0; row < want.rows; row++)
        any_row(b, row, limits);
}

const char *random_batch_differs(const struct random_batch *b, const uint8_t *images)
{
    static _Thread_local char text[300];
    const uint64_t row_bytes = b->bytes / b->want.rows;
    for (uint64_t i = 0; i < b->bytes; i++) {
        if (images[i] == b->expected[i])
            continue;
        const struct st_job *job = &jobs(b)[i / row_bytes];
        snprintf(text, sizeof text,
                 "row %u, byte %llu is %u, not %u: from %u, %d x %d to %d x %d x %d, taps %d %d, "
                 "vertical first "
                 "%u, mirror %u, flip %u, %u pending ops, %u erased, type %d, layout %d",
                 (unsigned)(i / row_bytes), (unsigned long long)(i % row_bytes), images[i],
                 b->expected[i], job->from, job->in_width, job->in_height, b->want.width, b->want.height,
                 b->want.channels, job->x.width, job->y.width, job->vertical_first, job->mirror,
                 job->flip, job->pending_count, job->erase_count, (int)b->finish.dtype,
                 (int)b->finish.layout);
        return text;
    }
    return NULL;
}
