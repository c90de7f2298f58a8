/* masks.h - the masks of a sample: moved like its image, with the same draws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_MASKS_H
#define ST_PIPE_MASKS_H

#include "pipe/target.h"

/* One mask: uint8 [H, W]. `floored`: see st_numbers. */
int st_mask_make(struct st_targets *of, struct st_piece *piece, bool floored, struct stoker_error *err);

#endif
