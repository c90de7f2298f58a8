/* boxes.h - the boxes of a sample, and what belongs to them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_BOXES_H
#define ST_PIPE_BOXES_H

#include "pipe/target.h"

/* Boxes: float32 [N, 4], and the columns that belong to them. */
int st_boxes_make(struct st_targets *of, uint32_t column, struct st_piece *pieces,
                  struct stoker_error *err);

#endif
