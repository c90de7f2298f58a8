/* turn.h - the eight orientations of an image: EXIF orientation, mirroring, flipping
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_TURN_H
#define ST_OP_GEOMETRY_TURN_H

#include "base/mem.h"
#include "base/pixels.h"

#include <stdbool.h>

/* First transposes, then swaps left and right, then top and bottom. */
struct st_turn {
    bool transpose, mirror, flip;
};

/* The turn that makes an image with this EXIF orientation (1 to 8) upright. */
struct st_turn st_turn_upright(uint32_t orientation);
static inline bool st_turn_needed(struct st_turn t) { return t.transpose || t.mirror || t.flip; }

/* The part of the image that becomes `region` of the turned one, which is `width` x `height`. */
struct st_region st_turn_back(struct st_turn turn, struct st_region region, uint32_t width,
                              uint32_t height);
/* A turned copy from the arena; false when out of memory. */
bool st_turn_view(struct st_turn turn, const struct st_view *in, struct st_arena *arena,
                  struct st_view *out);

/* Allocates pixels whose rows have no gaps; false when out of memory. */
bool st_view_take(struct st_view *view, struct st_arena *arena, int32_t width, int32_t height,
                  int32_t channels);

#endif
