/* border.c - borders around an image, and crops that reach into them
 *
 * Rows and columns are independent: each axis is a list that holds, for every position of the result,
 * the row or column of the image that goes there (or none: the fill). Borders around borders, and a crop
 * of the whole, only change these lists; pixels are copied once, at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/border.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

const char *const st_pad_words[] = {"constant", "edge", "reflect", "symmetric", NULL};

enum { FILL = -1, PADDING_MAX = 1 << 20 };

struct axis {
    int32_t *from; /* source of each position, or FILL */
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
        return FILL;
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
            from[i] = place == FILL ? FILL : axis->from[place];
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

/* The part of the image that an axis needs; false if it is all fill. */
static bool axis_span(const struct axis *axis, uint32_t *first, uint32_t *count)
{
    int32_t low = INT32_MAX, high = -1;
    for (int32_t i = 0; i < axis->count; i++)
        if (axis->from[i] != FILL) {
            low = axis->from[i] < low ? axis->from[i] : low;
            high = axis->from[i] > high ? axis->from[i] : high;
        }
    *first = (uint32_t)low;
    *count = high < 0 ? 0 : (uint32_t)(high - low + 1);
    return high >= 0;
}

/* The first longest run of positions that are also adjacent in the image. */
static struct axis main_run(const struct axis *axis, int32_t *start)
{
    int32_t best = 0, best_start = 0;
    for (int32_t i = 0; i < axis->count;) {
        int32_t end = i + 1;
        while (end < axis->count && axis->from[i] != FILL && axis->from[end] == axis->from[end - 1] + 1)
            end++;
        if (axis->from[i] != FILL && end - i > best) {
            best = end - i;
            best_start = i;
        }
        i = end;
    }
    *start = best_start;
    return (struct axis){axis->from + best_start, best};
}

/* ---- pixels ------------------------------------------------------------------------------------- */

/* Positions whose pixels are the fill, or adjacent in the image, forwards or backwards, or the same. */
struct span {
    int32_t to, count;
    int32_t from; /* or FILL */
    int32_t step; /* 1, -1 or 0 */
};

static struct span span_at(const struct axis *axis, int32_t to)
{
    const int32_t *from = axis->from + to, left = axis->count - to;
    struct span span = {.to = to, .count = 1, .from = from[0]};
    if (left > 1 && from[0] != FILL && from[1] != FILL && from[1] - from[0] <= 1 &&
        from[0] - from[1] <= 1)
        span.step = from[1] - from[0];
    while (span.count < left && (from[0] == FILL || from[span.count] != FILL) &&
           from[span.count] == from[span.count - 1] + span.step)
        span.count++;
    return span;
}

/* Divides an axis; NULL: out of memory. */
static const struct span *spans_of(const struct axis *axis, struct st_arena *arena, int32_t *count)
{
    *count = 0;
    for (int32_t to = 0; to < axis->count; to += span_at(axis, to).count)
        ++*count;
    struct span *spans = st_arena_take(arena, (uint64_t)*count * sizeof *spans);
    for (int32_t i = 0, to = 0; spans && i < *count; to += spans[i++].count)
        spans[i] = span_at(axis, to);
    return spans;
}

/* Copies what is filled already behind it, twice as much each time. */
static void fill_row(uint8_t *row, int32_t width, const uint8_t *fill, size_t channels)
{
    const size_t bytes = (size_t)width * channels;
    memcpy(row, fill, channels);
    for (size_t done = channels, more; done < bytes; done += more) {
        more = done < bytes - done ? done : bytes - done;
        memcpy(row + done, row, more);
    }
}

/* Pixels from right to left. Of three channels, a word at a time: its fourth byte is overwritten by the
 * next one. Nothing behind the row's last pixel, which may be the first, is read. */
static void put_back(uint8_t *to, const uint8_t *pixel, int32_t count, size_t channels)
{
    for (int32_t x = 0; x < count; x++, to += channels, pixel -= channels)
        if (channels == 3 && x > 0 && x < count - 1)
            memcpy(to, pixel, 4);
        else
            for (size_t c = 0; c < channels; c++)
                to[c] = pixel[c];
}

