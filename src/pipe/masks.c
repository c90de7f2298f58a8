/* masks.c - the masks of a sample: moved like its image, with the same draws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/masks.h"
#include "pipe/drawn.h"

static int open_piece(struct st_image *image, struct st_work *work, const struct st_piece *piece,
                      bool exif_rotate, struct stoker_error *err)
{
    if (!piece->ndim)
        return st_image_open(image, work, piece->bytes, exif_rotate, err);
    if (piece->dtype != STOKER_DTYPE_U8)
        return st_fail(err, STOKER_EUNSUPPORTED, "a mask that is an array must be uint8 [H, W]");
    return st_image_raw(image, work, piece->bytes, piece->shape[1], piece->shape[0],
                        piece->ndim == 3 ? piece->shape[2] : 1, false, err);
}

static int fail_row(int32_t row, bool high, struct stoker_error *err)
{
    return high ? st_fail(err, STOKER_EUNSUPPORTED,
                          "row %d of the mask has numbers above 255: name the mask as a wide one, for "
                          "masks of 16 bits, or store fewer classes",
                          row)
                : st_fail(err, STOKER_EUNSUPPORTED,
                          "row %d of the mask has colours: store the numbers of classes, as a PNG with "
                          "grey levels or a palette",
                          row);
}

/* Of a row; returns what the second byte has, or in what the bytes differ. */
static uint8_t row_of_numbers(uint8_t *restrict out, const uint8_t *restrict rgb, int32_t width,
                              bool high)
{
    uint8_t bad = 0;
    if (high)
        for (int32_t x = 0; x < width; x++) {
            out[x] = rgb[3 * x];
            bad |= rgb[3 * x + 1];
        }
    else
        for (int32_t x = 0; x < width; x++) {
            out[x] = rgb[3 * x];
            bad |= (uint8_t)((rgb[3 * x] ^ rgb[3 * x + 1]) | (rgb[3 * x] ^ rgb[3 * x + 2]));
        }
    return bad;
}

/* The pixels' numbers, which must be those of grey pixels and fit into a byte. */
static int numbers_of(const struct st_view *view, bool high, uint8_t *out, struct stoker_error *err)
{
    for (int32_t y = 0; y < view->height; y++, out += view->width)
        if (row_of_numbers(out, st_row(view, y), view->width, high))
            return fail_row(y, high, err);
    return 0;
}

/* The same with 16 bits, or with 8 if the file has no more. */
static int wide_numbers_of(const struct st_view *view, bool high, int32_t *out, struct stoker_error *err)
{
    for (int32_t y = 0; y < view->height; y++) {
        const uint8_t *rgb = st_row(view, y);
        uint8_t bad = 0;
        for (int32_t x = 0; x < view->width; x++, rgb += 3) {
            *out++ = rgb[0] | (high ? rgb[1] << 8 : 0);
            bad |= high ? 0 : (uint8_t)((rgb[0] ^ rgb[1]) | (rgb[0] ^ rgb[2]));
        }
        if (bad)
            return fail_row(y, false, err);
    }
    return 0;
}

int st_mask_make(struct st_targets *of, uint32_t column, struct st_piece *piece,
                 struct stoker_error *err)
{
    const bool wide = of->plan->column[column].wide;
    struct st_image mask;
    struct st_numbers numbers;
    struct st_view view;
    int rc = piece->table ? st_drawn_classes(of, piece, err) : 0;
    if (!rc)
        rc = open_piece(&mask, of->work, piece, of->exif_rotate, err);
    if (rc)
        return rc;
    st_image_is_mask(&mask, &numbers);
    numbers.floored = of->plan->column[column].floored;
    if (st_image_width(&mask) != of->width || st_image_height(&mask) != of->height)
        return st_fail(err, STOKER_ECORRUPT,
                       "the mask has %d x %d pixels, but its image %d x %d: both need the same size",
                       st_image_width(&mask), st_image_height(&mask), of->width, of->height);
    rc = st_target_move(of, &mask, err);
    if (!rc)
        rc = st_image_pixels(&mask, false, false, &view, err);
    if (rc)
        return rc;
    const uint64_t pixels = (uint64_t)view.width * (uint64_t)view.height;
    const uint64_t bytes = pixels * (wide ? sizeof(int32_t) : 1); /* 31 + 31 bits, and 2 */
    void *out = st_arena_take(&of->work->arena, bytes);
    if (!out)
        return st_fail(err, STOKER_ENOMEM, "no memory for a mask of %d x %d", view.width, view.height);
    *piece = (struct st_piece){.bytes = {out, bytes},
                               .dtype = wide ? STOKER_DTYPE_I32 : STOKER_DTYPE_U8,
                               .ndim = 2,
                               .shape = {view.height, view.width}};
    return wide ? wide_numbers_of(&view, numbers.wide, out, err)
                : numbers_of(&view, numbers.wide, out, err);
}
