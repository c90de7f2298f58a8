/* boxed.h - images with the boxes of the objects in them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PAIRS_BOXED_H
#define ST_SOURCE_PAIRS_BOXED_H

#include "source/annotated/annotated.h"

enum st_boxed_fields {
    ST_BOXED_COCO,           /* image, boxes, labels, area, iscrowd, image_id */
    ST_BOXED_COCO_KEYPOINTS, /* the same, and keypoints, float32 [n, k, 3] */
    ST_BOXED_VOC,            /* image, boxes, labels, difficult */
    ST_BOXED_YOLO,           /* image, boxes, labels */
};

/* Sample i is image i of `images`, files without fields, with the objects of image i of the table. Boxes
 * are float32 [n, 4]: left, top, right, bottom in pixels; YOLO's are centres and sizes, as fractions of
 * the image's width and height. Every object must have a box and a label. The table is copied from: it
 * may be freed afterwards. */
int st_dataset_boxed(struct stoker_dataset **out, struct stoker_dataset *images,
                     const struct st_annotated *table, enum st_boxed_fields fields,
                     struct stoker_error *err);

/* STOKER_PAIRS_COCO, STOKER_PAIRS_VOC_BOXES and STOKER_PAIRS_YOLO. */
int st_boxed_open(struct stoker_dataset **out, const struct stoker_pairs *how,
                  const struct stoker_dataset_options *opt, struct stoker_error *err);

#endif
