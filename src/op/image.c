/* image.c - a lazy image: its pixels are not made until they are needed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/image.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/text.h"
#include "codec/jpeg/kernels.h"
#include "op/resize/resize_cv.h"

#include <string.h>

static struct st_region whole(int32_t width, int32_t height)
{
    return (struct st_region){0, 0, (uint32_t)width, (uint32_t)height};
}

/* The size of the encoded image after its turn. */
static void turned_size(const struct st_image *image, uint32_t *width, uint32_t *height)
{
    *width = image->turn.transpose ? image->header.height : image->header.width;
    *height = image->turn.transpose ? image->header.width : image->header.height;
}

int st_image_open(struct st_image *image, struct st_work *work, struct st_bytes bytes, bool exif_rotate,
                  struct stoker_error *err)
{
    *image = (struct st_image){.work = work, .encoded = true, .bytes = bytes};
    const uint64_t start = st_now_ns();
    const int rc = st_decoder_header(&work->decoder, bytes, &image->codec, &image->header, err);
    work->decode_ns += st_now_ns() - start;
    if (rc < 0)
        return rc;
    const struct st_header *header = &image->header;
    if (!header->width || !header->height || header->width > INT32_MAX || header->height > INT32_MAX)
        return st_fail(err, STOKER_EUNSUPPORTED, "images of %u x %u pixels are not supported",
                       header->width, header->height);
    if (exif_rotate)
        image->turn = st_turn_upright(header->orientation);
    turned_size(image, &image->crop.width, &image->crop.height);
    return STOKER_OK;
}

static struct st_region whole_crop(const struct st_image *image)
{
    return (struct st_region){0, 0, image->crop.width, image->crop.height};
}

static struct st_region *visible(struct st_image *image)
{
    return image->resized ? &image->resize.window : &image->crop;
}

static int no_memory(int32_t width, int32_t height, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d pixels", width, height);
}

/* ---- making pixels ----------------------------------------------------------------------------- */

/* The part of the file's image, reduced by `scale`, that covers the crop. */
static struct st_region stored_crop(const struct st_image *image, uint32_t scale)
{
    uint32_t width, height;
    turned_size(image, &width, &height);
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
    turned_size(image, &width, &height);
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
        return no_memory(raw.width, raw.height, err);
    return STOKER_OK;
}

/* The pixels of `part` of the crop. */
static int crop_pixels(const struct st_image *image, struct st_region part, struct st_view *out,
                       struct stoker_error *err)
{
    if (image->encoded)
        return decode(image, part, stored_crop(image, 1), 1, out, err);
    if (image->late) {
        part.x += image->crop.x;
        part.y += image->crop.y;
        *out = (struct st_view){0};
        return image->late->make(image->late, part, out, err);
    }
    *out = image->pixels;
    out->data = st_row(out, (int32_t)(image->crop.y + part.y)) +
                (ptrdiff_t)(image->crop.x + part.x) * out->channels;
    out->width = (int32_t)part.width;
    out->height = (int32_t)part.height;
    return STOKER_OK;
}

