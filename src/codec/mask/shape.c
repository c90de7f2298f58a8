/* shape.c - draws the shape of an object, however it is given
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/mask/shape.h"
#include "codec/mask/polygon.h"
#include "codec/mask/rle.h"

/* Run lengths, checked, of this size. */
static int read_rle(struct st_rle *out, const struct st_object_shape *shape, uint32_t width,
                    uint32_t height, struct st_arena *arena, struct stoker_error *err)
{
    *out = shape->rle;
    if (out->width != width || out->height != height)
        return st_fail(err, STOKER_ECORRUPT, "the mask has %u x %u pixels, but the image %u x %u",
                       out->width, out->height, width, height);
    return shape->kind == ST_SHAPE_TEXT ? st_rle_read(out, shape->text, width, height, arena, err)
                                        : st_rle_check(out, err);
}

int st_shape_draw(const struct st_object_shape *shape, const struct st_view *plane,
                  struct st_brush brush, struct st_arena *arena, struct stoker_error *err)
{
    struct st_turns turns = {0};
    struct st_rle rle;
    int rc = 0;
    if (shape->kind == ST_SHAPE_NONE)
        return 0;
    if (shape->kind == ST_SHAPE_POLYGONS) {
        for (uint64_t i = 0; i < shape->polygon_count && !rc; i++)
            rc = st_polygon_draw(&shape->polygons[i], plane, brush, &turns, arena, err);
        return rc;
    }
    rc = read_rle(&rle, shape, (uint32_t)plane->width, (uint32_t)plane->height, arena, err);
    return rc ? rc : st_rle_draw(&rle, plane, brush, arena, err);
}
