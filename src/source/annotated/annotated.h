/* annotated.h - images and the objects in them, as annotation files describe them
 *
 * A table is filled by a reader of one format (coco.h, voc.h, yolo.h), is not changed afterwards, and
 * may be used by any number of threads. All that it refers to is its own and freed by one call. Zeroed,
 * it is empty.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ANNOTATED_ANNOTATED_H
#define ST_SOURCE_ANNOTATED_ANNOTATED_H

#include "base/shapes.h"
#include "source/held.h"
#include "source/table/cells.h"

enum st_object_flag {
    ST_OBJECT_BOX = 1,   /* it has one */
    ST_OBJECT_LABEL = 2, /* it has one; otherwise it is -1 */
    ST_OBJECT_CROWD = 4, /* COCO: one annotation for many objects */
    ST_OBJECT_DIFFICULT = 8,
    ST_OBJECT_TRUNCATED = 16, /* VOC, both */
};

struct st_object {
    int64_t label;  /* the class: see the reader */
    int64_t id;     /* COCO's; 0 if the file has none */
    double box[4];  /* in the table's format, as written */
    double area;    /* COCO's; 0 if the file has none */
    uint32_t flags; /* of st_object_flag */
    enum st_shape_kind shape;
    uint64_t shape_at, shape_size; /* in the file, or in `numbers`: st_annotated_shape reads it */
    uint64_t keypoints;            /* the first of x, y and visibility in `numbers`, in turn */
    uint64_t keypoint_count;
};

struct st_annotated_image {
    uint64_t name; /* of its file, in `names`: as the file has it, in general a path below some folder */
    int64_t id;    /* COCO's, otherwise 0 */
    uint32_t width, height; /* 0: the file does not say */
    uint64_t first, count;  /* its objects: st_annotated_object */
};

struct st_annotated {
    struct st_annotated_image *images;
    struct st_object *objects;
    double *numbers;
    uint64_t image_count, object_count, number_count;
    uint64_t image_room, object_room, number_room;
    uint32_t *order;         /* the objects image by image; NULL: they are in this order already */
    struct st_buffer names;  /* NUL-terminated */
    struct st_cells classes; /* names; empty if the file has none */
    int64_t *class_ids;      /* COCO: the id of each, ascending; NULL: their numbers */
    enum st_box_format format;
    bool from_zero;      /* the first class is 0, which in a mask of classes is the background: there
                            they are one more */
    bool relative;       /* boxes, shapes and keypoints are fractions of the image's width and height */
    struct st_held file; /* shapes are read from it; not open if they are in `numbers` */
    /* Remarks: */
    uint64_t orphans;  /* objects of images that the file does not list, which are left out */
    uint64_t repeated; /* images whose id a later one has, too: the last of each is in the table */
};

void st_annotated_free(struct st_annotated *table); /* safe after a failed read, and twice */

static inline const char *st_annotated_name(const struct st_annotated *table, uint64_t image)
{
    return (const char *)table->names.data + table->images[image].name;
}

/* Object `k` of an image; `k` is below its count. */
static inline const struct st_object *st_annotated_object(const struct st_annotated *table,
                                                          uint64_t image, uint64_t k)
{
    const uint64_t at = table->images[image].first + k;
    return &table->objects[table->order ? table->order[at] : at];
}

/* The shape of an object of an image of this size, in pixels, from the arena. Any thread. */
int st_annotated_shape(struct st_object_shape *out, const struct st_annotated *table,
                       const struct st_object *object, uint32_t width, uint32_t height,
                       struct st_arena *arena, struct stoker_error *err);

/* For readers: room for one more, zeroed, which counts at once; NULL if out of memory. */
struct st_annotated_image *st_annotated_add_image(struct st_annotated *table);
struct st_object *st_annotated_add_object(struct st_annotated *table);
bool st_annotated_add_number(struct st_annotated *table, double number);

#endif
