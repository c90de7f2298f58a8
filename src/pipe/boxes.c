/* boxes.c - the boxes and key points of a sample, and what belongs to boxes: moved like its image, with
 * the same draws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/boxes.h"
#include "pipe/drawn.h"

#include <math.h>
#include <string.h>

/* The boxes of a piece, in memory of the arena. */
static int take_boxes(struct st_boxes *out, const struct st_piece *piece, struct st_arena *arena,
                      struct stoker_error *err)
{
    if (piece->dtype != STOKER_DTYPE_F32 || piece->ndim != 2 || piece->shape[1] != 4 ||
        piece->shape[0] < 0 || (uint64_t)piece->shape[0] > UINT32_MAX ||
        piece->bytes.size != (uint64_t)piece->shape[0] * sizeof *out->box)
        return st_fail(err, STOKER_ECORRUPT,
                       "boxes are float32 [N, 4]: left, top, right and bottom, in pixels, unless "
                       "another format is given");
    out->format = ST_BOX_XYXY;
    out->count = (uint64_t)piece->shape[0];
    out->box = st_arena_take(arena, (out->count + 1) * sizeof *out->box);
    out->which = st_arena_take(arena, (out->count + 1) * sizeof *out->which);
    if (!out->box || !out->which)
        return st_fail(err, STOKER_ENOMEM, "no memory for %llu boxes", (unsigned long long)out->count);
    if (out->count)
        memcpy(out->box, piece->bytes.data, piece->bytes.size);
    for (uint32_t k = 0; k < out->count; k++)
        out->which[k] = k;
    for (uint64_t k = 0; k < out->count && out->whole; k++)
        for (int side = 0; side < 4; side++)
            out->box[k][side] = truncf(out->box[k][side]);
    return 0;
}

/* Those of `had` boxes or key points that are left. */
struct left {
    const char *what;
    uint64_t had, count;
    const uint32_t *which; /* [count]; NULL if all are left */
};

/* Leaves the values of those that are left. */
static int choose_values(const struct st_targets *of, const struct st_field *field,
                         struct st_piece *piece, const struct left *left, struct stoker_error *err)
{
    if (piece->ndim < 1 || (uint64_t)piece->shape[0] != left->had)
        return st_fail(err, STOKER_ECORRUPT,
                       "there are %llu %s, but the field %s has %lld values: one for each is needed",
                       (unsigned long long)left->had, left->what, field->name,
                       (long long)(piece->ndim < 1 ? 1 : piece->shape[0]));
    if (left->count == left->had)
        return 0;
    const size_t each = piece->bytes.size / left->had; /* some were removed, so there were some */
    uint8_t *out = st_arena_take(&of->work->arena, left->count * each + 1);
    if (!out)
        return st_fail(err, STOKER_ENOMEM, "no memory for the values of %llu %s",
                       (unsigned long long)left->count, left->what);
    for (uint64_t k = 0; k < left->count; k++)
        memcpy(out + k * each, piece->bytes.data + left->which[k] * each, each);
    piece->bytes = (struct st_bytes){out, left->count * each};
    piece->shape[0] = (int64_t)left->count;
    return 0;
}

/* Moves what came from a piece, by all steps; *image is then of the size that these make of it. */
static int move_boxes(struct st_targets *of, uint32_t column, struct st_boxes *boxes,
                      struct st_image *image, struct stoker_error *err)
{
    st_image_of_boxes(image, of->work, of->width, of->height, boxes);
    if (of->plan->column[column].relative)
        st_boxes_resize(boxes, (const int32_t[]){1, 1}, (const int32_t[]){of->width, of->height});
    st_boxes_to_corners(boxes, of->plan->column[column].format);
    return st_target_move(of, image, err);
}

/* Key points that belong to no boxes can be removed one by one if each is a row, [N, 2] or [N, 3]. */
static int count_points(struct st_boxes *boxes, const struct st_piece *piece, struct st_arena *arena,
                        struct stoker_error *err)
{
    if (piece->ndim != 2 || boxes->points != (uint64_t)piece->shape[0] || boxes->points > UINT32_MAX)
        return 0;
    boxes->which = st_arena_take(arena, (boxes->points + 1) * sizeof *boxes->which);
    if (!boxes->which)
        return st_fail(err, STOKER_ENOMEM, "no memory for %llu key points",
                       (unsigned long long)boxes->points);
    for (uint32_t k = 0; k < boxes->points; k++)
        boxes->which[k] = k;
    return 0;
}

