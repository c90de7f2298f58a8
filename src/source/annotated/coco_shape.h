/* coco_shape.h - the 'segmentation' of an annotation of COCO: polygons or run lengths
 *
 * When a file is opened they are only checked, because they are most of its bytes, and read when they
 * are drawn.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_ANNOTATED_COCO_SHAPE_H
#define ST_SOURCE_ANNOTATED_COCO_SHAPE_H

#include "base/shapes.h"
#include "source/annotated/pull.h"

/* Checks and skips one. *out is NONE for null and for a list without polygons. */
bool st_coco_skip_shape(struct st_pull *pull, enum st_shape_kind *out);
/* Reads one that was skipped before, into the arena's memory. */
bool st_coco_read_shape(struct st_pull *pull, enum st_shape_kind kind, struct st_arena *arena,
                        struct st_object_shape *out);

#endif
