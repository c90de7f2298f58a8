/* border.c - borders around an image, and crops that reach into them
 *
 * Rows and columns are independent: each axis is a list that holds, for every position of the result,
 * the row or column of the image that goes there (or none: the fill). Borders around borders, and crops
 * of the whole, only change these lists, which are the lazy image's edges.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/border.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

const char *const st_pad_words[] = {"constant", "edge", "reflect", "symmetric", NULL};

enum { PADDING_MAX = 1 << 20 };

struct axis {
    int32_t *from; /* source of each position, or ST_EDGE_FILL */
    int32_t count;
};

int st_border_plan(struct st_border *border, const struct st_shape *shape,
                   const struct st_finish_spec *finish, const char *op, struct stoker_error *err)
{
    const struct st_list *padding = &border->padding, *fill = &border->fill;
    if (padding->count == 3 || padding->count > 4)
        return st_fail(err, STOKER_EINVAL, "%s: padding must be 1, 2 or 4 numbers, not %u", op,
                       padding->count);
    for (uint32_t i = 0; i < padding->count; i++)
        if (!(fabs(padding->value[i]) <= PADDING_MAX) || padding->value[i] != floor(padding->value[i]))
            return st_fail(err, STOKER_EINVAL, "%s: padding must be integers, not %g", op,
                           padding->value[i]);
    if (fill->count > 1 && fill->count != (uint32_t)shape->channels)
        return st_fail(err, STOKER_EINVAL, "%s: fill has %u values, but the image has %d channel%s", op,
                       fill->count, shape->channels, st_s((uint64_t)shape->channels));
    bool zero = true;
    for (uint32_t i = 0; i < fill->count; i++)
        zero = zero && fill->value[i] == 0;
    border->fill_refused = border->mode == ST_PAD_CONSTANT &&
                           (finish->steps || (finish->dtype != STOKER_DTYPE_U8 && !zero));
    return STOKER_OK;
}

struct st_sides st_border_sides(const struct st_border *border)
{
    const double *p = border->padding.value;
    const int32_t a = (int32_t)p[0], b = (int32_t)p[1];
    switch (border->padding.count) {
    case 1:
        return (struct st_sides){a, a, a, a};
    case 2:
        return (struct st_sides){a, b, a, b};
    case 4:
        return (struct st_sides){a, b, (int32_t)p[2], (int32_t)p[3]};
    default:
        return (struct st_sides){0};
    }
}

/* Which of `count` positions is at position `i` when they are extended beyond both ends. */
static int32_t beyond(int64_t i, int32_t count, enum st_pad_mode mode)
{
    if (mode == ST_PAD_CONSTANT)
        return ST_EDGE_FILL;
    if (mode == ST_PAD_EDGE || count == 1)
        return i < 0 ? 0 : count - 1;
    /* Back and forth: reflect does not repeat the ends, symmetric does. */
    const int64_t period = mode == ST_PAD_REFLECT ? 2 * ((int64_t)count - 1) : 2 * (int64_t)count;
    i %= period;
    if (i < 0)
        i += period;
    return (int32_t)(i < count ? i : mode == ST_PAD_REFLECT ? period - i : period - 1 - i);
}

/* Adds `before` and `after` positions around the existing ones, or removes that many if negative. */
static bool pad_axis(struct axis *axis, int32_t before, int32_t after, enum st_pad_mode mode,
                     struct st_arena *arena)
{
    if (before < 0 || after < 0) {
        const int64_t left = (int64_t)axis->count + (before < 0 ? before : 0) + (after < 0 ? after : 0);
        if (left <= 0) {
            axis->count = 0;
            return true;
        }
        axis->from += before < 0 ? -before : 0;
        axis->count = (int32_t)left;
    }
    before = before < 0 ? 0 : before;
    after = after < 0 ? 0 : after;
    if (!before && !after)
        return true;
    const int64_t count = (int64_t)axis->count + before + after;
    if (count > INT32_MAX)
        return false;
    int32_t *from = st_arena_take(arena, (uint64_t)count * sizeof *from);
    if (!from)
        return false;
    memcpy(from + before, axis->from, (size_t)axis->count * sizeof *from);
    for (int32_t i = 0; i < count; i++)
        if (i < before || i >= before + axis->count) {
            const int32_t place = beyond((int64_t)i - before, axis->count, mode);
            from[i] = place == ST_EDGE_FILL ? ST_EDGE_FILL : axis->from[place];
        }
    *axis = (struct axis){from, (int32_t)count};
    return true;
}

