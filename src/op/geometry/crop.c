/* crop.c - crops a given part, or the middle, of an image that is at least as large
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

enum { MIDDLE = -1, MOST = 1 << 20 };

struct crop {
    int32_t x, y, width, height;
};

static const struct st_param params[] = {
    {.name = "width",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct crop, width),
     .min = 1,
     .max = MOST,
     .required = true,
     .help = "width of the part"},
    {.name = "height",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct crop, height),
     .min = 1,
     .max = MOST,
     .required = true,
     .help = "height of the part"},
    {.name = "x",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct crop, x),
     .def = MIDDLE,
     .max = MOST,
     .help = "columns left of it; the middle, rounded down, without x"},
    {.name = "y",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct crop, y),
     .def = MIDDLE,
     .max = MOST,
     .help = "rows above it; the middle, rounded down, without y"},
    {0},
};

static int locate(const struct crop *c, int32_t width, int32_t height, struct st_region *out,
                  struct stoker_error *err)
{
    const int32_t x = c->x == MIDDLE ? (width - c->width) / 2 : c->x;
    const int32_t y = c->y == MIDDLE ? (height - c->height) / 2 : c->y;
    if (c->width > width || c->height > height || x > width - c->width || y > height - c->height)
        return st_fail(err, STOKER_EINVAL,
                       "crop: a part of %d x %d at %d, %d does not lie inside an image of %d x %d",
                       c->width, c->height, x > 0 ? x : 0, y > 0 ? y : 0, width, height);
    *out = (struct st_region){(uint32_t)x, (uint32_t)y, (uint32_t)c->width, (uint32_t)c->height};
    return STOKER_OK;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)finish;
    const struct crop *c = self;
    struct st_region part;
    int rc = st_plan_movable(shape, "crop", err);
    if (rc >= 0 && shape->width >= 0 && shape->height >= 0)
        rc = locate(c, shape->width, shape->height, &part, err);
    shape->width = c->width;
    shape->height = c->height;
    return rc;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    (void)rng;
    struct st_region part;
    const int rc = locate(self, st_image_width(image), st_image_height(image), &part, err);
    return rc < 0 ? rc : st_image_crop(image, part, err);
}

const struct st_op st_op_crop = {
    .name = "crop",
    .help = "crops a given part, or the middle",
    .self_size = sizeof(struct crop),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
