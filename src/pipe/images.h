/* images.h - further images of a sample that become what its first one does, with the same draws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_IMAGES_H
#define ST_PIPE_IMAGES_H

#include "pipe/target.h"

/* The image of a column, of the finished images' type: [C, H, W], or [H, W, C] where these are
 * arrays. */
int st_image_target_make(struct st_targets *of, struct st_piece *piece, struct stoker_error *err);

#endif
