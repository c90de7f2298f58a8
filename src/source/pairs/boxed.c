/* boxed.c - images with the boxes of the objects in them
 *
 * The objects of all images lie one after another in arrays, so that a sample's fields are parts of
 * these.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/pairs/boxed.h"
#include "source/kinds.h"

#include <math.h>
#include <stdlib.h>

enum part { IMAGE, BOXES, LABELS, DIFFICULT, AREA, CROWD, ID, POINTS, MASKS, MASK, PARTS };

struct boxed {
    struct stoker_dataset *images;
    enum part parts[PARTS]; /* of a sample, in order */
    struct st_field field[PARTS];
    uint32_t fields;
    uint64_t *first;         /* object of each image; behind the last image, the number of all */
    float (*boxes)[4];       /* of each object, like the following */
    int64_t *labels, *marks; /* marks: iscrowd or difficult */
    float *areas;
    float *points; /* x, y and visibility of `each` key points of each object; NULL: without them */
    uint64_t each;
    int64_t *ids;              /* of each image */
    struct st_annotated table; /* with masks; else empty */
};

#define ARRAY(title, type)                                                                              \
    {                                                                                                   \
        .name = (title), .kind = ST_FIELD_ARRAY, .dtype = (type), .ndim = 1, .shape = { -1 }            \
    }

static const struct st_field part_field[PARTS] = {
    [IMAGE] = {.name = "image", .kind = ST_FIELD_IMAGE, .dtype = STOKER_DTYPE_U8},
    [BOXES] = {.name = "boxes",
               .kind = ST_FIELD_ARRAY,
               .dtype = STOKER_DTYPE_F32,
               .ndim = 2,
               .shape = {-1, 4}},
    [LABELS] = ARRAY("labels", STOKER_DTYPE_I64),
    [DIFFICULT] = ARRAY("difficult", STOKER_DTYPE_I64),
    [AREA] = ARRAY("area", STOKER_DTYPE_F32),
    [CROWD] = ARRAY("iscrowd", STOKER_DTYPE_I64),
    [ID] = {.name = "image_id", .kind = ST_FIELD_INT},
    [POINTS] = {.name = "keypoints",
                .kind = ST_FIELD_ARRAY,
                .dtype = STOKER_DTYPE_F32,
                .ndim = 3,
                .shape = {-1, -1, 3}},
    [MASKS] = {.name = "masks",
               .kind = ST_FIELD_ARRAY,
               .dtype = STOKER_DTYPE_U8,
               .ndim = 3,
               .shape = {-1, -1, -1},
               .drawn = true},
    [MASK] = {.name = "mask",
              .kind = ST_FIELD_IMAGE,
              .dtype = STOKER_DTYPE_U8,
              .ndim = 2,
              .shape = {-1, -1},
              .drawn = true},
};

static void add_part(struct boxed *boxed, enum part part)
{
    boxed->parts[boxed->fields] = part;
    boxed->field[boxed->fields++] = part_field[part];
}

static void add_parts(struct boxed *boxed, struct st_boxed_how how)
{
    for (enum part part = IMAGE; part <= LABELS; part++)
        add_part(boxed, part);
    if (how.kind == ST_BOXED_VOC)
        add_part(boxed, DIFFICULT);
    for (enum part part = AREA; part <= ID && how.kind == ST_BOXED_COCO; part++)
        add_part(boxed, part);
    if (how.keypoints)
        add_part(boxed, POINTS);
    if (how.masks)
        add_part(boxed, how.masks == STOKER_SHAPES_OBJECTS ? MASKS : MASK);
}

static uint64_t boxed_count(const void *self)
{
    return st_dataset_count(((const struct boxed *)self)->images);
}

static int64_t boxed_label(const void *self, uint64_t sample)
{
    return ((const struct boxed *)self)->ids[sample];
}

static size_t boxed_name(const void *self, uint64_t sample, char *buffer, size_t size)
{
    return st_dataset_name(((const struct boxed *)self)->images, sample, buffer, size);
}

static int boxed_locate(const void *self, uint64_t sample, struct st_extent *out,
                        struct stoker_error *err)
{
    const struct stoker_dataset *images = ((const struct boxed *)self)->images;
    return images->source->locate(images->self, sample, out, err);
}

static const struct st_field *boxed_fields(const void *self, uint32_t *count)
{
    const struct boxed *boxed = self;
    *count = boxed->fields;
    return boxed->field;
}

static struct st_piece numbers(const void *from, uint64_t first, uint64_t count, enum part part)
{
    const struct st_field *field = &part_field[part];
    const uint64_t each = field->dtype == STOKER_DTYPE_I64 ? sizeof(int64_t) : sizeof(float);
    const uint64_t row = each * (field->ndim == 2 ? 4 : 1);
    return (struct st_piece){.bytes = {(const uint8_t *)from + first * row, count * row},
                             .dtype = field->dtype,
                             .ndim = field->ndim,
                             .shape = {(int64_t)count, field->shape[1]}};
}

