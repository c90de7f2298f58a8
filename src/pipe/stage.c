/* stage.c - writes a row's remaining work into the slot's host half, for a device to do
 *
 * A row takes one piece of the heap that holds everything it needs. Each row is guaranteed its reserve;
 * more comes out of a share that all rows of the batch draw from, first come, first served. If the share
 * is exhausted, the worker does more of the row's work itself until the rest fits into the reserve. The
 * device's output is the same either way.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/stage.h"

#include "base/text.h"

#include "op/filter/blur.h"
#include "op/resize/taps_kept.h"
#include "pipe/job_edges.h"
#include "pipe/job_warp.h"

#include <string.h>

enum {
    REGION_MAX = 4 << 20, /* for larger regions, the copy costs more than a resize by the worker */
    MORE_ROOM = 1024,     /* enough for typical blurs */
    WARPS_ROOM = 2,       /* warps for which there is always room */
    TABLE_BYTES = 3 * 256,
    FRONT_MAX = 1 << 24,  /* pixels that are made before */
};

/* What belongs to a row, and where it lies in its piece of the heap. */
struct parts {
    int32_t width, height; /* of the result */
    struct st_view pixels;
    uint64_t pixels_at;
    const struct st_jpeg_hw_image *decoded; /* by the device: it has the samples; NULL: not */
    struct st_region window;                    /* of it */
    uint64_t chroma_at;                         /* of grey samples */
    uint32_t stride;
    bool vertical_first;
    struct st_taps x, y; /* width 0: this axis is not resized; -1: from a list of places, `first` */
    const struct st_edges *edges; /* NULL: none */
    uint64_t x_at, y_at;
    const struct st_pending *pending;
    uint32_t pending_count;
    struct st_turn last; /* after the pending ops */
    uint64_t pending_at, more_at;
    struct st_erases erases;
    uint64_t erases_at, values_at;
    struct parts *front;     /* makes the pixels, on the device; NULL: they are here */
    uint64_t job_at;         /* of a front: its job */
    uint64_t made, between;  /* and where its result and what lies between its ops are on the device */
    struct st_region part;   /* of the front's result: the pixels */
};

/* ---- how much room ------------------------------------------------------------------------------- */

static uint64_t add_part(uint64_t *bytes, uint64_t size)
{
    const uint64_t at = *bytes;
    *bytes = st_align(at + size, ST_CACHE_LINE);
    return at;
}

static uint64_t side_bytes(const struct st_taps *taps)
{
    const uint64_t each = taps->width < 0 ? 1 : 1 + (uint64_t)taps->width;
    return taps->width ? (uint64_t)taps->count * each * sizeof(int32_t) : 0;
}

/* What an op has besides its struct, for an image of this size; doubles may follow. */
static uint64_t more_bytes(const struct st_pending *op, int32_t width, int32_t height)
{
    if (op->kind == ST_PENDING_WARP)
        return st_job_warp_bytes(op, width, height);
    if (op->kind == ST_PENDING_TABLE)
        return TABLE_BYTES;
    const uint64_t weights = (uint64_t)(op->across / 2 + op->down / 2 + 2);
    return op->kind == ST_PENDING_BLUR ? st_align(weights * sizeof(float), sizeof(double)) : 0;
}

/* A row for grey samples, which is read in words. */
static uint64_t chroma_bytes(const struct st_jpeg_hw_image *decoded)
{
    return decoded && decoded->components == 1 ? st_align((uint64_t)decoded->plane[0].width, 4) : 0;
}

static uint32_t stride_of(const struct parts *p)
{
    const uint64_t row = (uint64_t)p->pixels.width * (uint64_t)p->pixels.channels;
    if (p->front)
        return (uint32_t)(st_job_pitch(p->front->width) * p->pixels.channels);
    return p->decoded ? p->decoded->plane[0].stride : (uint32_t)st_align(row, 4);
}

