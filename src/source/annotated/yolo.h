/* yolo.h - reads annotations as YOLO has them: a text file for each image, a line for each object
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ANNOTATED_YOLO_H
#define ST_SOURCE_ANNOTATED_YOLO_H

#include "source/annotated/annotated.h"

/* What follows the label in a line. All coordinates are fractions of the image's width and height. */
struct st_yolo_form {
    bool polygons; /* the corners of a polygon, whose box is the object's; lines with four numbers are
                      boxes */
    /* Otherwise a box as its centre and size, and after it keypoints: */
    uint32_t keypoints; /* of each object */
    bool visibility;    /* each is x, y and visibility; otherwise x and y, and all are visible (2) */
};

/* Adds an image with its objects to a table, which is ST_BOX_CXCYWH and relative. Labels are whole
 * numbers below `class_count`; 0: any from 0 on. An empty file has no objects. `path` is the image's
 * name in the table and the file's in messages. On failure the table may contain a part of the image,
 * and is to be freed. */
int st_yolo_add(struct st_annotated *table, struct st_bytes text, const char *path,
                const struct st_yolo_form *form, uint64_t class_count, struct stoker_error *err);

#endif
