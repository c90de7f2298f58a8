/* pictures.h - decodes the images of a sample other than the one that the pipeline works on
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_PICTURES_H
#define ST_PIPE_PICTURES_H

#include "op/image.h"
#include "pipe/columns.h"

/* Replaces column pieces that are encoded images by their pixels, uint8 [H, W, 3], allocated from the
 * arena. */
int st_pictures_decode(struct st_work *work, const struct st_columns_plan *plan, bool exif_rotate,
                       struct st_piece *pieces, struct stoker_error *err);

#endif
