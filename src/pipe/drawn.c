/* drawn.c - masks that are drawn from the shapes of a sample's objects
 *
 * Masks of objects are moved eight at a time, each as one bit of a plane's pixels: all that moves masks
 * takes the nearest pixel, so bits do not mix. Memory that only one of them needs is released at once,
 * so that their number does not matter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/drawn.h"
#include "codec/mask/shape.h"
#include "source/annotated/annotated.h"

#include <stdio.h>

enum { TOGETHER = 8 };

static int no_memory(int32_t width, int32_t height, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "no memory for masks of %d x %d", width, height);
}

static int check_size(const struct st_targets *of, const struct st_annotated_image *image,
                      struct stoker_error *err)
{
    if ((!image->width || image->width == (uint32_t)of->width) &&
        (!image->height || image->height == (uint32_t)of->height))
        return 0;
    return st_fail(err, STOKER_ECORRUPT,
                   "the annotations are those of an image of %u x %u pixels, but it has %d x %d",
                   image->width, image->height, of->width, of->height);
}

/* A plane of the image's size without shapes. */
static int take_plane(const struct st_targets *of, struct st_view *out, struct stoker_error *err)
{
    return st_view_take(out, &of->work->arena, of->width, of->height, 1)
               ? 0
               : no_memory(of->width, of->height, err);
}

static void clear_plane(const struct st_view *plane)
{
    for (int32_t y = 0; y < plane->height; y++)
        memset(st_row(plane, y), 0, (size_t)plane->width);
}

/* Draws object `k` of the image. */
static int draw(const struct st_targets *of, const struct st_piece *piece, uint64_t k,
                const struct st_view *plane, struct st_brush brush, struct stoker_error *err)
{
    const struct st_object *object = st_annotated_object(piece->table, (uint64_t)piece->whole, k);
    struct st_arena *arena = &of->work->arena;
    const struct st_arena_mark before = st_arena_mark(arena);
    struct st_object_shape shape;
    int rc = st_annotated_shape(&shape, piece->table, object, (uint32_t)of->width, (uint32_t)of->height,
                                arena, err);
    if (!rc)
        rc = st_shape_draw(&shape, plane, brush, arena, err);
    st_arena_rewind(arena, before);
    if (rc) {
        char where[64];
        const bool known = object->id != 0; /* YOLO's have none */
        snprintf(where, sizeof where, known ? "annotation %lld" : "object %lld",
                 known ? (long long)object->id : (long long)k + 1);
        rc = st_fail_in(err, rc, where);
    }
    return rc;
}

/* ---- classes -------------------------------------------------------------------------------------- */

/* The objects that are crowds, or the others, each over those before it. */
static int draw_classes(const struct st_targets *of, const struct st_piece *piece, bool crowds,
                        const struct st_view *plane, struct stoker_error *err)
{
    const struct st_annotated *table = piece->table;
    const uint64_t image = (uint64_t)piece->whole;
    int rc = 0;
    for (uint64_t k = 0; k < table->images[image].count && !rc; k++) {
        const struct st_object *object = st_annotated_object(table, image, k);
        const int64_t number = object->label + table->from_zero; /* checked when the table was read */
        if (((object->flags & ST_OBJECT_CROWD) != 0) == crowds)
            rc = draw(of, piece, k, plane, (struct st_brush){(uint8_t)number}, err);
    }
    return rc;
}

int st_drawn_classes(const struct st_targets *of, struct st_piece *piece, struct stoker_error *err)
{
    struct st_view plane;
    int rc = check_size(of, &piece->table->images[piece->whole], err);
    if (!rc)
        rc = take_plane(of, &plane, err);
    if (rc)
        return rc;
    clear_plane(&plane);
    rc = draw_classes(of, piece, true, &plane, err);
    if (!rc)
        rc = draw_classes(of, piece, false, &plane, err);
    *piece = (struct st_piece){.bytes = {plane.data, (size_t)plane.width * (size_t)plane.height},
                               .dtype = STOKER_DTYPE_U8,
                               .ndim = 2,
                               .shape = {plane.height, plane.width}};
    return rc;
}

