/* boxed.h - images with the boxes of the objects in them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PAIRS_BOXED_H
#define ST_SOURCE_PAIRS_BOXED_H

#include "source/annotated/annotated.h"

/* The fields of a sample: image, boxes and labels; of VOC difficult, of COCO area, iscrowd and image_id;
 * and if requested keypoints, float32 [n, k, 3], and masks or mask. */
struct st_boxed_how {
    enum { ST_BOXED_COCO, ST_BOXED_VOC, ST_BOXED_YOLO } kind;
    bool keypoints;
    enum stoker_shapes masks;
};

/* Sample i is image i of `images`, files without fields, with the objects of image i of the table. Boxes
 * are float32 [n, 4]: left, top, right, bottom in pixels; YOLO's are centres and sizes, as fractions of
 * the image's width and height. Every object must have a box and a label. The table is copied from:
 * it may be freed afterwards, but with masks st_boxed_keep_shapes is to follow. */
int st_dataset_boxed(struct stoker_dataset **out, struct stoker_dataset *images,
                     const struct st_annotated *table, struct st_boxed_how how,
                     struct stoker_error *err);
/* Moves the table to the dataset, which draws the masks of its objects. */
void st_boxed_keep_shapes(struct stoker_dataset *data, struct st_annotated *table);

/* STOKER_PAIRS_COCO, STOKER_PAIRS_VOC_BOXES and STOKER_PAIRS_YOLO. */
int st_boxed_open(struct stoker_dataset **out, const struct stoker_pairs *how,
                  const struct stoker_dataset_options *opt, struct stoker_error *err);

#endif
