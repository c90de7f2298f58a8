/* pictures.c - decodes the images of a sample other than the one that the pipeline works on
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/image.h"
#include "pipe/columns.h"

#include <stdio.h>
#include <string.h>

/* Copies the view's rows without gaps, if necessary. */
static const uint8_t *without_gaps(struct st_arena *arena, const struct st_view *view)
{
    const size_t row = (size_t)view->width * (size_t)view->channels;
    if (view->stride == (ptrdiff_t)row)
        return view->data;
    uint8_t *out = st_arena_take(arena, row * (uint64_t)view->height);
    for (int32_t y = 0; out && y < view->height; y++)
        memcpy(out + (size_t)y * row, st_row(view, y), row);
    return out;
}

static int decode(struct st_work *work, bool exif_rotate, struct st_piece *piece,
                  struct stoker_error *err)
{
    struct st_image image;
    struct st_view view;
    int rc = st_image_open(&image, work, piece->bytes, exif_rotate, err);
    if (!rc)
        rc = st_image_pixels(&image, false, false, &view, err);
    if (rc)
        return rc;
    const uint8_t *pixels = without_gaps(&work->arena, &view);
    if (!pixels)
        return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d", view.width, view.height);
    *piece = (struct st_piece){
        .bytes = {pixels, (size_t)view.width * (size_t)view.height * (size_t)view.channels},
        .dtype = STOKER_DTYPE_U8,
        .ndim = 3,
        .shape = {view.height, view.width, view.channels}};
    return 0;
}

int st_pictures_decode(struct st_work *work, const struct st_columns_plan *plan, bool exif_rotate,
                       struct st_piece *pieces, struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; !rc && k < plan->count; k++) {
        const uint32_t which = plan->column[k].field;
        const struct st_field *field = &plan->field[which];
        if (field->kind != ST_FIELD_IMAGE || pieces[which].ndim || plan->column[k].target)
            continue;
        rc = decode(work, exif_rotate, &pieces[which], err);
        if (rc) {
            char where[256];
            snprintf(where, sizeof where, "field %s", field->name);
            rc = st_fail_in(err, rc, where);
        }
    }
    return rc;
}