/* `alone`: they belong to no boxes. */
static int move_points(struct st_targets *of, uint32_t column, struct st_piece *piece, bool alone,
                       struct st_boxes *boxes, struct stoker_error *err)
{
    struct st_image image;
    const int32_t last = piece->ndim - 1;
    const uint64_t each = last > 0 && piece->shape[last] > 0 ? (uint64_t)piece->shape[last] : 0;
    if (piece->dtype != STOKER_DTYPE_F32 || each < 2 || each > 3 ||
        piece->bytes.size % (each * sizeof(float)))
        return st_fail(err, STOKER_ECORRUPT,
                       "key points are float32 [..., 2] or [..., 3]: x, y and, with 3, visibility");
    float *at = st_arena_take(&of->work->arena, piece->bytes.size + 1);
    if (!at)
        return st_fail(err, STOKER_ENOMEM, "no memory for %zu bytes of key points", piece->bytes.size);
    if (piece->bytes.size)
        memcpy(at, piece->bytes.data, piece->bytes.size);
    piece->bytes.data = (const uint8_t *)at;
    *boxes = (struct st_boxes){
        .point = at, .points = piece->bytes.size / (each * sizeof(float)), .each = (uint32_t)each};
    const int rc = alone ? count_points(boxes, piece, &of->work->arena, err) : 0;
    return rc ? rc : move_boxes(of, column, boxes, &image, err);
}

/* Key points that belong to no boxes, and what belongs to them. */
static int make_points(struct st_targets *of, uint32_t column, struct st_piece *pieces,
                       struct stoker_error *err)
{
    const struct st_columns_plan *plan = of->plan;
    struct st_piece *piece = &pieces[plan->column[column].field];
    struct st_boxes boxes;
    int rc = move_points(of, column, piece, true, &boxes, err);
    if (rc)
        return rc;
    struct left left = {.what = "key points", .had = (uint64_t)piece->shape[0]};
    left.count = boxes.which ? boxes.points : left.had;
    left.which = boxes.which;
    for (uint32_t k = 0; !rc && k < plan->count; k++)
        if (plan->column[k].target == ST_TARGET_OF_BOXES && plan->column[k].boxes == column)
            rc = choose_values(of, &plan->field[plan->column[k].field], &pieces[plan->column[k].field],
                               &left, err);
    if (rc || !boxes.which)
        return rc;
    piece->bytes.size = boxes.points * boxes.each * sizeof *boxes.point;
    piece->shape[0] = (int64_t)boxes.points;
    return 0;
}

int st_boxes_make(struct st_targets *of, uint32_t column, struct st_piece *pieces,
                  struct stoker_error *err)
{
    const struct st_columns_plan *plan = of->plan;
    struct st_piece *piece = &pieces[plan->column[column].field];
    struct st_boxes boxes = {.whole = plan->column[column].whole}, points;
    struct st_image image;
    if (plan->column[column].points)
        return make_points(of, column, pieces, err);
    int rc = take_boxes(&boxes, piece, &of->work->arena, err);
    if (rc)
        return rc;
    struct left left = {.what = "boxes", .had = boxes.count};
    rc = move_boxes(of, column, &boxes, &image, err);
    left.count = boxes.count;
    left.which = boxes.which;
    for (uint32_t k = 0; !rc && k < plan->count; k++) {
        if (plan->column[k].target != ST_TARGET_OF_BOXES || plan->column[k].boxes != column)
            continue;
        struct st_piece *values = &pieces[plan->column[k].field];
        const struct st_field *field = &plan->field[plan->column[k].field];
        of->field = values->table ? plan->column[k].field : of->field;
        if (plan->column[k].points)
            rc = move_points(of, k, values, false, &points, err);
        if (!rc)
            rc = values->table ? st_drawn_objects(of, values, &boxes, st_image_width(&image),
                                                  st_image_height(&image), err)
                               : choose_values(of, field, values, &left, err);
    }
    if (rc)
        return rc;
    st_boxes_to_format(&boxes, st_image_width(&image), st_image_height(&image));
    piece->bytes = (struct st_bytes){(const uint8_t *)boxes.box, boxes.count * sizeof *boxes.box};
    piece->shape[0] = (int64_t)boxes.count;
    return 0;
}
