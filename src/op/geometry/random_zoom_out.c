/* random_zoom_out.c - puts the image at a random place of a larger one, with a given probability
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/border.h"

struct random_zoom_out {
    struct st_list side_range;
    double p;
    struct st_border border;
};

static const char name[] = "random_zoom_out";

static const struct st_param params[] = {
    {.name = "side_range",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_zoom_out, side_range),
     .min = 1,
     .max = 1e6,
     .help = "how many times as large the new one is: low and high (1, 4)"},
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_zoom_out, p),
     .def = 0.5,
     .max = 1,
     .help = "probability"},
    {.name = "fill",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_zoom_out, border.fill),
     .max = 255,
     .help = "value of the border, or one per channel"},
    {.name = "mask_fill",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct random_zoom_out, border.mask_fill),
     .max = 255,
     .help = "value of the border of masks"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct random_zoom_out *z = self;
    int rc = st_plan_movable(shape, name, err);
    if (rc >= 0)
        rc = st_param_range(&z->side_range, name, "side_range", 1, 4, err);
    if (rc >= 0)
        rc = st_border_plan(&z->border, shape, finish, name, err);
    shape->width = shape->height = ST_SIZE_DIFFERS;
    return rc;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_zoom_out *z = self;
    const double width = st_image_width(image), height = st_image_height(image);
    if (!(st_rng_f64(rng) < z->p))
        return STOKER_OK;
    const double times = st_rng_range(rng, z->side_range.value[0], z->side_range.value[1]);
    const double across = width * times, down = height * times;
    if (!(across <= INT32_MAX && down <= INT32_MAX))
        return st_fail(err, STOKER_ELIMIT, "%s: %.0f x %.0f pixels are too many", name, across, down);
    const int32_t wide = (int32_t)across - (int32_t)width, high = (int32_t)down - (int32_t)height;
    struct st_sides sides = {.left = (int32_t)(wide * st_rng_f64(rng)),
                             .top = (int32_t)(high * st_rng_f64(rng))};
    sides.right = wide - sides.left;
    sides.bottom = high - sides.top;
    return st_image_pad(image, &z->border, &sides, 1, NULL, name, err);
}

const struct st_op st_op_random_zoom_out = {
    .name = "random_zoom_out",
    .help = "puts the image at a random place of a larger one",
    .self_size = sizeof(struct random_zoom_out),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
