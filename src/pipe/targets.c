/* targets.c - which fields are targets, and all of a sample's
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/targets.h"

#include "op/boxes.h"
#include "pipe/boxes.h"
#include "pipe/images.h"
#include "pipe/masks.h"
#include "source/fields/field_list.h"

#include <stdio.h>
#include <string.h>

/* A name in a list. */
struct name {
    const char *text;
    size_t size;
};

/* ---- the plan ------------------------------------------------------------------------------------ */

static bool is_word(struct name name, const char *word)
{
    return strlen(word) == name.size && !memcmp(name.text, word, name.size);
}

static int fail_names(const struct st_columns_plan *plan, const char *option, struct name name,
                      struct stoker_error *err)
{
    struct st_name_list list = {0};
    if (plan->image >= 0 && plan->fields && is_word(name, plan->field[plan->image].name))
        return st_fail(err, STOKER_EINVAL,
                       "%s: the field %.*s is the first image, which the transforms work on; what "
                       "follows it comes after it",
                       option, (int)name.size, name.text);
    for (uint32_t k = 0; k < plan->fields; k++)
        st_name_list_add(&list, plan->field[k].name, strlen(plan->field[k].name));
    return st_fail(err, STOKER_EINVAL, "%s: no field is named \"%.*s\"; there are %s", option,
                   (int)name.size, name.text, plan->fields ? list.text : "image, label");
}

/* The column of that name. */
static int find_column(const struct st_columns_plan *plan, const char *option, struct name name,
                       uint32_t *out, struct stoker_error *err)
{
    for (uint32_t k = 0; k < plan->count; k++)
        if (is_word(name, plan->field[plan->column[k].field].name)) {
            *out = k;
            return 0;
        }
    return fail_names(plan, option, name, err);
}

static bool take_suffix(struct name *name, const char *suffix)
{
    const size_t size = strlen(suffix);
    const bool there = name->size > size && !memcmp(name->text + name->size - size, suffix, size);
    name->size -= there ? size : 0;
    return there;
}

static int add_mask(struct st_columns_plan *plan, struct name name, struct stoker_error *err)
{
    uint32_t k = 0;
    const bool floored = take_suffix(&name, "=floored"), wide = take_suffix(&name, "=wide");
    const bool image = take_suffix(&name, "=image");
    const int rc = find_column(plan, "masks", name, &k, err);
    if (rc)
        return rc;
    const struct st_field *field = &plan->field[plan->column[k].field];
    if (field->kind != ST_FIELD_IMAGE)
        return st_fail(err, STOKER_EINVAL,
                       "masks: the field %s is of type %s; a mask is an encoded image, or uint8 [H, W]",
                       field->name, st_field_kind_name(field->kind));
    if (image && (floored || wide || field->drawn))
        return st_fail(err, STOKER_EINVAL, "masks: the field %s is both a mask and an image",
                       field->name);
    plan->column[k].target = image ? ST_TARGET_IMAGE : ST_TARGET_MASK;
    plan->column[k].floored = floored;
    plan->column[k].wide = wide;
    plan->column[k].dtype = (int32_t)(image  ? plan->image_dtype
                                      : wide ? STOKER_DTYPE_I32
                                             : STOKER_DTYPE_U8);
    plan->column[k].each = 0; /* it gets the size of the finished image */
    plan->targets = true;
    return 0;
}

/* How a field is stored, as its name says after '='. */
struct stored {
    enum st_box_format format;
    bool relative, whole, points;
};

static bool take_prefix(struct name *name, const char *prefix)
{
    const size_t size = strlen(prefix);
    const bool there = name->size > size && !memcmp(name->text, prefix, size);
    if (there)
        *name = (struct name){name->text + size, name->size - size};
    return there;
}

