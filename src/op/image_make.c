/* image_make.c - makes a lazy image's pixels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/image_make.h"

#include "base/clock.h"
#include "base/text.h"

static struct st_region whole(int32_t width, int32_t height)
{
    return (struct st_region){0, 0, (uint32_t)width, (uint32_t)height};
}

void st_image_turned_size(const struct st_image *image, uint32_t *width, uint32_t *height)
{
    *width = image->turn.transpose ? image->header.height : image->header.width;
    *height = image->turn.transpose ? image->header.width : image->header.height;
}

static struct st_region whole_crop(const struct st_image *image)
{
    return (struct st_region){0, 0, image->crop.width, image->crop.height};
}

static struct st_region *visible(struct st_image *image)
{
    return image->resized ? &image->resize.window : &image->crop;
}

int32_t st_image_width(const struct st_image *image)
{
    return image->edges.column ? image->edges.width
           : image->resized    ? (int32_t)image->resize.window.width
                               : (int32_t)image->crop.width;
}

int32_t st_image_height(const struct st_image *image)
{
    return image->edges.column ? image->edges.height
           : image->resized    ? (int32_t)image->resize.window.height
                               : (int32_t)image->crop.height;
}

int32_t st_image_channels(const struct st_image *image)
{
    const struct st_image *source = image->front ? image->front : image;
    return source->single || image->single ? 1 : source->encoded ? 3 : source->pixels.channels;
}

void st_image_number(const struct st_image *mask, uint8_t number, uint8_t pixel[4])
{
    memset(pixel, mask->numbers->bits ? 0 : number, 4);
    if (mask->numbers->wide)
        pixel[1] = pixel[2] = 0;
}

int st_image_no_memory(int32_t width, int32_t height, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d pixels", width, height);
}

/* ---- parts --------------------------------------------------------------------------------------- */

/* At least one place: what is all filled is made as if it were not. */
static struct st_edge_span span_of(const int32_t *from, uint32_t begin, uint32_t count)
{
    const struct st_edge_span span = st_edge_span(from + begin, (int32_t)count);
    return span.count ? span : (struct st_edge_span){0};
}

static void narrow_to(struct st_region *now, struct st_region part)
{
    *now = (struct st_region){now->x + part.x, now->y + part.y, part.width, part.height};
}

static bool is_run(const int32_t *from, int32_t count)
{
    int32_t start;
    return st_edge_run(from, count, &start) == count;
}

int st_image_set_edges(struct st_image *image, const struct st_edges *edges, struct st_region window,
                       struct stoker_error *err)
{
    struct st_arena *arena = &image->work->arena;
    const struct st_edge_span x = span_of(edges->column, window.x, window.width);
    const struct st_edge_span y = span_of(edges->row, window.y, window.height);
    struct st_edges part = *edges;
    part.width = (int32_t)window.width;
    part.height = (int32_t)window.height;
    part.column = st_edge_part(edges->column, (int32_t)window.x, part.width, arena, x.low, 0, false);
    part.row = st_edge_part(edges->row, (int32_t)window.y, part.height, arena, y.low, 0, false);
    if (!part.column || !part.row)
        return st_image_no_memory(part.width, part.height, err);
    narrow_to(visible(image), (struct st_region){(uint32_t)x.low, (uint32_t)y.low,
                                                 (uint32_t)(x.high - x.low + 1),
                                                 (uint32_t)(y.high - y.low + 1)});
    image->edges = is_run(part.column, part.width) && is_run(part.row, part.height)
                       ? (struct st_edges){0}
                       : part;
    return STOKER_OK;
}

int st_image_cut(struct st_image *image, struct st_region region, struct stoker_error *err)
{
    if (image->edges.column)
        return st_image_set_edges(image, &image->edges, region, err);
    narrow_to(visible(image), region);
    return STOKER_OK;
}

/* ---- making pixels ----------------------------------------------------------------------------- */

/* The part of the file's image, reduced by `scale`, that covers the crop. */
static struct st_region stored_crop(const struct st_image *image, uint32_t scale)
{
    uint32_t width, height;
    st_image_turned_size(image, &width, &height);
    const struct st_region r = st_turn_back(image->turn, image->crop, width, height);
    const uint32_t x = r.x / scale, y = r.y / scale;
    return (struct st_region){x, y, (r.x + r.width + scale - 1) / scale - x,
                              (r.y + r.height + scale - 1) / scale - y};
}

/* Where the crop's edges lie in that part, after the turn: usually between the reduced pixels. */
static struct st_span stored_span(uint32_t at, uint32_t length, uint32_t scale, uint32_t stored_at,
                                  uint32_t stored_length, bool backwards)
{
    const double begin = (double)at / scale - stored_at, span = (double)length / scale;
    return (struct st_span){backwards ? stored_length - begin - span : begin, span};
}