/* Adds the room that a job needs besides its struct to `bytes`. */
static void measure(struct parts *p, uint64_t *bytes)
{
    const bool here = !p->decoded && !p->front;
    uint64_t more = 0, values = 0;
    p->stride = stride_of(p);
    p->x_at = add_part(bytes, side_bytes(&p->x));
    p->y_at = add_part(bytes, side_bytes(&p->y));
    for (uint32_t k = 0; k < p->pending_count; k++)
        more += more_bytes(&p->pending[k], p->width, p->height);
    p->pending_at = add_part(bytes, p->pending_count * sizeof(struct st_job_pending));
    p->more_at = add_part(bytes, more);
    for (uint32_t k = 0; k < p->erases.count; k++)
        values += p->erases.list[k].bytes;
    p->erases_at = add_part(bytes, p->erases.count * sizeof(struct st_job_erase));
    p->values_at = add_part(bytes, values);
    p->pixels_at = add_part(bytes, here ? p->stride * (uint64_t)p->pixels.height : 0);
    p->chroma_at = add_part(bytes, chroma_bytes(p->decoded));
}

bool st_stage_reserve(const struct st_slot_shape *shape, uint32_t erases, uint64_t values, uint64_t *out)
{
    uint64_t bytes = 0, pixels;
    const uint64_t stride = st_align((uint64_t)shape->width * (uint64_t)shape->channels, 4);
    if (!st_mul(stride, (uint64_t)shape->height, &pixels) || pixels > UINT32_MAX || values > UINT32_MAX)
        return false;
    add_part(&bytes, ST_PENDING_MAX * sizeof(struct st_job_pending));
    const uint64_t sides = (uint64_t)shape->width + (uint64_t)shape->height;
    add_part(&bytes, MORE_ROOM + WARPS_ROOM * (sizeof(struct st_job_warp) + sides * sizeof(int32_t)));
    add_part(&bytes, erases * sizeof(struct st_job_erase));
    add_part(&bytes, values);
    add_part(&bytes, pixels);
    *out = bytes;
    return true;
}

/* Takes a piece of the heap; false if neither the row's reserve nor the rest of the share can hold
 * it. */
static bool take(struct st_slot *slot, uint64_t bytes, uint64_t *at)
{
    const uint64_t reserve = slot->shape.reserve, more = bytes > reserve ? bytes - reserve : 0;
    uint64_t left = atomic_load_explicit(&slot->heap_share, memory_order_relaxed);
    do {
        if (more > left)
            return false;
    } while (more && !atomic_compare_exchange_weak_explicit(&slot->heap_share, &left, left - more,
                                                            memory_order_relaxed, memory_order_relaxed));
    *at = st_host_heap(slot->shape.rows) +
          atomic_fetch_add_explicit(&slot->heap_used, bytes, memory_order_relaxed);
    return true;
}

/* ---- writing ------------------------------------------------------------------------------------- */

/* The pixels begin `before` places before those that the taps count from. */
static struct st_job_side put_side(uint8_t *piece, uint64_t base, uint64_t at,
                                   const struct st_taps *taps, int32_t before)
{
    if (!taps->width)
        return (struct st_job_side){0};
    const size_t firsts = (size_t)taps->count * sizeof *taps->first;
    int32_t *first = (int32_t *)(void *)(piece + at);
    for (int32_t k = 0; k < taps->count; k++)
        first[k] = taps->first[k] + before;
    if (taps->width < 0)
        return (struct st_job_side){.at = base + at, .width = -1};
    memcpy(piece + at + firsts, taps->weight, firsts * (size_t)taps->width);
    return (struct st_job_side){.at = base + at,
                                .width = taps->width,
                                .window = st_job_window(taps->first, taps->count, taps->width)};
}

static void put_pending(uint8_t *piece, uint64_t base, const struct parts *p)
{
    struct st_job_pending *to = (struct st_job_pending *)(void *)(piece + p->pending_at);
    uint64_t at = p->more_at;
    for (uint32_t k = 0; k < p->pending_count; k++) {
        const struct st_pending *op = &p->pending[k];
        to[k] = (struct st_job_pending){.kind = op->kind, .level = op->level, .factor = op->factor};
        if (op->kind == ST_PENDING_HUE)
            to[k].factor = st_hue_shift(op->factor);
        to[k].more = base + at;
        if (op->kind == ST_PENDING_WARP)
            st_job_warp_put(op, p->width, p->height,
                            st_job_turn(p->pending, k + 1, p->pending_count, p->last), piece + at,
                            base + at);
        if (op->kind == ST_PENDING_TABLE)
            memcpy(piece + at, op->table, TABLE_BYTES);
        if (op->kind == ST_PENDING_BLUR) {
            float *weight = (float *)(void *)(piece + at);
            st_blur_weights(op->across, op->sigma, weight);
            st_blur_weights(op->down, op->sigma, weight + op->across / 2 + 1);
            to[k].across = op->across;
            to[k].down = op->down;
        }
        at += more_bytes(op, p->width, p->height);
    }
}

