/* image.c - a lazy image: its pixels are not made until they are needed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/image.h"

#include "base/clock.h"
#include "op/image_make.h"
#include "op/resize/resize_cv.h"

#include <string.h>

static struct st_region whole(int32_t width, int32_t height)
{
    return (struct st_region){0, 0, (uint32_t)width, (uint32_t)height};
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
    st_image_turned_size(image, &image->crop.width, &image->crop.height);
    return STOKER_OK;
}

void st_image_wrap(struct st_image *image, struct st_work *work, struct st_view pixels)
{
    *image =
        (struct st_image){.work = work, .pixels = pixels, .crop = whole(pixels.width, pixels.height)};
}

void st_image_mirror(struct st_image *image)
{
    if (image->boxes)
        st_boxes_mirror(image->boxes, true, st_image_width(image));
    else
        image->mirror = !image->mirror;
}

void st_image_flip(struct st_image *image)
{
    if (image->boxes)
        st_boxes_mirror(image->boxes, false, st_image_height(image));
    else
        image->flip = !image->flip;
}

int st_image_do(struct st_image *image, struct st_pending op, struct stoker_error *err)
{
    const bool made = image->pending_count == ST_PENDING_MAX || image->single;
    const int rc = made ? st_image_make(image, err) : STOKER_OK;
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

int st_image_grey(struct st_image *image, struct stoker_error *err)
{
    const int rc = st_image_do(image, (struct st_pending){.kind = ST_PENDING_GREY}, err);
    image->single = rc >= 0 && !image->numbers && !image->boxes;
    return rc;
}

/* What follows starts from the image as it is by now, which is made when it is known how much of it is
 * needed. What is to be mirrored and flipped still is. */
static int begin_anew(struct st_image *image, struct stoker_error *err)
{
    if (image->front) /* one image to be made before is enough */
        return st_image_make(image, err);
    const int32_t width = st_image_width(image), height = st_image_height(image);
    struct st_image *front = st_arena_take(&image->work->arena, sizeof *front);
    if (!front)
        return st_image_no_memory(width, height, err);
    *front = *image;
    *image = (struct st_image){.work = front->work,
                               .front = front,
                               .numbers = front->numbers,
                               .chosen = front->chosen,
                               .crop = whole(width, height),
                               .mirror = front->mirror,
                               .flip = front->flip};
    front->mirror = front->flip = false;
    return STOKER_OK;
}

int st_image_crop(struct st_image *image, struct st_region region, struct stoker_error *err)
{
    const uint32_t width = (uint32_t)st_image_width(image), height = (uint32_t)st_image_height(image);
    if (!region.width || !region.height || region.x > width || region.y > height ||
        region.width > width - region.x || region.height > height - region.y)
        return st_fail(err, STOKER_EINVAL,
                       "a crop of %u x %u at %u, %u does not lie inside the %u x %u image", region.width,
                       region.height, region.x, region.y, width, height);
    if (image->boxes) {
        st_boxes_shift(image->boxes, -(float)region.x, -(float)region.y);
        st_boxes_clamp(image->boxes, (int32_t)region.width, (int32_t)region.height);
        image->crop = whole((int32_t)region.width, (int32_t)region.height);
        return STOKER_OK;
    }
    if (region.width == width && region.height == height)
        return STOKER_OK;
    const int rc = st_pending_by_pixel(image->pending, image->pending_count) ? STOKER_OK
                                                                            : begin_anew(image, err);
    if (rc < 0)
        return rc;
    const struct st_turn noted = {.mirror = image->mirror, .flip = image->flip};
    return st_image_cut(image, st_turn_back(noted, region, width, height), err);
}

int st_image_surround(struct st_image *image, const struct st_edges *edges, struct stoker_error *err)
{
    const int32_t width = st_image_width(image), height = st_image_height(image);
    struct st_arena *arena = &image->work->arena;
    struct st_edges turned = *edges;
    const int rc =
        image->edges.column || image->pending_count ? begin_anew(image, err) : STOKER_OK;
    if (rc < 0)
        return rc;
    turned.column =
        st_edge_part(edges->column, 0, edges->width, arena, 0, width, image->mirror);
    turned.row = st_edge_part(edges->row, 0, edges->height, arena, 0, height, image->flip);
    if (!turned.column || !turned.row)
        return st_image_no_memory(edges->width, edges->height, err);
    return st_image_set_edges(image, &turned, whole(edges->width, edges->height), err);
}

/* Resizing a mirrored image does not give the mirrored resize, because rounding is not symmetric. So a
 * recorded mirror or flip is performed first; for an encoded image, on decoding. */
static int settle_turn(struct st_image *image, struct stoker_error *err)
{
    if (image->front && image->crop.width == (uint32_t)st_image_width(image->front) &&
        image->crop.height == (uint32_t)st_image_height(image->front)) {
        image->front->mirror ^= image->mirror;
        image->front->flip ^= image->flip;
        image->mirror = image->flip = false;
        return STOKER_OK;
    }
    if (!image->encoded) {
        struct st_view pixels;
        return st_image_pixels(image, false, false, &pixels, err);
    }
    uint32_t width, height;
    st_image_turned_size(image, &width, &height);
    const struct st_turn noted = {.mirror = image->mirror, .flip = image->flip};
    image->crop = st_turn_back(noted, image->crop, width, height);
    image->turn.mirror ^= image->mirror;
    image->turn.flip ^= image->flip;
    image->mirror = image->flip = false;
    return STOKER_OK;
}

/* With OpenCV's arithmetic, at once. */
static int resize_as_cv(struct st_image *image, int32_t width, int32_t height, enum st_filter filter,
                        struct stoker_error *err)
{
    struct st_arena *arena = &image->work->arena;
    struct st_view in, out;
    int rc = st_image_pixels(image, false, false, &in, err);
    if (rc < 0)
        return rc;
    if (!st_view_take(&out, arena, width, height, in.channels))
        return st_image_no_memory(width, height, err);
    rc = st_cv_resize_view(image->numbers ? ST_FILTER_CV_NEAREST : filter, 0, &in, &out, arena, err);
    if (rc >= 0)
        st_image_set(image, out, false);
    return rc;
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
    if (image->resized || image->edges.column || image->pending_count)
        rc = begin_anew(image, err);
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
