/* decode.c - one image, outside of any loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "api/sized.h"
#include "op/image.h"

#include <stdlib.h>
#include <string.h>

enum { PIXEL_LIMIT = 178956970 }; /* where Pillow refuses an image as a decompression bomb */

ST_SIZED(options, stoker_image_options, pixel_limit);

static const struct stoker_image_options defaults = {.size = sizeof defaults,
                                                     .pixel_limit = PIXEL_LIMIT};

void stoker_image_options_init(struct stoker_image_options *opt, size_t size)
{
    st_sized_init(&options, &defaults, opt, size);
}

static int copy_out(struct stoker_image *out, const struct st_view *view, struct stoker_error *err)
{
    const size_t row = 3 * (size_t)view->width;
    out->pixels = st_alloc_aligned(row * (uint64_t)view->height);
    if (!out->pixels)
        return st_fail(err, STOKER_ENOMEM, "no memory for %d x %d pixels", view->width, view->height);
    out->width = (uint32_t)view->width;
    out->height = (uint32_t)view->height;
    for (int32_t y = 0; y < view->height; y++)
        memcpy(out->pixels + (size_t)y * row, st_row(view, y), row);
    return STOKER_OK;
}

static int decode(struct stoker_image *out, struct st_work *work, struct st_bytes in,
                  const struct stoker_image_options *opt, struct stoker_error *err)
{
    struct st_image image;
    struct st_view view;
    int rc = st_image_open(&image, work, in, opt->exif_rotate, err);
    if (rc == STOKER_OK && opt->width)
        rc = st_image_crop(&image, (struct st_region){opt->x, opt->y, opt->width, opt->height}, err);
    if (rc == STOKER_OK)
        rc = st_image_pixels(&image, false, false, &view, err);
    return rc == STOKER_OK ? copy_out(out, &view, err) : rc;
}

int stoker_image_decode(struct stoker_image *out, const void *data, size_t size, const char *name,
                        const struct stoker_image_options *given, struct stoker_error *err)
{
    struct stoker_image_options opt = defaults;
    if (!out || (!data && size))
        return st_fail(err, STOKER_EINVAL, "stoker_image_decode: out and data must not be NULL");
    *out = (struct stoker_image){0};
    int rc = given ? st_sized_take(&options, &opt, given, err) : STOKER_OK;
    if (rc)
        return rc;
    struct st_work work = {.decoder.pixel_limit = opt.pixel_limit}; /* no kernels: nothing is resized */
    rc = decode(out, &work, (struct st_bytes){data, size}, &opt, err);
    st_decoder_close(&work.decoder);
    st_arena_free(&work.arena);
    return rc < 0 && name ? st_fail_in(err, rc, name) : rc;
}

void stoker_image_close(struct stoker_image *image)
{
    if (!image)
        return;
    free(image->pixels);
    *image = (struct stoker_image){0};
}