/* ---- objects -------------------------------------------------------------------------------------- */

/* Mask k from bit k of the pixels. */
static void take_masks(uint8_t *out, const struct st_view *bits, uint32_t count)
{
    const size_t width = (size_t)bits->width, size = width * (size_t)bits->height;
    for (int32_t y = 0; y < bits->height; y++, out += width) {
        const uint8_t *row = st_row(bits, y);
        for (size_t x = 0; x < width; x++)
            out[x] = row[3 * x];
        for (uint32_t k = count; k-- > 0;) /* the first one last: its row has all bits */
            for (size_t x = 0; x < width; x++)
                out[k * size + x] = out[x] >> k & 1;
    }
}

/* The masks of up to eight boxes. */
static int draw_together(struct st_targets *of, const struct st_piece *piece, const uint32_t *which,
                         uint32_t count, const struct st_view *plane, struct st_view *out,
                         struct stoker_error *err)
{
    struct st_image image;
    struct st_numbers numbers;
    const struct st_bytes bytes = {plane->data, (size_t)plane->width * (size_t)plane->height};
    int rc = 0;
    clear_plane(plane);
    for (uint32_t k = 0; k < count && !rc; k++) {
        const uint8_t bit = (uint8_t)(1u << k);
        rc = draw(of, piece, which[k], plane, (struct st_brush){bit, (uint8_t)~bit}, err);
    }
    if (!rc)
        rc = st_image_raw(&image, of->work, bytes, plane->width, plane->height, 1, false, err);
    if (rc)
        return rc;
    st_image_is_mask(&image, &numbers);
    numbers.bits = true;
    rc = st_target_move(of, &image, err);
    return rc ? rc : st_image_pixels(&image, false, false, out, err);
}

static int check_result(const struct st_boxes *boxes, int32_t width, int32_t height, uint64_t *bytes,
                        struct stoker_error *err)
{
    enum { MOST = 1 << 30 };
    if (ST_PRODUCT(bytes, boxes->count, (uint64_t)width, (uint64_t)height) && *bytes <= MOST)
        return 0;
    return st_fail(err, STOKER_ELIMIT,
                   "masks of %d x %d pixels for %llu objects take more than %d MiB: make the image "
                   "smaller, or request masks of classes",
                   width, height, (unsigned long long)boxes->count, MOST >> 20);
}

int st_drawn_objects(struct st_targets *of, struct st_piece *piece, const struct st_boxes *boxes,
                     int32_t width, int32_t height, struct stoker_error *err)
{
    struct st_arena *arena = &of->work->arena;
    struct st_view plane, bits;
    uint64_t bytes;
    int rc = check_size(of, &piece->table->images[piece->whole], err);
    if (!rc)
        rc = check_result(boxes, width, height, &bytes, err);
    if (rc)
        return rc;
    uint8_t *out = st_arena_take(arena, bytes);
    rc = out ? take_plane(of, &plane, err) : no_memory(width, height, err);
    for (uint64_t k = 0; k < boxes->count && !rc; k += TOGETHER) {
        const struct st_arena_mark before = st_arena_mark(arena);
        const uint64_t left = boxes->count - k;
        const uint32_t count = left < TOGETHER ? (uint32_t)left : TOGETHER;
        rc = draw_together(of, piece, boxes->which + k, count, &plane, &bits, err);
        if (!rc && (bits.width != width || bits.height != height))
            rc = st_fail(err, STOKER_EINVAL, "a step makes masks of another size than boxes");
        if (!rc)
            take_masks(out + k * ((uint64_t)width * (uint64_t)height), &bits, count);
        st_arena_rewind(arena, before);
    }
    *piece = (struct st_piece){.bytes = {out, bytes},
                               .dtype = STOKER_DTYPE_U8,
                               .ndim = 3,
                               .shape = {(int64_t)boxes->count, height, width}};
    return rc;
}