/* Takes "=relative_cxcywh" off a name, if it is there. */
static int take_format(struct name *name, struct stored *out, struct stoker_error *err)
{
    const char *equals = memrchr(name->text, '=', name->size);
    *out = (struct stored){.format = ST_BOX_XYXY};
    if (!equals)
        return 0;
    struct name word = {equals + 1, (size_t)(name->text + name->size - equals - 1)};
    out->relative = take_prefix(&word, "relative_");
    out->whole = !out->relative && take_prefix(&word, "whole_");
    bool known = out->points = is_word(word, "points");
    for (int k = 0; !known && st_box_format_words[k]; k++) {
        out->format = (enum st_box_format)k;
        known = is_word(word, st_box_format_words[k]);
    }
    if (!known || (out->whole && out->points))
        return st_fail(err, STOKER_EINVAL,
                       "boxes: \"%.*s\": after '=' comes xyxy, xywh, cxcywh or points, or one of these "
                       "after \"relative_\", or one of the first three after \"whole_\"",
                       (int)name->size, name->text);
    name->size = (size_t)(equals - name->text);
    return 0;
}

/* Adds one name of "boxes=xywh+labels"; *first is the column of the boxes, initially UINT32_MAX. */
static int add_of_boxes(struct st_columns_plan *plan, struct name name, uint32_t *first,
                        struct stoker_error *err)
{
    struct stored stored;
    uint32_t k = 0;
    int rc = take_format(&name, &stored, err);
    if (!rc)
        rc = find_column(plan, "boxes", name, &k, err);
    if (rc)
        return rc;
    const struct st_field *field = &plan->field[plan->column[k].field];
    if (field->kind != ST_FIELD_ARRAY)
        return st_fail(err, STOKER_EINVAL, "boxes: the field %s is of type %s, not an array",
                       field->name, st_field_kind_name(field->kind));
    if (plan->column[k].target)
        return st_fail(err, STOKER_EINVAL, "boxes: the field %s is named twice", field->name);
    const bool boxes = *first == UINT32_MAX;
    const bool of_points = !boxes && plan->column[*first].points;
    if (!boxes && ((of_points && stored.points) || (stored.relative && !stored.points) || stored.whole ||
                   stored.format))
        return st_fail(err, STOKER_EINVAL,
                       "boxes: the field %s comes after '+': it belongs to boxes or key points, and is "
                       "none itself",
                       field->name);
    if (field->drawn && (boxes || of_points || stored.points))
        return st_fail(err, STOKER_EINVAL,
                       "boxes: the field %s has masks of objects: it comes after their boxes and '+'",
                       field->name);
    *first = boxes ? k : *first;
    plan->column[k].target = boxes ? ST_TARGET_BOXES : ST_TARGET_OF_BOXES;
    plan->column[k].boxes = *first;
    plan->column[k].format = stored.format;
    plan->column[k].relative = stored.relative;
    plan->column[k].whole = stored.whole;
    plan->column[k].points = stored.points;
    plan->column[k].each = 0; /* boxes may be removed */
    return 0;
}

static int add_boxes(struct st_columns_plan *plan, struct name names, struct stoker_error *err)
{
    uint32_t first = UINT32_MAX;
    const char *at = names.text, *end = at + names.size, *plus;
    int rc;
    do {
        plus = memchr(at, '+', (size_t)(end - at));
        rc = add_of_boxes(plan, (struct name){at, (size_t)((plus ? plus : end) - at)}, &first, err);
        at = plus ? plus + 1 : end;
    } while (plus && !rc);
    plan->targets = true;
    return rc;
}

static int each_name(struct st_columns_plan *plan, const char *names,
                     int (*add)(struct st_columns_plan *, struct name, struct stoker_error *),
                     struct stoker_error *err)
{
    int rc = 0;
    while (!rc && *names) {
        const struct name name = {names, strcspn(names, ",")};
        rc = add(plan, name, err);
        names += name.size + (names[name.size] != '\0');
    }
    return rc;
}

/* Masks that are drawn are drawn for the image. */
static int check_drawn(const struct st_columns_plan *plan, struct stoker_error *err)
{
    for (uint32_t k = 0; k < plan->count; k++) {
        const struct st_field *field = &plan->field[plan->column[k].field];
        if (field->drawn && !plan->column[k].target)
            return st_fail(err, STOKER_EINVAL,
                           "the field %s is made for the image: name it in %s=", field->name,
                           field->kind == ST_FIELD_IMAGE ? "masks" : "boxes");
    }
    return 0;
}

