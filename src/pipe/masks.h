/* masks.h - the masks of a sample: moved like its image, with the same draws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_MASKS_H
#define ST_PIPE_MASKS_H

#include "pipe/target.h"

/* The mask of a column: uint8 [H, W], or int32 if the column is wide. */
int st_mask_make(struct st_targets *of, uint32_t column, struct st_piece *piece,
                 struct stoker_error *err);

#endif
