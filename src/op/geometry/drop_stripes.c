/* drop_stripes.c - overwrites whole columns and rows of the image, as Albumentations' XYMasking does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/holes.h"

#include <math.h>

enum { MOST = 1 << 16, SIDE_MAX = 1 << 20 };

struct drop_stripes {
    struct st_list columns, rows, width, height;
    struct st_hole_fill fill;
};

static const char NAME[] = "drop_stripes";

#define RANGE(name_, most, text)                                                                        \
    {                                                                                                   \
        .name = #name_, .type = ST_PARAM_LIST, .offset = offsetof(struct drop_stripes, name_),          \
        .max = most, .required = true, .help = text                                                     \
    }

static const struct st_param params[] = {
    RANGE(columns, MOST, "how many stripes from top to bottom: least, most"),
    RANGE(rows, MOST, "how many stripes from left to right: least, most"),
    RANGE(width, SIDE_MAX, "of the former, in pixels: least, most"),
    RANGE(height, SIDE_MAX, "of the latter, in pixels: least, most"),
    ST_HOLE_FILL_PARAMS(struct drop_stripes),
    {0},
};

static int check(const struct st_list *range, const char *name, struct stoker_error *err)
{
    const double *v = range->value;
    if (range->count != 2 || !(v[0] <= v[1]) || v[0] != floor(v[0]) || v[1] != floor(v[1]))
        return st_fail(err, STOKER_EINVAL, "%s: %s must be two integers in ascending order", NAME, name);
    return STOKER_OK;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    const struct drop_stripes *d = self;
    int rc = st_holes_plan(&d->fill, shape, finish, NAME, err);
    if (rc >= 0)
        rc = check(&d->columns, "columns", err);
    if (rc >= 0)
        rc = check(&d->rows, "rows", err);
    if (rc >= 0)
        rc = check(&d->width, "width", err);
    return rc < 0 ? rc : check(&d->height, "height", err);
}

static uint32_t draw(const struct st_list *range, struct st_rng *rng)
{
    const uint64_t low = (uint64_t)range->value[0], high = (uint64_t)range->value[1];
    return (uint32_t)(low + st_rng_below(rng, high - low + 1));
}

static int fits(const struct st_list *range, int32_t length, struct stoker_error *err)
{
    if (range->value[1] <= length)
        return STOKER_OK;
    return st_fail(err, STOKER_EINVAL, "%s: %.0f pixels do not fit into an image of %d", NAME,
                   range->value[1], length);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct drop_stripes *d = self;
    const uint32_t width = (uint32_t)st_image_width(image), height = (uint32_t)st_image_height(image);
    const uint32_t columns = draw(&d->columns, rng), rows = draw(&d->rows, rng), count = columns + rows;
    int rc = fits(&d->width, (int32_t)width, err);
    if (rc >= 0)
        rc = fits(&d->height, (int32_t)height, err);
    if (rc < 0 || !count || !st_holes_have_work(&d->fill, image))
        return rc;
    struct st_region *holes = st_arena_take(&image->work->arena, count * sizeof *holes), *hole = holes;
    if (!holes)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", NAME);
    for (uint32_t k = 0; k < columns; k++, hole++) {
        *hole = (struct st_region){.width = draw(&d->width, rng), .height = height};
        hole->x = (uint32_t)st_rng_below(rng, (uint64_t)width - hole->width + 1);
    }
    for (uint32_t k = 0; k < rows; k++, hole++) {
        *hole = (struct st_region){.width = width, .height = draw(&d->height, rng)};
        hole->y = (uint32_t)st_rng_below(rng, (uint64_t)height - hole->height + 1);
    }
    return st_image_drop(image, rng, &d->fill, holes, count, err);
}

const struct st_op st_op_drop_stripes = {
    .name = NAME,
    .help = "overwrites whole columns and rows at random places",
    .self_size = sizeof(struct drop_stripes),
    .params = params,
    .plan = plan,
    .run = run,
};