/* Crops that depend on a target need to know which. */
static int find_guide(struct st_columns_plan *plan, enum st_guide guide, struct stoker_error *err)
{
    const bool by_mask = guide == ST_GUIDE_MASK;
    uint32_t fields = 0;
    for (uint32_t k = 0; k < plan->count; k++)
        if (plan->column[k].target == (by_mask ? ST_TARGET_MASK : ST_TARGET_BOXES) &&
            !plan->column[k].points) {
            plan->guide = guide ? k + 1 : 0;
            fields++;
        }
    if (!guide || fields == 1)
        return 0;
    return st_fail(
        err, STOKER_EINVAL,
        "the crop of a step depends on the %s of the sample, of which there %s: name one field "
        "in %s=",
        by_mask ? "mask" : "boxes", fields ? "are several fields" : "is no field",
        by_mask ? "masks" : "boxes");
}

/* Nothing can follow an image that is the sum of several. */
static int check_followable(const struct st_steps *steps, struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; !rc && k < steps->count; k++)
        rc = steps->step[k].op->holds == ST_HOLDS_MIXED
                 ? st_fail(err, STOKER_EINVAL,
                           "%s: masks, boxes and key points cannot follow several changes at once: "
                           "leave it out, or masks= and boxes=",
                           steps->step[k].op->name)
                 : check_followable(&steps->step[k].inner, err);
    return rc;
}

int st_targets_plan(struct st_columns_plan *plan, const struct stoker_pipeline *pipe,
                    enum stoker_dtype image_dtype, const char *masks, const char *boxes,
                    struct stoker_error *err)
{
    masks = masks ? masks : "";
    boxes = boxes ? boxes : "";
    if ((*masks || *boxes) && (pipe->sounds || plan->image < 0))
        return st_fail(err, STOKER_EINVAL, "%s: the samples have no image that they could follow",
                       *masks ? "masks" : "boxes");
    plan->image_dtype = image_dtype;
    int rc = *masks || *boxes ? check_followable(&pipe->steps, err) : 0;
    if (!rc)
        rc = each_name(plan, masks, add_mask, err);
    if (!rc)
        rc = each_name(plan, boxes, add_boxes, err);
    if (!rc)
        rc = check_drawn(plan, err);
    return rc ? rc : find_guide(plan, pipe->guide, err);
}

/* ---- one sample ---------------------------------------------------------------------------------- */

static int find_size(struct st_targets *of, const struct st_piece *piece, struct stoker_error *err)
{
    struct st_image image;
    of->width = of->height = 0;
    if (piece->ndim) { /* an array that is no image fails as one */
        if (piece->ndim >= 2 && piece->shape[0] <= INT32_MAX && piece->shape[1] <= INT32_MAX) {
            of->height = (int32_t)piece->shape[0];
            of->width = (int32_t)piece->shape[1];
        }
        return 0;
    }
    const int rc = st_image_open(&image, of->work, piece->bytes, of->exif_rotate, err);
    if (!rc) {
        of->width = st_image_width(&image);
        of->height = st_image_height(&image);
    }
    return rc;
}

static int make_target(struct st_targets *of, uint32_t column, struct st_piece *pieces,
                       struct stoker_error *err)
{
    const struct st_columns_plan *plan = of->plan;
    const uint32_t which = of->field = plan->column[column].field;
    int rc = 0;
    if (plan->column[column].target == ST_TARGET_IMAGE)
        rc = st_image_target_make(of, &pieces[which], err);
    else if (plan->column[column].target == ST_TARGET_MASK)
        rc = st_mask_make(of, column, &pieces[which], err);
    else if (plan->column[column].target == ST_TARGET_BOXES)
        rc = st_boxes_make(of, column, pieces, err);
    if (rc && !of->step_failed) {
        char where[256];
        snprintf(where, sizeof where, "field %s", plan->field[of->field].name);
        rc = st_fail_in(err, rc, where);
    }
    return rc;
}

/* The guide first: the crops of some steps follow from it. */
int st_targets_make(struct st_targets *of, struct st_piece *pieces, struct stoker_error *err)
{
    const struct st_columns_plan *plan = of->plan;
    int rc = find_size(of, &pieces[plan->image], err);
    if (!rc && plan->guide)
        rc = make_target(of, plan->guide - 1, pieces, err);
    for (uint32_t k = 0; !rc && k < plan->count; k++)
        rc = k + 1 == plan->guide ? 0 : make_target(of, k, pieces, err);
    return rc;
}
