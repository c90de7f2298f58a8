/* annotated_shape.c - the shapes of objects, from the file or from the table
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/annotated/annotated.h"
#include "source/annotated/coco_shape.h"

static int read_from_file(struct st_object_shape *out, const struct st_annotated *table,
                          const struct st_object *object, struct st_arena *arena,
                          struct stoker_error *err)
{
    const uint64_t end = object->shape_at + object->shape_size;
    const int rc = st_held_check(&table->file, end, err);
    if (rc)
        return rc;
    const char *begin = (const char *)table->file.map;
    struct st_pull pull = {.text = {.at = begin + object->shape_at, .end = begin + end},
                           .path = table->file.path,
                           .begin = begin,
                           .err = err};
    st_coco_read_shape(&pull, object->shape, arena, out);
    return pull.rc;
}

/* One polygon, of numbers that may be fractions of the image's size. */
static int read_from_table(struct st_object_shape *out, const struct st_annotated *table,
                           const struct st_object *object, uint32_t width, uint32_t height,
                           struct st_arena *arena, struct stoker_error *err)
{
    const double *from = table->numbers + object->shape_at;
    struct st_polygon *polygon = st_arena_take(arena, sizeof *polygon);
    double *xy = st_arena_take(arena, object->shape_size * sizeof *xy);
    if (!polygon || !xy)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a polygon");
    for (uint64_t i = 0; i < object->shape_size; i++)
        xy[i] = table->relative ? from[i] * (i % 2 ? height : width) : from[i];
    *polygon = (struct st_polygon){xy, object->shape_size / 2};
    *out = (struct st_object_shape){.kind = ST_SHAPE_POLYGONS, .polygons = polygon, .polygon_count = 1};
    return 0;
}

int st_annotated_shape(struct st_object_shape *out, const struct st_annotated *table,
                       const struct st_object *object, uint32_t width, uint32_t height,
                       struct st_arena *arena, struct stoker_error *err)
{
    *out = (struct st_object_shape){0};
    if (object->shape == ST_SHAPE_NONE)
        return 0;
    return table->file.map ? read_from_file(out, table, object, arena, err)
                           : read_from_table(out, table, object, width, height, arena, err);
}
