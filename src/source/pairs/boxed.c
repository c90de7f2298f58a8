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

struct boxed {
    struct stoker_dataset *images;
    enum st_boxed_fields fields;
    uint64_t *first;         /* object of each image; behind the last image, the number of all */
    float (*boxes)[4];       /* of each object, like the following */
    int64_t *labels, *marks; /* marks: iscrowd or difficult */
    float *areas;
    float *points; /* x, y and visibility of `each` key points of each object; NULL: without them */
    uint64_t each;
    int64_t *ids; /* of each image */
};

enum { IMAGE, BOXES, LABELS, YOLO_FIELDS };
enum { DIFFICULT = YOLO_FIELDS, VOC_FIELDS };
enum { AREA = YOLO_FIELDS, CROWD, ID, COCO_FIELDS, POINTS = COCO_FIELDS, POINTS_FIELDS };

#define IMAGES                                                                                          \
    {                                                                                                   \
        .name = "image", .kind = ST_FIELD_IMAGE, .dtype = STOKER_DTYPE_U8                               \
    }
#define ARRAY(title, type)                                                                              \
    {                                                                                                   \
        .name = (title), .kind = ST_FIELD_ARRAY, .dtype = (type), .ndim = 1, .shape = { -1 }            \
    }
#define CORNERS                                                                                         \
    {                                                                                                   \
        .name = "boxes", .kind = ST_FIELD_ARRAY, .dtype = STOKER_DTYPE_F32, .ndim = 2, .shape = {       \
            -1,                                                                                         \
            4                                                                                           \
        }                                                                                               \
    }

static const struct st_field coco_field[POINTS_FIELDS] = {
    [IMAGE] = IMAGES,
    [BOXES] = CORNERS,
    [LABELS] = ARRAY("labels", STOKER_DTYPE_I64),
    [AREA] = ARRAY("area", STOKER_DTYPE_F32),
    [CROWD] = ARRAY("iscrowd", STOKER_DTYPE_I64),
    [ID] = {.name = "image_id", .kind = ST_FIELD_INT},
    [POINTS] = {.name = "keypoints",
                .kind = ST_FIELD_ARRAY,
                .dtype = STOKER_DTYPE_F32,
                .ndim = 3,
                .shape = {-1, -1, 3}},
};
static const struct st_field voc_field[VOC_FIELDS] = {
    [IMAGE] = IMAGES,
    [BOXES] = CORNERS,
    [LABELS] = ARRAY("labels", STOKER_DTYPE_I64),
    [DIFFICULT] = ARRAY("difficult", STOKER_DTYPE_I64),
};

static bool is_coco(enum st_boxed_fields fields)
{
    return fields == ST_BOXED_COCO || fields == ST_BOXED_COCO_KEYPOINTS;
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
    static const uint32_t counts[] = {[ST_BOXED_COCO] = COCO_FIELDS,
                                      [ST_BOXED_COCO_KEYPOINTS] = POINTS_FIELDS,
                                      [ST_BOXED_VOC] = VOC_FIELDS,
                                      [ST_BOXED_YOLO] = YOLO_FIELDS};
    const enum st_boxed_fields fields = ((const struct boxed *)self)->fields;
    *count = counts[fields];
    return is_coco(fields) ? coco_field : voc_field;
}

static struct st_piece numbers(const void *from, uint64_t count, const struct st_field *field)
{
    const uint64_t each = field->dtype == STOKER_DTYPE_I64 ? sizeof(int64_t) : sizeof(float);
    const uint64_t row = each * (field->ndim == 2 ? 4 : 1);
    return (struct st_piece){.bytes = {from, count * row},
                             .dtype = field->dtype,
                             .ndim = field->ndim,
                             .shape = {(int64_t)count, field->shape[1]}};
}

static int boxed_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                       struct st_piece *pieces, struct stoker_error *err)
{
    const struct boxed *boxed = self;
    const uint64_t first = boxed->first[sample], count = boxed->first[sample + 1] - first;
    (void)scratch, (void)err;
    pieces[IMAGE] = (struct st_piece){.bytes = raw};
    pieces[BOXES] = numbers(boxed->boxes + first, count, &coco_field[BOXES]);
    pieces[LABELS] = numbers(boxed->labels + first, count, &coco_field[LABELS]);
    if (boxed->fields == ST_BOXED_VOC) {
        pieces[DIFFICULT] = numbers(boxed->marks + first, count, &voc_field[DIFFICULT]);
    } else if (is_coco(boxed->fields)) {
        pieces[AREA] = numbers(boxed->areas + first, count, &coco_field[AREA]);
        pieces[CROWD] = numbers(boxed->marks + first, count, &coco_field[CROWD]);
        pieces[ID] = (struct st_piece){.whole = boxed->ids[sample]};
    }
    if (boxed->fields == ST_BOXED_COCO_KEYPOINTS) {
        const uint64_t row = 3 * boxed->each;
        pieces[POINTS] = (struct st_piece){
            .bytes = {(const uint8_t *)(boxed->points + first * row), count * row * sizeof(float)},
            .dtype = STOKER_DTYPE_F32,
            .ndim = 3,
            .shape = {(int64_t)count, (int64_t)boxed->each, 3}};
    }
    return 0;
}

static uint64_t boxed_memory(const void *self)
{
    const struct boxed *boxed = self;
    const uint64_t images = boxed_count(self), each = sizeof *boxed->boxes + sizeof *boxed->labels +
                                                      sizeof *boxed->marks + sizeof *boxed->areas +
                                                      3 * boxed->each * sizeof *boxed->points;
    return st_dataset_memory(boxed->images) + images * (sizeof *boxed->first + sizeof *boxed->ids) +
           boxed->first[images] * each;
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

static int take_object(struct boxed *boxed, uint64_t at, const struct st_annotated *table,
                       const struct st_object *object, struct stoker_error *err)
{
    const enum st_box_format format = table->format;
    const uint64_t points = boxed->points ? object->keypoint_count : 0;
    const uint32_t mark = is_coco(boxed->fields) ? ST_OBJECT_CROWD : ST_OBJECT_DIFFICULT;
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
                     const struct st_annotated *table, enum st_boxed_fields fields,
                     struct stoker_error *err)
{
    uint64_t objects = 0;
    for (uint64_t i = 0; i < table->image_count; i++)
        objects += table->images[i].count;
    struct stoker_dataset *data = st_dataset_new(&st_source_boxed);
    if (!data)
        return st_fail(err, STOKER_ENOMEM, "no memory for a dataset");
    struct boxed *boxed = data->self;
    boxed->images = st_dataset_hold(images);
    boxed->fields = fields;
    int rc = has_arrays(boxed, table->image_count, objects)
                 ? 0
                 : st_fail(err, STOKER_ENOMEM, "no memory for the boxes of %llu objects",
                           (unsigned long long)objects);
    if (!rc && fields == ST_BOXED_COCO_KEYPOINTS)
        rc = add_points(boxed, table, objects, err);
    if (!rc)
        rc = take_objects(boxed, table, err);
    if (rc)
        st_dataset_drop(data);
    else
        *out = data;
    return rc;
}