static void stored_spans(const struct st_image *image, uint32_t scale, struct st_region stored,
                         struct st_resize *job)
{
    const struct st_turn turn = image->turn;
    uint32_t width, height;
    st_image_turned_size(image, &width, &height);
    const struct st_region r = st_turn_back(turn, image->crop, width, height);
    const bool back_x = turn.transpose ? turn.flip : turn.mirror;
    const bool back_y = turn.transpose ? turn.mirror : turn.flip;
    const struct st_span x = stored_span(r.x, r.width, scale, stored.x, stored.width, back_x);
    const struct st_span y = stored_span(r.y, r.height, scale, stored.y, stored.height, back_y);
    job->span_x = turn.transpose ? y : x;
    job->span_y = turn.transpose ? x : y;
}

/* An estimate of the scratch memory for decoding the region, turning it, resizing it and changing its
 * colours. */
static uint64_t decode_bytes(const struct st_image *image, const struct st_region *region)
{
    const double pixels = 3.0 * region->width * region->height;
    const double made = 3.0 * st_image_width(image) * st_image_height(image);
    const double bytes = (double)image->header.scratch + pixels * (st_turn_needed(image->turn) ? 2 : 1) +
                         made * ((image->resized ? 2 : 0) + (image->pending_count ? 1 : 0));
    return bytes < 1e18 ? (uint64_t)bytes : UINT64_MAX;
}

/* Decodes `part` of the crop; `stored` is its region in the file's image. */
static int decode(const struct st_image *image, struct st_region part, struct st_region stored,
                  uint32_t scale, struct st_view *out, struct stoker_error *err)
{
    struct st_work *work = image->work;
    const bool swapped = image->turn.transpose;
    struct st_decode how = {scale,
                            st_turn_back(image->turn, part, swapped ? stored.height : stored.width,
                                         swapped ? stored.width : stored.height)};
    how.region.x += stored.x;
    how.region.y += stored.y;
    how.clean = work->clean;
    how.marks = work->marks;
    how.numbers = image->numbers;
    int rc =
        work->reserve ? work->reserve(work, image, decode_bytes(image, &how.region), err) : STOKER_OK;
    if (rc < 0)
        return rc;
    const uint64_t start = st_now_ns();
    rc = st_decoder_decode(&work->decoder, image->codec, image->bytes, &how, &work->arena, out, err);
    work->decode_ns += st_now_ns() - start;
    if (rc < 0 || !st_turn_needed(image->turn))
        return rc;
    const struct st_view raw = *out;
    if (!st_turn_view(image->turn, &raw, &work->arena, out))
        return st_image_no_memory(raw.width, raw.height, err);
    return STOKER_OK;
}

/* The pixels of `part` of the crop. */
static int crop_pixels(const struct st_image *image, struct st_region part, struct st_view *out,
                       struct stoker_error *err)
{
    if (image->encoded)
        return decode(image, part, stored_crop(image, 1), 1, out, err);
    *out = image->pixels;
    out->data = st_row(out, (int32_t)(image->crop.y + part.y - image->made_y)) +
                (ptrdiff_t)(image->crop.x + part.x - image->made_x) * out->channels;
    out->width = (int32_t)part.width;
    out->height = (int32_t)part.height;
    return STOKER_OK;
}

/* The largest reduction that leaves at least one input pixel per output pixel. */
static uint32_t reduction(const struct st_image *image)
{
    if (!image->encoded || !image->resized || !image->work->fast || image->numbers)
        return 1;
    for (uint32_t scale = 8; scale > 1; scale /= 2)
        if ((image->header.scales & scale) &&
            image->crop.width / scale >= (uint32_t)image->resize.out_width &&
            image->crop.height / scale >= (uint32_t)image->resize.out_height)
            return scale;
    return 1;
}

/* Sets up the resize and makes its input pixels. */
static int resize_input(const struct st_image *image, struct st_resize *job, struct st_view *pixels,
                        struct stoker_error *err)
{
    const uint32_t scale = reduction(image);
    *job = image->resize;
    if (scale == 1)
        return crop_pixels(image, st_resize_needs(job), pixels, err);
    const struct st_region stored = stored_crop(image, scale);
    job->in_width = (int32_t)(image->turn.transpose ? stored.height : stored.width);
    job->in_height = (int32_t)(image->turn.transpose ? stored.width : stored.height);
    stored_spans(image, scale, stored, job);
    return decode(image, st_resize_needs(job), stored, scale, pixels, err);
}

/* The part of its source that the image is made from. */
static struct st_region needed(const struct st_image *image)
{
    struct st_region part = image->crop;
    if (image->resized)
        narrow_to(&part, st_resize_needs(&image->resize));
    return part;
}

