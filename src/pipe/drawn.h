/* drawn.h - masks that are drawn from the shapes of a sample's objects
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_DRAWN_H
#define ST_PIPE_DRAWN_H

#include "pipe/target.h"

/* A mask of classes, of the image's size and not moved so far: uint8 [H, W]. */
int st_drawn_classes(const struct st_targets *of, struct st_piece *piece, struct stoker_error *err);

/* A mask for each of these boxes, moved like the image, which then is of this size: uint8 [N, H, W]. */
int st_drawn_objects(struct st_targets *of, struct st_piece *piece, const struct st_boxes *boxes,
                     int32_t width, int32_t height, struct stoker_error *err);

#endif
