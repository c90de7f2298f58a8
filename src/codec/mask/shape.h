/* shape.h - draws the shape of an object, however it is given
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_MASK_SHAPE_H
#define ST_CODEC_MASK_SHAPE_H

#include "base/err.h"
#include "base/mem.h"
#include "base/shapes.h"

/* Sets the shape's pixels to `value` in a plane with one channel; the others stay, so that objects can
 * be drawn one over another. Run lengths must be of the plane's size. */
int st_shape_draw(const struct st_object_shape *shape, const struct st_view *plane, uint8_t value,
                  struct st_arena *arena, struct stoker_error *err);

#endif