/* Leaves only `region` of what an image gives, where that saves work: behind the last op that has to see
 * more than a pixel, or, with `warps`, of what a warp makes. */
static bool leave_only(struct st_image *image, struct st_region region, bool warps)
{
    const uint32_t width = (uint32_t)st_image_width(image), height = (uint32_t)st_image_height(image);
    const struct st_turn turn = {.mirror = image->mirror, .flip = image->flip};
    uint32_t last = image->pending_count;
    if (region.width == width && region.height == height)
        return false;
    while (last && st_pending_by_pixel(&image->pending[last - 1], 1))
        last--;
    region = st_turn_back(turn, region, width, height);
    if (!last)
        return st_image_cut(image, region, NULL) >= 0;
    struct st_pending *op = &image->pending[last - 1];
    if (!warps || op->kind != ST_PENDING_WARP || op->warp.mix == ST_MIX_TRANSPOSED)
        return false;
    op->warp.window = region;
    return true;
}

/* Makes what the image's source is to be made of, as far as it is needed. */
static int make_front(struct st_image *image, struct stoker_error *err)
{
    if (!image->front)
        return STOKER_OK;
    const struct st_region region = needed(image);
    struct st_image front = *image->front; /* it stays as it was: this is only a part */
    const bool part = leave_only(&front, region, true);
    const int rc = st_image_pixels(&front, false, false, &image->pixels, err);
    image->made_x = part ? region.x : 0;
    image->made_y = part ? region.y : 0;
    image->owned = front.owned;
    image->front = NULL;
    return rc;
}

static void now_pixels(struct st_image *image, struct st_view pixels)
{
    image->pixels = pixels;
    image->encoded = image->resized = false;
    image->front = NULL;
    image->edges = (struct st_edges){0};
    image->crop = whole(pixels.width, pixels.height);
    image->made_x = image->made_y = 0;
}

/* Performs the crop and the resize, and makes the edges; then the image consists of pixels. */
static int settle_size(struct st_image *image, struct stoker_error *err)
{
    struct st_work *work = image->work;
    struct st_view pixels;
    int rc = make_front(image, err);
    if (rc < 0)
        return rc;
    if (image->resized) {
        struct st_resize job;
        struct st_view input;
        rc = resize_input(image, &job, &input, err);
        if (rc < 0)
            return rc;
        if (st_resize_view(&job, work->kernels, &work->arena, &input, &pixels) < 0)
            return st_image_no_memory(st_image_width(image), st_image_height(image), err);
        image->owned = true;
    } else {
        rc = crop_pixels(image, whole_crop(image), &pixels, err);
        if (rc < 0)
            return rc;
        image->owned = image->owned || image->encoded;
    }
    if (image->edges.column) {
        struct st_edges edges = image->edges;
        if (image->numbers) /* known once the mask is decoded */
            st_image_number(image, image->edges.fill[0], edges.fill);
        const struct st_view inside = pixels;
        if (!st_edges_view(&edges, &inside, &work->arena, &pixels))
            return st_image_no_memory(edges.width, edges.height, err);
        image->owned = true;
    }
    now_pixels(image, pixels);
    return STOKER_OK;
}

/* Replaces the pixels by a turned copy. */
static int copy_turned(struct st_image *image, struct st_turn turn, struct stoker_error *err)
{
    const struct st_view pixels = image->pixels;
    if (!st_turn_view(turn, &pixels, &image->work->arena, &image->pixels))
        return st_image_no_memory(pixels.width, pixels.height, err);
    image->owned = true;
    return STOKER_OK;
}

int st_image_make(struct st_image *image, struct stoker_error *err)
{
    struct st_work *work = image->work;
    int rc = settle_size(image, err);
    if (rc < 0 || !image->pending_count)
        return rc;
    const uint32_t count = image->pending_count - image->single; /* the last one makes it grey */
    bool fits = st_pending_run(image->pending, count, st_colour_rows_of(work), st_warp_rows_of(work),
                               &work->arena, &image->pixels, &image->owned) >= 0;
    if (fits && image->single) {
        const struct st_view rgb = image->pixels;
        fits = st_view_take(&image->pixels, &work->arena, rgb.width, rgb.height, 1);
        if (fits)
            st_colour_grey(st_colour_rows_of(work), &rgb, &image->pixels);
        image->owned = true;
    }
    if (!fits)
        rc = st_image_no_memory(st_image_width(image), st_image_height(image), err);
    image->pending_count = 0;
    image->single = false;
    return rc;
}