/* The largest reduction that leaves at least one input pixel per output pixel. */
static uint32_t reduction(const struct st_image *image)
{
    if (!image->encoded || !image->work->fast || image->numbers)
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

/* Performs the crop and the resize; then the image consists of pixels. */
static int settle_size(struct st_image *image, struct stoker_error *err)
{
    struct st_work *work = image->work;
    struct st_view pixels;
    if (image->resized || st_image_width(image) != image->pixels.width ||
        st_image_height(image) != image->pixels.height)
        image->framed = (struct st_region){0};
    if (image->resized) {
        struct st_resize job;
        struct st_view input;
        const int rc = resize_input(image, &job, &input, err);
        if (rc < 0)
            return rc;
        if (st_resize_view(&job, work->kernels, &work->arena, &input, &pixels) < 0)
            return no_memory(st_image_width(image), st_image_height(image), err);
        image->owned = true;
    } else {
        const int rc = crop_pixels(image, whole_crop(image), &pixels, err);
        if (rc < 0)
            return rc;
        image->owned = image->owned || image->encoded || image->late;
    }
    image->pixels = pixels;
    image->encoded = image->resized = false;
    image->late = NULL;
    image->crop = whole(pixels.width, pixels.height);
    return STOKER_OK;
}

/* Replaces the pixels by a turned copy. */
static int copy_turned(struct st_image *image, struct st_turn turn, struct stoker_error *err)
{
    const struct st_view pixels = image->pixels;
    if (!st_turn_view(turn, &pixels, &image->work->arena, &image->pixels))
        return no_memory(pixels.width, pixels.height, err);
    image->owned = true;
    image->framed = (struct st_region){0};
    return STOKER_OK;
}

/* Does everything except mirroring and flipping. */
static int make(struct st_image *image, struct stoker_error *err)
{
    struct st_work *work = image->work;
    int rc = settle_size(image, err);
    if (rc < 0 || !image->pending_count)
        return rc;
    image->framed = (struct st_region){0};
    if (st_pending_run(image->pending, image->pending_count, st_colour_rows_of(work),
                       st_warp_rows_of(work), &work->arena, &image->pixels, &image->owned) < 0)
        rc = no_memory(st_image_width(image), st_image_height(image), err);
    image->pending_count = 0;
    return rc;
}

int st_image_pixels(struct st_image *image, bool writable, bool any_side, struct st_view *out,
                    struct stoker_error *err)
{
    if (image->boxes)
        return st_fail(err, STOKER_EINVAL, "a step of the pipeline moves pixels as boxes cannot follow");
    int rc = make(image, err);
    if (rc < 0)
        return rc;
    struct st_turn turn = {0};
    if (!any_side) {
        turn.mirror = image->mirror;
        turn.flip = image->flip;
        image->mirror = image->flip = false;
    }
    if (writable)
        image->framed = (struct st_region){0};
    if (st_turn_needed(turn) || (writable && !image->owned))
        rc = copy_turned(image, turn, err);
    *out = image->pixels;
    return rc;
}

void st_image_set(struct st_image *image, struct st_view pixels, bool any_side)
{
    image->pixels = pixels;
    image->owned = true;
    image->framed = (struct st_region){0};
    image->encoded = image->resized = false;
    image->late = NULL;
    image->crop = whole(pixels.width, pixels.height);
    image->pending_count = 0;
    if (!any_side)
        image->mirror = image->flip = false;
}

int st_late_input(const struct st_late *late, struct st_region part, struct st_view *out,
                  struct stoker_error *err)
{
    struct st_image from = late->from;
    const int rc = st_image_crop(&from, part, err);
    return rc < 0 ? rc : st_image_pixels(&from, false, false, out, err);
}

int st_image_do(struct st_image *image, struct st_pending op, struct stoker_error *err)
{
    const int rc = image->pending_count == ST_PENDING_MAX ? make(image, err) : STOKER_OK;
    if (rc < 0 || image->numbers || image->boxes)
        return rc;
    if (op.kind == ST_PENDING_WARP) {
        op.mirror = image->mirror;
        op.flip = image->flip;
        image->mirror = image->flip = false;
    }
    image->pending[image->pending_count++] = op;
    return rc;
}

int st_image_crop(struct st_image *image, struct st_region region, struct stoker_error *err)
{
    struct st_region *now = visible(image);
    if (!region.width || !region.height || region.x > now->width || region.y > now->height ||
        region.width > now->width - region.x || region.height > now->height - region.y)
        return st_fail(err, STOKER_EINVAL,
                       "a crop of %u x %u at %u, %u does not lie inside the %u x %u image", region.width,
                       region.height, region.x, region.y, now->width, now->height);
    if (image->boxes) {
        st_boxes_shift(image->boxes, -(float)region.x, -(float)region.y);
        st_boxes_clamp(image->boxes, (int32_t)region.width, (int32_t)region.height);
        image->crop = whole((int32_t)region.width, (int32_t)region.height);
        return STOKER_OK;
    }
    if (image->pending_count && (region.width < now->width || region.height < now->height)) {
        const int rc = make(image, err);
        if (rc < 0)
            return rc;
        now = visible(image);
    }
    const struct st_turn noted = {.mirror = image->mirror, .flip = image->flip};
    region = st_turn_back(noted, region, now->width, now->height);
    region.x += now->x;
    region.y += now->y;
    *now = region;
    return STOKER_OK;
}

/* Resizing a mirrored image does not give the mirrored resize, because rounding is not symmetric. So a
 * recorded mirror or flip is performed first; for an encoded image, on decoding. */
static int settle_turn(struct st_image *image, struct stoker_error *err)
{
    if (!image->encoded) {
        struct st_view pixels;
        return st_image_pixels(image, false, false, &pixels, err);
    }
    uint32_t width, height;
    turned_size(image, &width, &height);
    const struct st_turn noted = {.mirror = image->mirror, .flip = image->flip};
    image->crop = st_turn_back(noted, image->crop, width, height);
    image->turn.mirror ^= image->mirror;
    image->turn.flip ^= image->flip;
    image->mirror = image->flip = false;
    return STOKER_OK;
}

/* With OpenCV's arithmetic. */
struct cv_resize {
    struct st_late late;
    enum st_filter filter;
};

static int make_cv_resize(const struct st_late *late, struct st_region part, struct st_view *out,
                          struct stoker_error *err)
{
    const struct cv_resize *resize = (const struct cv_resize *)(const void *)late;
    const int32_t width = st_image_width(&late->from), height = st_image_height(&late->from);
    struct st_cv_parts parts = {.in_width = width,
                                .in_height = height,
                                .out_width = late->width,
                                .out_height = late->height,
                                .out = part};
    struct st_view in;
    parts.in = st_cv_resize_needs(&parts);
    int rc = st_late_input(late, parts.in, &in, err);
    if (rc >= 0)
        rc = st_late_output(late, part, out, err);
    return rc < 0 ? rc
                  : st_cv_resize_view(resize->filter, 0, &parts, &in, out, &late->from.work->arena, err);
}

static int resize_as_cv(struct st_image *image, int32_t width, int32_t height, enum st_filter filter,
                        struct stoker_error *err)
{
    struct cv_resize *resize = st_arena_take(&image->work->arena, sizeof *resize);
    const bool shrinks = width < st_image_width(image) || height < st_image_height(image);
    struct st_view pixels;
    if (!resize)
        return no_memory(width, height, err);
    if (image->numbers)
        filter = ST_FILTER_CV_NEAREST;
    else if (filter == ST_FILTER_CV_LINEAR_AREA)
        filter = shrinks ? ST_FILTER_CV_AREA : ST_FILTER_CV_LINEAR;
    *resize = (struct cv_resize){{.width = width, .height = height, .make = make_cv_resize}, filter};
    st_image_set_late(image, &resize->late);
    /* Areas are not made in parts. */
    return filter == ST_FILTER_CV_AREA ? st_image_pixels(image, false, true, &pixels, err) : STOKER_OK;
}

int st_image_resize(struct st_image *image, int32_t width, int32_t height, enum st_filter filter,
                    struct stoker_error *err)
{
    if (width <= 0 || height <= 0)
        return st_fail(err, STOKER_EINVAL, "cannot resize %d x %d to %d x %d pixels",
                       st_image_width(image), st_image_height(image), width, height);
    const uint64_t limit = image->work->decoder.pixel_limit;
    if (limit && (uint64_t)width * (uint64_t)height > limit)
        return st_fail(
            err, STOKER_ELIMIT, "resizing %d x %d to %d x %d exceeds pixel_limit (%llu pixels)",
            st_image_width(image), st_image_height(image), width, height, (unsigned long long)limit);
    if (width == st_image_width(image) && height == st_image_height(image))
        return STOKER_OK;
    if (image->boxes) {
        st_boxes_resize(image->boxes, (int32_t[]){st_image_width(image), st_image_height(image)},
                        (int32_t[]){width, height});
        image->crop = whole(width, height);
        return STOKER_OK;
    }
    if (filter >= ST_FILTERS)
        return resize_as_cv(image, width, height, filter, err);
    int rc = STOKER_OK;
    if (image->resized || image->pending_count)
        rc = make(image, err);
    if (rc >= 0 && (image->mirror || image->flip))
        rc = settle_turn(image, err);
    if (rc < 0)
        return rc;
    image->resized = true;
    image->resize = (struct st_resize){
        .in_width = (int32_t)image->crop.width,
        .in_height = (int32_t)image->crop.height,
        .out_width = width,
        .out_height = height,
        .window = whole(width, height),
        .filter = image->numbers ? ST_FILTER_NEAREST : filter,
        .pillow = image->work->pillow,
        .floored = image->numbers && image->numbers->floored,
    };
    return STOKER_OK;
}

int st_image_rest(const struct st_image *image, struct st_view *pixels, bool *resized,
                  struct st_resize *resize, struct stoker_error *err)
{
    *resized = image->resized;
    return image->resized ? resize_input(image, resize, pixels, err)
                          : crop_pixels(image, whole_crop(image), pixels, err);
}

bool st_image_window(const struct st_image *image, struct st_region *window, bool *resized,
                     struct st_resize *resize)
{
    if (!image->encoded || st_turn_needed(image->turn))
        return false;
    *resized = image->resized;
    *resize = image->resize;
    *window = image->resized ? st_resize_needs(resize) : whole_crop(image);
    window->x += image->crop.x;
    window->y += image->crop.y;
    return true;
}

/* With pending ops: the last changes of values are made row by row on the way. */
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
        return no_memory(st_image_width(image), st_image_height(image), err);
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
    if (image->pending_count)
        return finish_changed(image, finish, place, err);
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
        return no_memory(st_image_width(image), st_image_height(image), err);
    return STOKER_OK;
}
