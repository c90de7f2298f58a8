/* drop_grid.c - overwrites a rectangle in each cell of a grid, as Albumentations' GridDropout does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/holes.h"
#include "op/geometry/split.h"

#include <math.h>

enum { SIDE_MAX = 1 << 20 };

struct drop_grid {
    double ratio;
    struct st_list unit, cells, shift;
    struct st_hole_fill fill;
};

static const char NAME[] = "drop_grid";

static const struct st_param params[] = {
    {.name = "ratio",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct drop_grid, ratio),
     .def = 0.5,
     .max = 1,
     .help = "sides of rectangles, as a part of those of their cells"},
    {.name = "unit",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct drop_grid, unit),
     .min = 2,
     .max = SIDE_MAX,
     .help =
         "sides of cells in pixels: least, and 1 more than the most; without it and cells a tenth of "
         "the image's"},
    {.name = "cells",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct drop_grid, cells),
     .min = 1,
     .max = SIDE_MAX,
     .help = "how many cells there are: rows, columns"},
    {.name = "shift",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct drop_grid, shift),
     .max = SIDE_MAX,
     .help = "where rectangles begin in their cells: x, y; without it at random places"},
    ST_HOLE_FILL_PARAMS(struct drop_grid),
    {0},
};

static int check_pair(const struct st_list *list, const char *name, struct stoker_error *err)
{
    const double *v = list->value;
    if (list->count && (list->count != 2 || v[0] != floor(v[0]) || v[1] != floor(v[1])))
        return st_fail(err, STOKER_EINVAL, "%s: %s must be two integers", NAME, name);
    return STOKER_OK;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    const struct drop_grid *d = self;
    int rc = st_holes_plan(&d->fill, shape, finish, NAME, err);
    if (rc >= 0)
        rc = check_pair(&d->unit, "unit", err);
    if (rc >= 0)
        rc = check_pair(&d->cells, "cells", err);
    if (rc >= 0)
        rc = check_pair(&d->shift, "shift", err);
    if (rc >= 0 && d->unit.count && d->unit.value[0] >= d->unit.value[1])
        rc = st_fail(err, STOKER_EINVAL, "%s: unit must be two integers in ascending order", NAME);
    return rc;
}

static int32_t tenth(int32_t length) { return length / 10 > 2 ? length / 10 : 2; }

/* The rows and columns of the grid; *rows is 0 if it has none, or cells without pixels. */
static void draw_grid(const struct drop_grid *d, struct st_rng *rng, int32_t width, int32_t height,
                      int32_t *rows, int32_t *columns)
{
    int32_t across = tenth(width), down = tenth(height);
    if (d->cells.count) {
        *rows = (int32_t)d->cells.value[0];
        *columns = (int32_t)d->cells.value[1];
    } else {
        if (d->unit.count) {
            const double least = d->unit.value[0], end = d->unit.value[1];
            across = down = (int32_t)least + (int32_t)st_rng_below(rng, (uint64_t)(end - least));
            if (end > width || end > height)
                across = down = INT32_MAX;
        }
        *rows = height / down;
        *columns = width / across;
    }
    if (*rows > height || *columns < 1 || *columns > width)
        *rows = 0;
}

/* Where the hole of a cell begins along an axis, and its length. */
static uint32_t place(const struct drop_grid *d, struct st_rng *rng, const int32_t *begin, int32_t end,
                      int axis, uint32_t *length)
{
    const int32_t cell = begin[1] - begin[0], part = (int32_t)(cell * d->ratio);
    const int32_t least = part > 1 ? part : 1, hole = least < cell ? least : cell - 1;
    const double shift =
        d->shift.count ? d->shift.value[axis] : (double)st_rng_below(rng, (uint64_t)(cell - hole) + 1);
    *length = (uint32_t)hole;
    return (uint32_t)fmin(begin[0] + shift, end - hole);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct drop_grid *d = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    struct st_arena *arena = &image->work->arena;
    int32_t rows, columns;
    if (!st_holes_have_work(&d->fill, image))
        return STOKER_OK;
    draw_grid(d, rng, width, height, &rows, &columns);
    if (!rows)
        return st_fail(err, STOKER_EINVAL, "%s: an image of %d x %d is too small for this grid", NAME,
                       width, height);
    const uint64_t count = (uint64_t)rows * (uint64_t)columns;
    struct st_region *holes = st_arena_take(arena, count * sizeof *holes), *hole = holes;
    int32_t *ys = st_arena_take(arena, ((uint64_t)rows + 1) * sizeof *ys);
    int32_t *xs = st_arena_take(arena, ((uint64_t)columns + 1) * sizeof *xs);
    if (!holes || !ys || !xs)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", NAME);
    st_split_evenly(ys, rows, height, rng);
    st_split_evenly(xs, columns, width, rng);
    for (int32_t y = 0; y < rows; y++)
        for (int32_t x = 0; x < columns; x++, hole++) {
            hole->x = place(d, rng, xs + x, width, 0, &hole->width);
            hole->y = place(d, rng, ys + y, height, 1, &hole->height);
        }
    return st_image_drop(image, rng, &d->fill, holes, count, err);
}

const struct st_op st_op_drop_grid = {
    .name = NAME,
    .help = "overwrites a rectangle in each cell of a grid",
    .self_size = sizeof(struct drop_grid),
    .params = params,
    .plan = plan,
    .run = run,
};
