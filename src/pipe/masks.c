/* masks.c - the masks of a sample: moved like its image, with the same draws
 *
 * The random draws of a step follow from the sample and the step's number. So the steps are run once
 * more for each mask, with the same numbers, on an image that is a mask: what moves pixels moves them,
 * and what changes values leaves them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/masks.h"

#include "source/fields/field_list.h"

#include <stdio.h>
#include <string.h>

/* ---- the plan ------------------------------------------------------------------------------------ */

static int fail_names(const struct st_columns_plan *plan, const char *name, size_t size,
                      struct stoker_error *err)
{
    struct st_name_list list = {0};
    for (uint32_t k = 0; k < plan->fields; k++)
        st_name_list_add(&list, plan->field[k].name, strlen(plan->field[k].name));
    return st_fail(
        err, STOKER_EINVAL, "masks: no field is named \"%.*s\"; there %s %s", (int)size, name,
        plan->fields ? "are" : "is only an image:", plan->fields ? list.text : "image, label");
}

static int add_mask(struct st_columns_plan *plan, const char *name, size_t size,
                    struct stoker_error *err)
{
    for (uint32_t k = 0; k < plan->count; k++) {
        const struct st_field *field = &plan->field[plan->column[k].field];
        if (strlen(field->name) != size || memcmp(field->name, name, size))
            continue;
        if (field->kind != ST_FIELD_IMAGE)
            return st_fail(err, STOKER_EINVAL,
                           "masks: the field %s is of type %s; a mask is an encoded image, or uint8 "
                           "[H, W]",
                           field->name, st_field_kind_name(field->kind));
        plan->column[k].mask = true;
        plan->column[k].each = 0; /* it gets the size of the finished image */
        plan->masks = true;
        return 0;
    }
    if (plan->image >= 0 && strlen(plan->field[plan->image].name) == size &&
        !memcmp(plan->field[plan->image].name, name, size))
        return st_fail(err, STOKER_EINVAL,
                       "masks: the field %.*s is the first image, which the transforms work on; a mask "
                       "comes after it",
                       (int)size, name);
    return fail_names(plan, name, size, err);
}

int st_masks_plan(struct st_columns_plan *plan, const char *names, bool sounds, struct stoker_error *err)
{
    int rc = 0;
    if (names && *names && (sounds || plan->image < 0))
        return st_fail(err, STOKER_EINVAL, "masks: the samples have no image that a mask could follow");
    while (!rc && names && *names) {
        const size_t size = strcspn(names, ",");
        rc = add_mask(plan, names, size, err);
        names += size + (names[size] != '\0');
    }
    return rc;
}

/* ---- one sample ---------------------------------------------------------------------------------- */

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

/* The size of the sample's image. */
static int size_of(const struct st_masks_of *of, const struct st_piece *piece, int32_t *width,
                   int32_t *height, struct stoker_error *err)
{
    struct st_image image;
    if (piece->ndim >= 2) {
        *height = piece->shape[0] < INT32_MAX ? (int32_t)piece->shape[0] : 0;
        *width = piece->shape[1] < INT32_MAX ? (int32_t)piece->shape[1] : 0;
        return 0; /* 0 and arrays that are no images: the image itself fails */
    }
    const int rc = st_image_open(&image, of->work, piece->bytes, of->exif_rotate, err);
    if (!rc) {
        *width = st_image_width(&image);
        *height = st_image_height(&image);
    }
    return rc;
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

static int make_mask(const struct st_masks_of *of, int32_t width, int32_t height, struct st_piece *piece,
                     struct stoker_error *err)
{
    struct st_image mask;
    struct st_numbers numbers;
    struct st_view view;
    int rc = open_piece(&mask, of->work, piece, of->exif_rotate, err);
    if (rc)
        return rc;
    st_image_is_mask(&mask, &numbers);
    if (st_image_width(&mask) != width || st_image_height(&mask) != height)
        return st_fail(err, STOKER_ECORRUPT,
                       "the mask has %d x %d pixels, but its image %d x %d: both need the same size",
                       st_image_width(&mask), st_image_height(&mask), width, height);
    rc = st_steps_run(of->steps, of->rng_key, &mask, err);
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

int st_masks_make(const struct st_masks_of *of, struct st_piece *pieces, struct stoker_error *err)
{
    const struct st_columns_plan *plan = of->plan;
    const struct st_piece *whole = &pieces[plan->image];
    int32_t width = 0, height = 0;
    int rc = size_of(of, whole, &width, &height, err);
    for (uint32_t k = 0; !rc && k < plan->count; k++) {
        const uint32_t which = plan->column[k].field;
        if (!plan->column[k].mask)
            continue;
        rc = make_mask(of, width, height, &pieces[which], err);
        if (rc) {
            char where[256];
            snprintf(where, sizeof where, "field %s", plan->field[which].name);
            rc = st_fail_in(err, rc, where);
        }
    }
    return rc;
}