/* The row begins with pixel `corner` of the image. */
static void put_span(uint8_t *out, const uint8_t *row, struct span span, uint32_t corner,
                     const uint8_t *fill, size_t channels)
{
    uint8_t *to = out + (size_t)span.to * channels;
    const uint8_t *pixel = span.from == FILL ? fill : row + ((uint32_t)span.from - corner) * channels;
    if (span.step == 1)
        memcpy(to, pixel, (size_t)span.count * channels);
    else if (span.step == 0)
        fill_row(to, span.count, pixel, channels);
    else
        put_back(to, pixel, span.count, channels);
}

/* `in` is `corner` of the image that the axes refer to. False: out of memory. */
static bool compose(const struct st_view *out, const struct st_view *in, struct st_region corner,
                    const struct axis *columns, const struct axis *rows, const uint8_t *fill,
                    struct st_arena *arena)
{
    const size_t channels = (size_t)out->channels;
    int32_t count;
    const struct span *spans = spans_of(columns, arena, &count);
    if (!spans)
        return false;
    for (int32_t y = 0; y < rows->count; y++) {
        uint8_t *to = st_row(out, y);
        if (rows->from[y] == FILL) {
            fill_row(to, columns->count, fill, channels);
            continue;
        }
        const uint8_t *row = st_row(in, rows->from[y] - (int32_t)corner.y);
        st_view_ahead(in, rows->from[y] - (int32_t)corner.y);
        for (int32_t i = 0; i < count; i++)
            put_span(to, row, spans[i], corner.x, fill, channels);
    }
    return true;
}

/* Known only once a mask has been decoded, or is not needed. */
static void fill_of(const struct st_image *image, const struct st_border *border, uint8_t fill[4])
{
    const struct st_list *given = &border->fill;
    for (uint32_t c = 0; c < 4; c++)
        fill[c] = given->count == 1 ? (uint8_t)given->value[0] : (uint8_t)given->value[c];
    if (image->numbers)
        st_image_number(image, (uint8_t)border->mask_fill, fill);
}

/* Makes the visible part of the image, and the border around it. */
static int compose_image(struct st_image *image, const struct st_border *border,
                         const struct axis *columns, const struct axis *rows, struct stoker_error *err)
{
    const int32_t channels = st_image_channels(image);
    uint8_t fill[4];
    struct st_region seen = {0};
    struct st_view in = {0}, out;
    if (axis_span(columns, &seen.x, &seen.width) && axis_span(rows, &seen.y, &seen.height)) {
        int rc = st_image_crop(image, seen, err);
        if (rc >= 0)
            rc = st_image_pixels(image, false, false, &in, err);
        if (rc < 0)
            return rc;
    }
    fill_of(image, border, fill);
    struct st_arena *arena = &image->work->arena;
    if (!st_view_take(&out, arena, columns->count, rows->count, channels) ||
        (in.data && !compose(&out, &in, seen, columns, rows, fill, arena)))
        return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d pixels", columns->count,
                       rows->count);
    if (!in.data)
        for (int32_t y = 0; y < out.height; y++)
            fill_row(st_row(&out, y), out.width, fill, (size_t)channels);
    st_image_set(image, out, false);
    return STOKER_OK;
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
    int32_t x, y;
    if (main_run(&columns, &x).count == columns.count && main_run(&rows, &y).count == rows.count) {
        const struct st_region inside = {(uint32_t)columns.from[0], (uint32_t)rows.from[0],
                                         (uint32_t)columns.count, (uint32_t)rows.count};
        return st_image_crop(image, inside, err);
    }
    if (border->fill_refused)
        return st_fail(err, STOKER_EINVAL,
                       "%s: the image must be padded, but its floats cannot be filled "
                       "with this value; move it before to_tensor and normalize",
                       op);
    return compose_image(image, border, &columns, &rows, err);
}
