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
                        piece->ndim == 3 ? piece->shape[2] : 1, err);
}

/* The pixels' numbers, which must be those of grey pixels and fit into a byte. */
static int numbers_of(const struct st_view *view, bool wide, uint8_t *out, struct stoker_error *err)
{
    for (int32_t y = 0; y < view->height; y++) {
        const uint8_t *rgb = st_row(view, y);
        uint8_t bad = 0;
        if (wide)
            for (int32_t x = 0; x < view->width; x++, rgb += 3)
                *out++ = rgb[0], bad |= rgb[1];
        else
            for (int32_t x = 0; x < view->width; x++, rgb += 3)
                *out++ = rgb[0], bad |= (uint8_t)((rgb[0] ^ rgb[1]) | (rgb[0] ^ rgb[2]));
        if (bad && wide)
            return st_fail(err, STOKER_EUNSUPPORTED,
                           "row %d of the mask has numbers above 255: masks have 8 bits, so store "
                           "fewer classes, or read the field as an array",
                           y);
        if (bad)
            return st_fail(err, STOKER_EUNSUPPORTED,
                           "row %d of the mask has colours: store the numbers of classes, as a PNG "
                           "with grey levels or a palette",
                           y);
    }
    return 0;
}

int st_mask_make(struct st_targets *of, struct st_piece *piece, bool floored, struct stoker_error *err)
{
    struct st_image mask;
    struct st_numbers numbers;
    struct st_view view;
    int rc = piece->table ? st_drawn_classes(of, piece, err) : 0;
    if (!rc)
        rc = open_piece(&mask, of->work, piece, of->exif_rotate, err);
    if (rc)
        return rc;
    st_image_is_mask(&mask, &numbers);
    numbers.floored = floored;
    if (st_image_width(&mask) != of->width || st_image_height(&mask) != of->height)
        return st_fail(err, STOKER_ECORRUPT,
                       "the mask has %d x %d pixels, but its image %d x %d: both need the same size",
                       st_image_width(&mask), st_image_height(&mask), of->width, of->height);
    rc = st_target_move(of, &mask, err);
    if (!rc)
        rc = st_image_pixels(&mask, false, false, &view, err);
    if (rc)
        return rc;
    const uint64_t bytes = (uint64_t)view.width * (uint64_t)view.height;
    uint8_t *out = st_arena_take(&of->work->arena, bytes);
    if (!out)
        return st_fail(err, STOKER_ENOMEM, "no memory for a mask of %d x %d", view.width, view.height);
    *piece = (struct st_piece){
        .bytes = {out, bytes}, .dtype = STOKER_DTYPE_U8, .ndim = 2, .shape = {view.height, view.width}};
    return numbers_of(&view, numbers.wide, out, err);
}
