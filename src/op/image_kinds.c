/* image_kinds.c - lazy images of bytes in memory, of masks, and of boxes without pixels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/image.h"

#include "codec/jpeg/kernels.h"

#include <string.h>

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

void st_image_of_boxes(struct st_image *image, struct st_work *work, int32_t width, int32_t height,
                       struct st_boxes *boxes)
{
    *image = (struct st_image){
        .work = work, .boxes = boxes, .crop = {0, 0, (uint32_t)width, (uint32_t)height}};
}
