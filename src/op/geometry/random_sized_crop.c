/* random_sized_crop.c - crops a part of random height and given shape, and resizes it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include <math.h>

enum { SIDE_MAX = 1 << 20 };

struct random_sized_crop {
    struct st_list size, heights;
    double ratio;
    int32_t height, width, filter;
};

static const struct st_param params[] = {
    {.name = "size",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_sized_crop, size),
     .min = 1,
     .max = SIDE_MAX,
     .required = true,
     .help = "height and width of the result, or one number for both"},
    {.name = "heights",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_sized_crop, heights),
     .min = 1,
     .max = SIDE_MAX,
     .required = true,
     .help = "the part's height: least, most"},
    {.name = "ratio",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_sized_crop, ratio),
     .def = 1,
     .max = 1e6,
     .help = "the part's width divided by its height"},
    {.name = "interpolation",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct random_sized_crop, filter),
     .def = ST_FILTER_CV_LINEAR,
     .words = st_filter_words,
     .help = "the filter"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    static const char name[] = "random_sized_crop";
    struct random_sized_crop *c = self;
    const double *heights = c->heights.value;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_size(&c->size, name, "size", &c->height, &c->width, err);
    if (rc < 0)
        return rc;
    if (c->heights.count != 2 || heights[0] > heights[1] || heights[0] != floor(heights[0]) ||
        heights[1] != floor(heights[1]))
        return st_fail(err, STOKER_EINVAL, "%s: heights must be two integers in ascending order", name);
    shape->width = c->width;
    shape->height = c->height;
    return STOKER_OK;
}

static double lesser(double a, double b) { return a < b ? a : b; }

/* A part that is larger than the image is cut off at its sides. */
static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_sized_crop *c = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const uint64_t many = (uint64_t)(c->heights.value[1] - c->heights.value[0]) + 1;
    const double drawn = c->heights.value[0] + (double)st_rng_below(rng, many);
    struct st_region part = {.width = (uint32_t)lesser(floor(drawn * c->ratio), width),
                             .height = (uint32_t)lesser(drawn, height)};
    if (!part.width)
        return st_fail(err, STOKER_EINVAL, "a part of %g pixels in height has no width", drawn);
    part.y = (uint32_t)st_rng_below(rng, (uint64_t)height - part.height + 1);
    part.x = (uint32_t)st_rng_below(rng, (uint64_t)width - part.width + 1);
    const int rc = st_image_crop(image, part, err);
    return rc < 0 ? rc : st_image_resize(image, c->width, c->height, (enum st_filter)c->filter, err);
}

const struct st_op st_op_random_sized_crop = {
    .name = "random_sized_crop",
    .help = "crops a part of random height and resizes it",
    .self_size = sizeof(struct random_sized_crop),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
