/* random_rotation.c - turns the image by a random angle
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_op.h"

struct random_rotation {
    struct st_list degrees;
    bool expand;
    struct st_warp_params warp;
};

static const char name[] = "random_rotation";

static const struct st_param params[] = {
    {.name = "degrees",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_rotation, degrees),
     .min = -1e6,
     .max = 1e6,
     .required = true,
     .help = "counter-clockwise: low and high, or one number for both directions"},
    {.name = "expand",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct random_rotation, expand),
     .max = 1,
     .help = "whether the result is as large as the turned image"},
    ST_WARP_PARAMS(struct random_rotation, ST_FILTER_NEAREST),
    ST_WARP_CENTRE(struct random_rotation),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct random_rotation *r = self;
    int rc = st_warp_plan(&r->warp, shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_angles(&r->degrees, name, "degrees", err);
    if (r->expand)
        shape->width = shape->height = ST_SIZE_DIFFERS;
    return rc;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_rotation *r = self;
    struct st_warp warp;
    const double angle = st_rng_range(rng, r->degrees.value[0], r->degrees.value[1]);
    const int rc = st_warp_rotation(&warp, angle, r->expand, st_warp_centre(&r->warp),
                                    st_image_width(image), st_image_height(image), name, err);
    return rc < 0 ? rc : st_warp_run(&r->warp, &warp, image, name, err);
}

const struct st_op st_op_random_rotation = {
    .name = "random_rotation",
    .help = "turns the image by a random angle",
    .self_size = sizeof(struct random_rotation),
    .params = params,
    .plan = plan,
    .run = run,
    .pending = true,
};
