/* polygon.h - polygons as masks, with the pixels that pycocotools gives them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_MASK_POLYGON_H
#define ST_CODEC_MASK_POLYGON_H

#include "codec/mask/rle.h"

/* Coordinates beyond this, to either side, are refused. */
enum { ST_POLYGON_FURTHEST = 400000 };

/* Draws the polygon in a plane with one channel. `turns` is initially zeroed, and may
 * be used for one polygon after another. */
int st_polygon_draw(const struct st_polygon *polygon, const struct st_view *plane, struct st_brush brush,
                    struct st_turns *turns, struct st_arena *arena, struct stoker_error *err);

#endif
