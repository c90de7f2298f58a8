/* images.c - further images of a sample that become what its first one does, with the same draws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/images.h"

static int open_piece(struct st_targets *of, struct st_image *image, const struct st_piece *piece,
                      struct stoker_error *err)
{
    if (!piece->ndim)
        return st_image_open(image, of->work, piece->bytes, of->exif_rotate, err);
    if (piece->dtype != STOKER_DTYPE_U8 || piece->ndim < 2 || piece->ndim > 3)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "an array used as an image must be uint8 [H, W] or [H, W, C]");
    return st_image_raw(image, of->work, piece->bytes, piece->shape[1], piece->shape[0],
                        piece->ndim == 3 ? piece->shape[2] : 1, false, err);
}

static int finish(struct st_targets *of, struct st_image *image, struct st_piece *out,
                  struct stoker_error *err)
{
    struct st_finish to = *of->finish;
    to.layout = to.array ? to.layout : STOKER_LAYOUT_NCHW; /* columns have no strides */
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const int64_t channels = to.channels;
    enum { SLACK = 64 }; /* bytes behind the last row */
    uint64_t bytes = 0;
    if (!ST_PRODUCT(&bytes, (uint64_t)width, (uint64_t)height, (uint64_t)channels, to.element) ||
        bytes > INT64_MAX - SLACK)
        return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d", width, height);
    struct st_place place = {.width = width, .height = height};
    struct st_erases erases;
    int rc = st_steps_erases(of->pipe, &to, of->rng_key, image, &erases, err);
    if (!rc && !(place.data = st_arena_take(&of->work->arena, bytes + SLACK)))
        rc = st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d", width, height);
    if (!rc)
        rc = st_steps_finish(image, &to, erases, &place, err);
    *out = (struct st_piece){.bytes = {place.data, bytes}, .dtype = to.dtype, .ndim = 3};
    const int64_t planes[] = {channels, height, width}, array[] = {height, width, channels};
    for (int k = 0; k < 3; k++)
        out->shape[k] = to.array ? array[k] : planes[k];
    return rc;
}

int st_image_target_make(struct st_targets *of, struct st_piece *piece, struct stoker_error *err)
{
    struct st_image image;
    int rc = open_piece(of, &image, piece, err);
    if (rc)
        return rc;
    if (st_image_width(&image) != of->width || st_image_height(&image) != of->height)
        return st_fail(err, STOKER_ECORRUPT,
                       "it has %d x %d pixels, but the first image %d x %d: for the same draws both "
                       "need the same size",
                       st_image_width(&image), st_image_height(&image), of->width, of->height);
    rc = st_target_move(of, &image, err);
    return rc ? rc : finish(of, &image, piece, err);
}