int st_image_pixels(struct st_image *image, bool writable, bool any_side, struct st_view *out,
                    struct stoker_error *err)
{
    if (image->boxes)
        return st_fail(err, STOKER_EINVAL, "a step of the pipeline moves pixels as boxes cannot follow");
    int rc = st_image_make(image, err);
    if (rc < 0)
        return rc;
    struct st_turn turn = {0};
    if (!any_side) {
        turn.mirror = image->mirror;
        turn.flip = image->flip;
        image->mirror = image->flip = false;
    }
    if (st_turn_needed(turn) || (writable && !image->owned))
        rc = copy_turned(image, turn, err);
    *out = image->pixels;
    return rc;
}

void st_image_set(struct st_image *image, struct st_view pixels, bool any_side)
{
    now_pixels(image, pixels);
    image->owned = true;
    image->pending_count = 0;
    image->single = false;
    if (!any_side)
        image->mirror = image->flip = false;
}

int st_image_rest(struct st_image *image, struct st_view *pixels, bool *resized,
                  struct st_resize *resize, struct stoker_error *err)
{
    int rc = make_front(image, err);
    if (rc < 0)
        return rc;
    *resized = image->resized;
    rc = image->resized ? resize_input(image, resize, pixels, err)
                        : crop_pixels(image, whole_crop(image), pixels, err);
    if (rc >= 0 && image->encoded && reduction(image) == 1) { /* so as not to decode it again */
        const struct st_region part = needed(image);
        image->pixels = *pixels;
        image->made_x = part.x;
        image->made_y = part.y;
        image->encoded = false;
        image->owned = true;
    }
    return rc;
}

bool st_image_front(const struct st_image *image, struct st_image *front, struct st_region *part)
{
    if (!image->front)
        return false;
    *front = *image->front;
    *part = needed(image);
    if (leave_only(front, *part, false))
        part->x = part->y = 0;
    return true;
}

bool st_image_window(const struct st_image *image, struct st_region *window, bool *resized,
                     struct st_resize *resize)
{
    if (!image->encoded || image->edges.column || st_turn_needed(image->turn))
        return false;
    for (uint32_t k = 0; k < image->pending_count; k++)
        if (image->pending[k].kind == ST_PENDING_TABLE)
            return false;
    *resized = image->resized;
    *resize = image->resize;
    *window = image->resized ? st_resize_needs(resize) : whole_crop(image);
    window->x += image->crop.x;
    window->y += image->crop.y;
    return true;
}

void st_image_front_keep(struct st_image *image, const struct st_image *front)
{
    struct st_image *own = image->front;
    const struct st_region all = needed(own), there = needed(front);
    if (!own->encoded || front->encoded || all.x != there.x || all.y != there.y ||
        all.width != there.width || all.height != there.height)
        return;
    own->pixels = front->pixels;
    own->made_x = front->made_x;
    own->made_y = front->made_y;
    own->encoded = false;
    own->owned = true;
}

/* With edges or pending ops: the last changes of values are made row by row on the way. */
static int finish_changed(struct st_image *image, const struct st_finish *finish,
                          const struct st_place *place, struct stoker_error *err)
{
    struct st_work *work = image->work;
    struct st_row_changes changes;
    const int rc = settle_size(image, err);
    if (rc < 0)
        return rc;
    if (st_pending_begin(image->pending, image->pending_count, st_colour_rows_of(work),
                         st_warp_rows_of(work), &work->arena, &image->pixels, &image->owned,
                         &changes) < 0 ||
        !st_row_changes_finish(&changes, &work->arena, &image->pixels, finish, work->kernels,
                               image->mirror, image->flip, place))
        return st_image_no_memory(st_image_width(image), st_image_height(image), err);
    image->pending_count = 0;
    return STOKER_OK;
}

int st_image_finish(struct st_image *image, const struct st_finish *finish, const struct st_place *place,
                    struct stoker_error *err)
{
    struct st_work *work = image->work;
    if (st_image_channels(image) != finish->channels)
        return st_fail(err, STOKER_EINVAL, "the image has %d channel%s instead of the planned %d",
                       st_image_channels(image), st_s((uint64_t)st_image_channels(image)),
                       finish->channels);
    struct st_view pixels;
    int rc;
    if (image->single && (rc = st_image_make(image, err)) < 0)
        return rc;
    if (image->pending_count || image->edges.column)
        return finish_changed(image, finish, place, err);
    rc = make_front(image, err);
    if (rc < 0)
        return rc;
    if (!image->resized) {
        rc = crop_pixels(image, whole_crop(image), &pixels, err);
        if (rc >= 0)
            st_finish_view(finish, work->kernels, &pixels, image->mirror, image->flip, place);
        return rc;
    }
    struct st_resize job;
    rc = resize_input(image, &job, &pixels, err);
    if (rc < 0)
        return rc;
    if (st_resize_finish(&job, work->kernels, &work->arena, &pixels, finish, image->mirror, image->flip,
                         place) < 0)
        return st_image_no_memory(st_image_width(image), st_image_height(image), err);
    return STOKER_OK;
}
