/* shapes.h - the shapes of objects in images: boxes, polygons, and masks as run lengths
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_SHAPES_H
#define ST_BASE_SHAPES_H

#include "base/pixels.h"

/* What the four numbers of a box are. */
enum st_box_format {
    ST_BOX_XYXY,   /* left, top, right, bottom */
    ST_BOX_XYWH,   /* left, top, width, height */
    ST_BOX_CXCYWH, /* centre, width, height */
    ST_BOX_FORMATS,
};

/* x and y of each corner in turn, in pixels; the last is joined with the first. */
struct st_polygon {
    const double *xy;
    uint64_t corners;
};

/* The pixels column by column from the upper left: runs outside of the mask and inside of it take turns,
 * and the first is outside. */
struct st_rle {
    uint32_t width, height;
    const uint32_t *counts; /* their sum is width * height, which fits into 32 bits */
    uint64_t count;
};

enum st_shape_kind {
    ST_SHAPE_NONE,
    ST_SHAPE_POLYGONS, /* the union of all */
    ST_SHAPE_COUNTS,   /* run lengths */
    ST_SHAPE_TEXT,     /* run lengths as COCO compresses them */
};

/* The shape of one object, as written and not checked: codec/mask does that. */
struct st_object_shape {
    enum st_shape_kind kind;
    const struct st_polygon *polygons;
    uint64_t polygon_count;
    struct st_rle rle;    /* COUNTS; of TEXT only the size */
    struct st_bytes text; /* TEXT */
};

#endif