static bool plain_axis(struct axis *axis, int32_t count, struct st_arena *arena)
{
    *axis = (struct axis){st_arena_take(arena, (uint64_t)count * sizeof *axis->from), count};
    for (int32_t i = 0; axis->from && i < count; i++)
        axis->from[i] = i;
    return axis->from != NULL;
}

static bool is_inside(const struct axis *axis)
{
    int32_t start;
    return st_edge_run(axis->from, axis->count, &start) == axis->count;
}

static bool cut_axis(struct axis *axis, uint32_t first, uint32_t count)
{
    if (first > (uint32_t)axis->count || count > (uint32_t)axis->count - first)
        return false;
    *axis = (struct axis){axis->from + first, (int32_t)count};
    return true;
}

/* Boxes cannot be in a border that repeats the image. */
static int pad_boxes(struct st_image *image, const struct st_border *border,
                     const struct st_sides *sides, uint32_t count, const struct st_region *window,
                     const char *op, struct stoker_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct st_sides *s = &sides[i];
        const int64_t width = (int64_t)st_image_width(image) + s->left + s->right,
                      height = (int64_t)st_image_height(image) + s->top + s->bottom;
        if (!s->left && !s->top && !s->right && !s->bottom)
            continue;
        if (border->mode != ST_PAD_CONSTANT)
            return st_fail(err, STOKER_EINVAL, "%s: boxes cannot follow padding_mode=%s: use constant",
                           op, st_pad_words[border->mode]);
        if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
            return st_fail(err, STOKER_EINVAL, "%s: an image of %lld x %lld pixels is not possible", op,
                           (long long)width, (long long)height);
        st_boxes_shift(image->boxes, (float)s->left, (float)s->top);
        st_boxes_clamp(image->boxes, (int32_t)width, (int32_t)height);
        st_image_of_boxes(image, image->work, (int32_t)width, (int32_t)height, image->boxes);
    }
    return window ? st_image_crop(image, *window, err) : STOKER_OK;
}

int st_image_pad(struct st_image *image, const struct st_border *border, const struct st_sides *sides,
                 uint32_t count, const struct st_region *window, const char *op,
                 struct stoker_error *err)
{
    struct st_arena *arena = &image->work->arena;
    struct axis columns, rows;
    if (image->boxes)
        return pad_boxes(image, border, sides, count, window, op, err);
    bool fits = plain_axis(&columns, st_image_width(image), arena) &&
                plain_axis(&rows, st_image_height(image), arena);
    for (uint32_t i = 0; fits && i < count; i++) {
        const enum st_pad_mode mode = (enum st_pad_mode)border->mode;
        fits = pad_axis(&columns, sides[i].left, sides[i].right, mode, arena) &&
               pad_axis(&rows, sides[i].top, sides[i].bottom, mode, arena);
        if (fits && (!columns.count || !rows.count))
            return st_fail(err, STOKER_EINVAL, "%s: the negative padding removes the whole image", op);
    }
    if (!fits)
        return st_fail(err, STOKER_ENOMEM, "%s: no memory for the padded image", op);
    if (window &&
        !(cut_axis(&columns, window->x, window->width) && cut_axis(&rows, window->y, window->height)))
        return st_fail(err, STOKER_EINVAL, "%s: the crop does not lie inside the padded image", op);

    const uint64_t limit = image->work->decoder.pixel_limit;
    if (limit && (uint64_t)columns.count * (uint64_t)rows.count > limit)
        return st_fail(err, STOKER_ELIMIT, "%s: %d x %d exceeds pixel_limit (%llu pixels)", op,
                       columns.count, rows.count, (unsigned long long)limit);
    if (is_inside(&columns) && is_inside(&rows)) {
        const struct st_region inside = {(uint32_t)columns.from[0], (uint32_t)rows.from[0],
                                         (uint32_t)columns.count, (uint32_t)rows.count};
        return st_image_crop(image, inside, err);
    }
    if (border->fill_refused)
        return st_fail(err, STOKER_EINVAL,
                       "%s: the image must be padded, but its floats cannot be filled "
                       "with this value; move it before to_tensor and normalize",
                       op);
    struct st_edges edges = {columns.from, rows.from, columns.count, rows.count, {0}};
    for (uint32_t c = 0; c < sizeof edges.fill; c++)
        edges.fill[c] = image->numbers ? (uint8_t)border->mask_fill
                                       : (uint8_t)border->fill.value[border->fill.count == 1 ? 0 : c];
    return st_image_surround(image, &edges, err);
}