static struct st_piece points_of(const struct boxed *boxed, uint64_t first, uint64_t count)
{
    const uint64_t row = 3 * boxed->each;
    return (struct st_piece){
        .bytes = {(const uint8_t *)(boxed->points + first * row), count * row * sizeof(float)},
        .dtype = STOKER_DTYPE_F32,
        .ndim = 3,
        .shape = {(int64_t)count, (int64_t)boxed->each, 3}};
}

static struct st_piece piece_of(const struct boxed *boxed, enum part part, uint64_t sample)
{
    const uint64_t first = boxed->first[sample], count = boxed->first[sample + 1] - first;
    switch (part) {
    case BOXES:
        return numbers(boxed->boxes, first, count, part);
    case LABELS:
        return numbers(boxed->labels, first, count, part);
    case DIFFICULT:
    case CROWD:
        return numbers(boxed->marks, first, count, part);
    case AREA:
        return numbers(boxed->areas, first, count, part);
    case POINTS:
        return points_of(boxed, first, count);
    case ID:
        return (struct st_piece){.whole = boxed->ids[sample]};
    default: /* MASKS, MASK */
        return (struct st_piece){.table = &boxed->table,
                                 .whole = (int64_t)sample,
                                 .dtype = STOKER_DTYPE_U8,
                                 .ndim = part_field[part].ndim};
    }
}

static int boxed_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                       struct st_piece *pieces, struct stoker_error *err)
{
    const struct boxed *boxed = self;
    (void)scratch, (void)err;
    pieces[IMAGE] = (struct st_piece){.bytes = raw};
    for (uint32_t k = 1; k < boxed->fields; k++)
        pieces[k] = piece_of(boxed, boxed->parts[k], sample);
    return 0;
}

static uint64_t boxed_memory(const void *self)
{
    const struct boxed *boxed = self;
    const uint64_t images = boxed_count(self), each = sizeof *boxed->boxes + sizeof *boxed->labels +
                                                      sizeof *boxed->marks + sizeof *boxed->areas +
                                                      3 * boxed->each * sizeof *boxed->points;
    const struct st_annotated *table = &boxed->table;
    return st_dataset_memory(boxed->images) + images * (sizeof *boxed->first + sizeof *boxed->ids) +
           boxed->first[images] * each + table->image_room * sizeof *table->images +
           table->object_room * sizeof *table->objects + table->number_room * sizeof *table->numbers;
}

static void boxed_close(void *self)
{
    struct boxed *boxed = self;
    st_dataset_drop(boxed->images);
    free(boxed->first);
    free(boxed->boxes);
    free(boxed->labels);
    free(boxed->marks);
    free(boxed->areas);
    free(boxed->points);
    free(boxed->ids);
    st_annotated_free(&boxed->table);
}

static const struct st_source st_source_boxed = {
    .scheme = "boxed",
    .self_size = sizeof(struct boxed),
    .count = boxed_count,
    .label = boxed_label,
    .name = boxed_name,
    .locate = boxed_locate,
    .fields = boxed_fields,
    .split = boxed_split,
    .memory = boxed_memory,
    .close = boxed_close,
};

/* ---- from a table --------------------------------------------------------------------------------- */

/* Sums are of float32 numbers, as torchvision's box_convert makes them. False: not finite. */
static bool take_box(float out[4], const struct st_object *object, enum st_box_format format)
{
    bool finite = true;
    for (int k = 0; k < 4; k++) {
        out[k] = (float)object->box[k];
        if (k >= 2 && format == ST_BOX_XYWH)
            out[k] += out[k - 2];
        finite = finite && isfinite(out[k]);
    }
    return finite;
}

/* False: not finite. An object without key points has zeros. */
static bool take_points(struct boxed *boxed, uint64_t at, const double *points, uint64_t count)
{
    bool finite = true;
    for (uint64_t k = 0; k < 3 * count; k++) {
        const float number = (float)points[k];
        boxed->points[3 * boxed->each * at + k] = number;
        finite = finite && isfinite(number);
    }
    return finite;
}

static bool has_part(const struct boxed *boxed, enum part part)
{
    uint32_t k = 0;
    while (k < boxed->fields && boxed->parts[k] != part)
        k++;
    return k < boxed->fields;
}

/* Whether it may be that of a class in a mask, where 0 is the background. */
static bool is_number(int64_t label) { return label > 0 && label <= UINT8_MAX; }