static void put_erases(uint8_t *piece, uint64_t base, const struct parts *p)
{
    struct st_job_erase *to = (struct st_job_erase *)(void *)(piece + p->erases_at);
    uint64_t at = p->values_at;
    for (uint32_t k = 0; k < p->erases.count; k++) {
        const struct st_erase *erase = &p->erases.list[k];
        to[k] = (struct st_job_erase){(int32_t)erase->box.x,         (int32_t)erase->box.y,
                                      (int32_t)erase->box.width,     (int32_t)erase->box.height,
                                      erase->values ? base + at : 0, {0}};
        memcpy(to[k].bits, erase->bits, sizeof to[k].bits);
        if (erase->values)
            memcpy(piece + at, erase->values, erase->bytes);
        at += erase->bytes;
    }
}

static void put_pixels(uint8_t *to, const struct parts *p)
{
    const size_t row = (size_t)p->pixels.width * (size_t)p->pixels.channels;
    for (int32_t y = 0; y < p->pixels.height; y++, to += p->stride)
        memcpy(to, st_row(&p->pixels, y), row);
}

/* Where the component's first sample would be: the device counts from there, wherever the region is. */
static uint64_t component_at(const struct st_jpeg_hw_plane *plane)
{
    return plane->at - ((uint64_t)plane->y * plane->stride + (uint64_t)plane->x);
}

static struct st_job_planes put_planes(uint8_t *piece, uint64_t base, const struct parts *p)
{
    const struct st_jpeg_hw_image *image = p->decoded;
    if (!image)
        return (struct st_job_planes){0};
    const bool grey = image->components == 1;
    const struct st_jpeg_hw_plane *chroma = &image->plane[grey ? 0 : 1];
    memset(piece + p->chroma_at, ST_CHROMA_NONE, (size_t)chroma_bytes(image));
    return (struct st_job_planes){
        .chroma = {grey ? base + p->chroma_at : component_at(&image->plane[1]),
                   grey ? base + p->chroma_at : component_at(&image->plane[2])},
        .stride = grey ? 0 : chroma->stride,
        .width = chroma->width,
        .height = chroma->height,
        .h = image->h,
        .v = image->v,
        .x = (int32_t)p->window.x,
        .y = (int32_t)p->window.y,
    };
}

/* Where the pixels are, and where they come from. */
static void put_source(uint8_t *piece, uint64_t base, const struct parts *p, int32_t before,
                       struct st_job *job)
{
    if (p->front) {
        const int32_t channels = p->pixels.channels;
        job->from = ST_JOB_MADE;
        job->front = base + p->front->job_at;
        job->pixels = p->front->made + (uint64_t)p->part.y * p->stride +
                      (uint64_t)(((int32_t)p->part.x - before) * channels);
    } else if (p->decoded) {
        job->from = ST_JOB_PLANES;
        job->pixels = component_at(&p->decoded->plane[0]);
        job->planes = put_planes(piece, base, p);
    } else {
        job->from = ST_JOB_HEAP;
        job->pixels = base + p->pixels_at;
        put_pixels(piece + p->pixels_at, p);
    }
}

static void put_job(uint8_t *piece, uint64_t base, const struct parts *p, struct st_job *job)
{
    /* Rows of what a front makes start at words every four pixels, as the device wants to read them. */
    const int32_t before = p->front && p->x.width ? (int32_t)(p->part.x % 4) : 0;
    const struct st_turn first = st_job_turn(p->pending, 0, p->pending_count, p->last);
    *job = (struct st_job){
        .stride = p->stride,
        .in_width = p->pixels.width + before,
        .in_height = p->pixels.height,
        .width = p->width,
        .height = p->height,
        .channels = p->pixels.channels,
        .vertical_first = p->vertical_first,
        .x = put_side(piece, base, p->x_at, &p->x, before),
        .y = put_side(piece, base, p->y_at, &p->y, 0),
        .mirror = first.mirror,
        .flip = first.flip,
        .pending = base + p->pending_at,
        .erases = base + p->erases_at,
        .pending_count = p->pending_count,
        .erase_count = p->erases.count,
        .made = p->made,
        .between = p->between,
    };
    put_source(piece, base, p, before, job);
    put_pending(piece, base, p);
    put_erases(piece, base, p);
    if (p->edges)
        st_job_edges_put(p->edges, job);
}

