/* image_kinds.c - lazy images of bytes in memory, of masks, of boxes, and of late pixels; their sizes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/image.h"

#include "codec/jpeg/kernels.h"

#include <string.h>

void st_work_equip(struct st_work *work)
{
    const enum st_cpu_level level = st_cpu_level();
    work->level = level;
    work->kernels = st_kernels_for(level);
    work->colour = st_colour_rows_for(level);
    work->jpeg = st_jpeg_kernels_for(level);
    work->warp = st_warp_rows_for(level);
}

int32_t st_image_width(const struct st_image *image)
{
    return (int32_t)(image->resized ? image->resize.window.width : image->crop.width);
}

int32_t st_image_height(const struct st_image *image)
{
    return (int32_t)(image->resized ? image->resize.window.height : image->crop.height);
}

int32_t st_image_channels(const struct st_image *image)
{
    return image->encoded ? 3 : image->pixels.channels;
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

void st_image_wrap(struct st_image *image, struct st_work *work, struct st_view pixels)
{
    *image = (struct st_image){.work = work,
                               .pixels = pixels,
                               .crop = {0, 0, (uint32_t)pixels.width, (uint32_t)pixels.height}};
}

/* Expands grey to RGB. Kernels read and write whole vectors, and the pixels may be followed by the end
 * of a mapped file. */
static void spread_grey(const struct st_work *work, uint8_t *rgb, const uint8_t *grey, int32_t pixels)
{
    const int32_t vectors = work->jpeg ? pixels & -64 : 0;
    if (vectors)
        work->jpeg->grey(rgb, grey, vectors);
    for (int32_t k = vectors; k < pixels; k++)
        rgb[3 * k] = rgb[3 * k + 1] = rgb[3 * k + 2] = grey[k];
}

int st_image_raw(struct st_image *image, struct st_work *work, struct st_bytes bytes, int64_t width,
                 int64_t height, int64_t channels, bool followed, struct stoker_error *err)
{
    const uint64_t limit = work->decoder.pixel_limit;
    uint64_t pixels = 0, size;
    struct st_view rgb;
    if (width < 1 || height < 1 || width > INT32_MAX / 4 || height > INT32_MAX || channels < 1 ||
        channels > 4 || !st_mul((uint64_t)width, (uint64_t)height, &pixels) ||
        !st_mul(pixels, (uint64_t)channels, &size) || size != bytes.size)
        return st_fail(err, STOKER_ECORRUPT,
                       "%zu bytes are not an image of %lld x %lld pixels with %lld channels", bytes.size,
                       (long long)width, (long long)height, (long long)channels);
    if (limit && pixels > limit)
        return st_fail(err, STOKER_ELIMIT, "%lld x %lld exceeds pixel_limit (%llu pixels)",
                       (long long)width, (long long)height, (unsigned long long)limit);
    if (channels == 3 && followed) {
        st_image_wrap(image, work,
                      (struct st_view){(uint8_t *)(uintptr_t)bytes.data, 3 * (ptrdiff_t)width,
                                       (int32_t)width, (int32_t)height, 3});
        return STOKER_OK;
    }
    if (!st_view_take(&rgb, &work->arena, (int32_t)width, (int32_t)height, 3))
        return st_fail(err, STOKER_ENOMEM, "no memory for an image of %lld x %lld pixels",
                       (long long)width, (long long)height);
    if (channels == 3)
        memcpy(rgb.data, bytes.data, bytes.size);
    for (uint64_t at = 0, some; channels == 1 && at < pixels; at += some) {
        some = pixels - at < 1 << 20 ? pixels - at : 1 << 20;
        spread_grey(work, rgb.data + 3 * at, bytes.data + at, (int32_t)some);
    }
    const int green = channels > 2 ? 1 : 0, blue = channels > 2 ? 2 : 0;
    const uint8_t *from = bytes.data;
    for (uint8_t *to = rgb.data; channels % 2 == 0 && pixels > 0; pixels--, from += channels, to += 3) {
        to[0] = from[0];
        to[1] = from[green];
        to[2] = from[blue];
    }
    st_image_wrap(image, work, rgb);
    image->owned = true;
    return STOKER_OK;
}

void st_image_is_mask(struct st_image *image, struct st_numbers *numbers)
{
    *numbers = (struct st_numbers){0};
    image->numbers = numbers;
}

void st_image_number(const struct st_image *mask, uint8_t number, uint8_t pixel[4])
{
    memset(pixel, mask->numbers->bits ? 0 : number, 4);
    if (mask->numbers->wide)
        pixel[1] = pixel[2] = 0;
}

void st_image_of_boxes(struct st_image *image, struct st_work *work, int32_t width, int32_t height,
                       struct st_boxes *boxes)
{
    *image = (struct st_image){
        .work = work, .boxes = boxes, .crop = {0, 0, (uint32_t)width, (uint32_t)height}};
}

void st_image_set_late(struct st_image *image, struct st_late *late)
{
    late->from = *image;
    *image = (struct st_image){
        .work = image->work,
        .late = late,
        .pixels = {.width = late->width, .height = late->height, .channels = st_image_channels(image)},
        .numbers = image->numbers,
        .chosen = image->chosen,
        .crop = {0, 0, (uint32_t)late->width, (uint32_t)late->height}};
}

int st_late_output(const struct st_late *late, struct st_region part, struct st_view *out,
                   struct stoker_error *err)
{
    if (out->data || st_view_take(out, &late->from.work->arena, (int32_t)part.width,
                                  (int32_t)part.height, st_image_channels(&late->from)))
        return STOKER_OK;
    return st_fail(err, STOKER_ENOMEM, "no memory for an image of %u x %u pixels", part.width,
                   part.height);
}