static int take_object(struct boxed *boxed, uint64_t at, const struct st_annotated *table,
                       const struct st_object *object, struct stoker_error *err)
{
    const enum st_box_format format = table->format;
    const uint64_t points = boxed->points ? object->keypoint_count : 0;
    const uint32_t mark = has_part(boxed, CROWD) ? ST_OBJECT_CROWD : ST_OBJECT_DIFFICULT;
    const char *wrong = NULL;
    boxed->labels[at] = object->label;
    boxed->marks[at] = (object->flags & mark) != 0;
    boxed->areas[at] = (float)object->area;
    if (!(object->flags & ST_OBJECT_BOX))
        wrong = "has no box: give it one, or remove it";
    else if (!(object->flags & ST_OBJECT_LABEL))
        wrong = "has no category: give it one, or remove it";
    else if (!take_box(boxed->boxes[at], object, format) || !isfinite(boxed->areas[at]))
        wrong = "has a box or an area too large for float32";
    else if (points && points != boxed->each)
        wrong = "has another number of key points than others";
    else if (points && !take_points(boxed, at, table->numbers + object->keypoints, points))
        wrong = "has a key point too large for float32";
    else if (has_part(boxed, MASK) && object->shape && !is_number(object->label + table->from_zero))
        wrong = table->from_zero ? "has a class above 254: masks of classes have 8 bits"
                                 : "has a category that is not from 1 to 255, as masks of 8 bits need "
                                   "it: use contiguous labels";
    return wrong ? st_fail(err, STOKER_ECORRUPT, "annotation %lld %s", (long long)object->id, wrong) : 0;
}

static int take_objects(struct boxed *boxed, const struct st_annotated *table, struct stoker_error *err)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < table->image_count; i++) {
        boxed->ids[i] = table->images[i].id;
        boxed->first[i] = at;
        for (uint64_t k = 0; k < table->images[i].count; k++) {
            const struct st_object *object = st_annotated_object(table, i, k);
            const int rc = take_object(boxed, at++, table, object, err);
            if (rc) {
                char name[512];
                st_dataset_name(boxed->images, i, name, sizeof name);
                return st_fail_in(err, rc, name);
            }
        }
    }
    boxed->first[table->image_count] = at;
    return 0;
}

/* As many key points as the object with the most has; 0: none has any. */
static uint64_t most_points(const struct st_annotated *table)
{
    uint64_t most = 0;
    for (uint64_t k = 0; k < table->object_count; k++)
        most = table->objects[k].keypoint_count > most ? table->objects[k].keypoint_count : most;
    return most;
}

/* Room for the key points of all objects. */
static int add_points(struct boxed *boxed, const struct st_annotated *table, uint64_t objects,
                      struct stoker_error *err)
{
    enum { MOST = 1024 }; /* every object takes as much room as the one with the most */
    uint64_t count;
    boxed->each = most_points(table);
    if (boxed->each > MOST)
        return st_fail(err, STOKER_ELIMIT, "an annotation has %llu key points; up to %d are possible",
                       (unsigned long long)boxed->each, MOST);
    if (!boxed->each && objects)
        return st_fail(err, STOKER_EINVAL,
                       "no annotation has key points: those of COCO are in person_keypoints_*.json");
    boxed->points =
        st_mul(objects, 3 * boxed->each, &count) ? st_calloc(count, sizeof *boxed->points) : NULL;
    return boxed->points ? 0
                         : st_fail(err, STOKER_ENOMEM, "no memory for the key points of %llu objects",
                                   (unsigned long long)objects);
}

static bool has_arrays(struct boxed *boxed, uint64_t images, uint64_t objects)
{
    boxed->first = st_calloc(images + 1, sizeof *boxed->first);
    boxed->ids = st_calloc(images, sizeof *boxed->ids);
    boxed->boxes = st_calloc(objects, sizeof *boxed->boxes);
    boxed->labels = st_calloc(objects, sizeof *boxed->labels);
    boxed->marks = st_calloc(objects, sizeof *boxed->marks);
    boxed->areas = st_calloc(objects, sizeof *boxed->areas);
    return boxed->first && boxed->ids && boxed->boxes && boxed->labels && boxed->marks && boxed->areas;
}

int st_dataset_boxed(struct stoker_dataset **out, struct stoker_dataset *images,
                     const struct st_annotated *table, struct st_boxed_how how, struct stoker_error *err)
{
    uint64_t objects = 0;
    for (uint64_t i = 0; i < table->image_count; i++)
        objects += table->images[i].count;
    struct stoker_dataset *data = st_dataset_new(&st_source_boxed);
    if (!data)
        return st_fail(err, STOKER_ENOMEM, "no memory for a dataset");
    struct boxed *boxed = data->self;
    boxed->images = st_dataset_hold(images);
    add_parts(boxed, how);
    int rc = has_arrays(boxed, table->image_count, objects)
                 ? 0
                 : st_fail(err, STOKER_ENOMEM, "no memory for the boxes of %llu objects",
                           (unsigned long long)objects);
    if (!rc && how.keypoints)
        rc = add_points(boxed, table, objects, err);
    if (!rc)
        rc = take_objects(boxed, table, err);
    if (rc)
        st_dataset_drop(data);
    else
        *out = data;
    return rc;
}

void st_boxed_keep_shapes(struct stoker_dataset *data, struct st_annotated *table)
{
    struct boxed *boxed = data->self;
    boxed->table = *table;
    *table = (struct st_annotated){0};
}
