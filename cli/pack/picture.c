/* picture.c - resizes and encodes images for a pack
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "cli/pack/jpeg_out.h"

#include <stdlib.h>

enum { QUALITY = 90 }; /* for images that must be re-encoded, without --quality */

/* ---- JPEG files -------------------------------------------------------------------------------- */

struct encoder {
    struct pack_jpeg_errors errors;
    struct pack_jpeg_out out;
    struct jpeg_compress_struct cinfo;
};

static void encode(struct encoder *e, const struct st_view *pixels, int quality, struct st_buffer *into)
{
    jpeg_create_compress(&e->cinfo);
    pack_jpeg_out(&e->cinfo, &e->out, into);
    e->cinfo.image_width = (JDIMENSION)pixels->width;
    e->cinfo.image_height = (JDIMENSION)pixels->height;
    e->cinfo.input_components = pixels->channels;
    e->cinfo.in_color_space = pixels->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&e->cinfo);
    jpeg_set_quality(&e->cinfo, quality, TRUE);
    e->cinfo.optimize_coding = TRUE;
    jpeg_start_compress(&e->cinfo, TRUE);
    for (int32_t y = 0; y < pixels->height; y++) {
        JSAMPROW row = st_row(pixels, y);
        jpeg_write_scanlines(&e->cinfo, &row, 1);
    }
    jpeg_finish_compress(&e->cinfo);
}

int pack_jpeg_encode(const struct st_view *pixels, int quality, struct st_buffer *into,
                     struct stoker_error *err)
{
    struct encoder *e = st_calloc(1, sizeof *e);
    if (!e)
        return st_fail(err, STOKER_ENOMEM, "out of memory for an encoder");
    int rc = STOKER_OK;
    e->cinfo.err = pack_jpeg_errors(&e->errors, false);
    if (setjmp(e->errors.out)) {
        char why[JMSG_LENGTH_MAX];
        e->errors.manager.format_message((j_common_ptr)&e->cinfo, why);
        rc = st_fail(err, STOKER_EUNSUPPORTED, "cannot encode %d x %d pixels as JPEG: %s",
                     pixels->width, pixels->height, why);
    } else {
        encode(e, pixels, quality, into);
    }
    jpeg_destroy_compress(&e->cinfo);
    free(e);
    return rc;
}

/* ---- sizes ------------------------------------------------------------------------------------- */

static int32_t scaled(int32_t side, uint64_t to, uint64_t from)
{
    const uint64_t value = (uint64_t)side * to / from; /* rounds down, as torchvision's Resize does */
    return value ? (int32_t)value : 1;
}

/* The new size of an image: --resize first, then --max-size. */
static void wanted_size(const struct pack_options *opt, int32_t *width, int32_t *height)
{
    const int32_t w = *width, h = *height;
    if (opt->resize_height) {
        *width = (int32_t)opt->resize_width;
        *height = (int32_t)opt->resize_height;
    } else if (opt->resize_width) {
        const uint64_t side = opt->resize_width;
        *width = w <= h ? (int32_t)side : scaled(w, side, (uint64_t)h);
        *height = h <= w ? (int32_t)side : scaled(h, side, (uint64_t)w);
    }
    const int32_t longer = *width > *height ? *width : *height;
    if (opt->max_size && (uint64_t)longer > opt->max_size) {
        *width = scaled(*width, opt->max_size, (uint64_t)longer);
        *height = scaled(*height, opt->max_size, (uint64_t)longer);
    }
}

static int open_piece(struct st_image *image, const struct st_piece *piece, struct st_work *work,
                      struct stoker_error *err)
{
    if (piece->ndim == 0)
        return st_image_open(image, work, piece->bytes, false, err);
    return st_image_raw(image, work, piece->bytes, piece->shape[1], piece->shape[0],
                        piece->ndim == 3 ? piece->shape[2] : 1, piece->followed, err);
}

static int copy_pixels(const struct st_view *view, struct st_piece *piece, struct st_buffer *into,
                       struct stoker_error *err)
{
    into->size = 0;
    for (int32_t y = 0; y < view->height; y++)
        if (!pack_append(into, st_row(view, y), (uint64_t)view->width * (uint64_t)view->channels))
            return st_fail(err, STOKER_ENOMEM, "out of memory for %d x %d pixels", view->width,
                           view->height);
    *piece = (struct st_piece){
        .dtype = STOKER_DTYPE_U8, .ndim = 3, .shape = {view->height, view->width, view->channels}};
    return STOKER_OK;
}

int pack_picture(struct st_piece *piece, struct st_buffer *into, const struct pack_options *opt,
                 struct st_work *work, struct stoker_error *err)
{
    struct st_image image;
    struct st_view view;
    st_arena_reset(&work->arena);
    int rc = open_piece(&image, piece, work, err);
    if (rc)
        return rc;
    int32_t width = st_image_width(&image), height = st_image_height(&image);
    wanted_size(opt, &width, &height);
    const bool other_size = width != st_image_width(&image) || height != st_image_height(&image);
    const bool to_pixels = opt->writer->pixels;
    if (!other_size && (to_pixels ? piece->ndim != 0 : !opt->quality))
        return STOKER_OK;
    if (other_size)
        rc = st_image_resize(&image, width, height, ST_FILTER_BILINEAR, err);
    if (!rc)
        rc = st_image_pixels(&image, false, false, &view, err);
    if (!rc && to_pixels)
        rc = copy_pixels(&view, piece, into, err);
    else if (!rc)
        rc = pack_jpeg_encode(&view, opt->quality ? (int)opt->quality : QUALITY, into, err);
    if (!rc && !to_pixels)
        *piece = (struct st_piece){.ndim = 0};
    piece->bytes = (struct st_bytes){into->data, into->size};
    return rc;
}