/* Writes everything, if there is room. */
static bool put(struct st_slot *slot, uint32_t row, const struct st_image *image, struct parts *p)
{
    struct parts *front = p->front;
    uint64_t base, bytes = 0;
    p->width = slot->shape.width;
    p->height = slot->shape.height;
    p->last = (struct st_turn){.mirror = image->mirror, .flip = image->flip};
    if (front) {
        front->job_at = add_part(&bytes, sizeof(struct st_job));
        measure(front, &bytes);
    }
    measure(p, &bytes);
    if (!take(slot, bytes, &base))
        return false;
    uint8_t *piece = slot->host + base;
    if (front)
        put_job(piece, base, front, (struct st_job *)(void *)(piece + front->job_at));
    put_job(piece, base, p, st_slot_job(slot, row));
    return true;
}

/* ---- one row ------------------------------------------------------------------------------------- */

static bool side_taps(const struct st_side *side, struct st_work *work, struct st_taps *taps)
{
    int32_t *first;
    if (st_side_stays(side))
        return true;
    if (side->filter != ST_FILTER_NEAREST)
        return st_taps_kept_find(work->taps, side, &work->arena, taps);
    if (!st_side_nearest(side, false, &work->arena, &first))
        return false;
    *taps = (struct st_taps){.count = side->count, .width = -1, .first = first};
    return true;
}

/* Computes the taps of a resize that the device is to do; false when out of memory. */
static bool plan_resize(const struct st_resize *resize, struct st_work *work, struct parts *p)
{
    const struct st_side x = st_resize_side_x(resize), y = st_resize_side_y(resize);
    p->vertical_first = st_resize_vertical_first(resize);
    return side_taps(&x, work, &p->x) && side_taps(&y, work, &p->y);
}

/* The edges of what has these taps. */
static enum st_job_edges_fit plan_edges(const struct st_edges *edges, struct st_arena *arena,
                                        struct parts *p)
{
    if (!edges->column)
        return ST_JOB_EDGES_FIT;
    p->edges = edges;
    const enum st_job_edges_fit x = st_job_edge_taps(edges->column, edges->width, arena, &p->x);
    return x == ST_JOB_EDGES_FIT ? st_job_edge_taps(edges->row, edges->height, arena, &p->y) : x;
}

static int no_memory(const struct st_slot *slot, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "no memory to make an image of %d x %d", slot->shape.width,
                   slot->shape.height);
}

/* There is no room for the pending ops' weights either: does everything but the erasing here. */
static int put_made(struct st_slot *slot, uint32_t row, struct st_image *image, struct st_erases erases,
                    struct stoker_error *err)
{
    struct parts p = {.erases = erases};
    const int rc = st_image_pixels(image, false, true, &p.pixels, err);
    if (rc < 0)
        return rc;
    return put(slot, row, image, &p)
               ? 0
               : st_fail(err, STOKER_EINTERNAL,
                         "the reserve of a row is too small: this is a bug in stoker");
}

