/* shape.h - draws the shape of an object, however it is given
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_MASK_SHAPE_H
#define ST_CODEC_MASK_SHAPE_H

#include "base/shapes.h"
#include "codec/mask/fill.h"

/* Draws the shape in a plane with one channel. Run lengths must be of the plane's size. */
int st_shape_draw(const struct st_object_shape *shape, const struct st_view *plane,
                  struct st_brush brush, struct st_arena *arena, struct stoker_error *err);

#endif
