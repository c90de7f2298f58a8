/* coco.h - reads annotations in COCO's JSON: instances, keypoints, stuff, or images alone
 *
 * Images are in ascending order of their ids, and the objects of each in the order of the file, as
 * torchvision's CocoDetection yields them. Two things differ from pycocotools: an object is itself even
 * if another one has the same id, where pycocotools yields the last of them in the place of each; and
 * numbers that are not finite are errors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ANNOTATED_COCO_H
#define ST_SOURCE_ANNOTATED_COCO_H

#include "source/annotated/annotated.h"

/* `path` may be a URL, which is read with `opt`. Labels are category ids; `contiguous`: their places
 * among all in ascending order, from 0. On failure the table is empty. */
int st_coco_read(struct st_annotated *out, const char *path, bool contiguous,
                 const struct stoker_dataset_options *opt, struct stoker_error *err);

#endif