/* Room for what a front makes. */
static bool take_front(struct st_slot *slot, const struct st_image *front, struct parts *p)
{
    const uint64_t most = slot->shape.front_bytes;
    const uint64_t pixels = (uint64_t)st_image_width(front) * (uint64_t)st_image_height(front);
    uint32_t stages = 0;
    if (pixels > FRONT_MAX || !most)
        return false;
    for (uint32_t k = 0; k < front->pending_count; k++)
        stages += !st_pending_by_pixel(&front->pending[k], 1);
    p->width = st_image_width(front);
    p->height = st_image_height(front);
    const uint64_t made = st_job_made_bytes(p->width, p->height, st_image_channels(front));
    const uint64_t bytes = made + st_job_between(p->width, p->height, stages);
    uint64_t used = atomic_load_explicit(&slot->front_used, memory_order_relaxed);
    do {
        if (bytes > most - used)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&slot->front_used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    p->made = used;
    p->between = used + made;
    p->pending = front->pending;
    p->pending_count = front->pending_count;
    p->last = (struct st_turn){.mirror = front->mirror, .flip = front->flip};
    return true;
}

static uint64_t bytes_of(const struct st_view *view)
{
    return (uint64_t)view->width * (uint64_t)view->height * (uint64_t)view->channels;
}

/* What an image is made of is made by the device, too, if there is room there. `*done`: it is so. */
static int put_with_front(struct st_slot *slot, uint32_t row, struct st_image *image,
                          struct st_erases erases, bool *done, struct stoker_error *err)
{
    struct st_work *work = image->work;
    struct st_image front;
    struct st_resize resize;
    struct parts before = {0};
    struct parts p = {.pending = image->pending, .pending_count = image->pending_count,
                      .erases = erases, .front = &before};
    bool resizes;
    *done = false;
    if (!st_image_front(image, &front, &p.part) || !take_front(slot, &front, &before))
        return 0;
    p.pixels = (struct st_view){.width = (int32_t)p.part.width, .height = (int32_t)p.part.height,
                                .channels = st_image_channels(&front)};
    const int rc = st_image_rest(&front, &before.pixels, &resizes, &resize, err);
    if (rc < 0)
        return rc;
    st_image_front_keep(image, &front);
    if (bytes_of(&before.pixels) > REGION_MAX)
        return 0;
    if ((resizes && !plan_resize(&resize, work, &before)) ||
        (image->resized && !plan_resize(&image->resize, work, &p)))
        return no_memory(slot, err);
    *done = plan_edges(&front.edges, &work->arena, &before) == ST_JOB_EDGES_FIT &&
            plan_edges(&image->edges, &work->arena, &p) == ST_JOB_EDGES_FIT && put(slot, row, image, &p);
    return 0;
}

int st_stage_row(struct st_slot *slot, uint32_t row, struct st_image *image, struct st_erases erases,
                 bool *resized, struct stoker_error *err)
{
    struct st_work *work = image->work;
    struct st_resize resize;
    bool resizes, done;
    struct parts p = {
        .pending = image->pending, .pending_count = image->pending_count, .erases = erases};
    *resized = false;
    if (st_image_channels(image) != slot->shape.channels)
        return st_fail(err, STOKER_EINVAL, "the image has %d channel%s instead of the planned %d",
                       st_image_channels(image), st_s((uint64_t)st_image_channels(image)),
                       slot->shape.channels);
    int rc = put_with_front(slot, row, image, erases, &done, err);
    if (rc < 0 || done)
        return rc;
    rc = st_image_rest(image, &p.pixels, &resizes, &resize, err);
    if (rc < 0)
        return rc;
    if (!resizes || bytes_of(&p.pixels) <= REGION_MAX) {
        if (resizes && !plan_resize(&resize, work, &p))
            return no_memory(slot, err);
        const enum st_job_edges_fit fit = plan_edges(&image->edges, &work->arena, &p);
        if (fit == ST_JOB_EDGES_NO_MEMORY)
            return no_memory(slot, err);
        if (fit == ST_JOB_EDGES_FIT && put(slot, row, image, &p))
            return 0;
    }
    *resized = true;
    if (!resizes)
        return put_made(slot, row, image, erases, err);
    struct parts small = {
        .pending = image->pending, .pending_count = image->pending_count, .erases = erases};
    if (st_resize_view(&resize, work->kernels, &work->arena, &p.pixels, &small.pixels) < 0 ||
        plan_edges(&image->edges, &work->arena, &small) != ST_JOB_EDGES_FIT)
        return no_memory(slot, err);
    return put(slot, row, image, &small) ? 0 : put_made(slot, row, image, erases, err);
}

bool st_stage_decoded(struct st_slot *slot, uint32_t row, const struct st_image *image,
                      struct st_erases erases, const struct st_jpeg_hw_image *decoded)
{
    struct parts p = {.pending = image->pending,
                      .pending_count = image->pending_count,
                      .erases = erases,
                      .decoded = decoded};
    struct st_resize resize;
    bool resizes;
    if (!st_image_window(image, &p.window, &resizes, &resize) ||
        st_image_channels(image) != slot->shape.channels)
        return false;
    p.pixels = (struct st_view){
        .width = (int32_t)p.window.width, .height = (int32_t)p.window.height, .channels = 3};
    return (!resizes || plan_resize(&resize, image->work, &p)) && put(slot, row, image, &p);
}
