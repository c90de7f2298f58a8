/* random_adjust_sharpness.c - sharpens or softens the image with a given probability
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct random_adjust_sharpness {
    double factor, p;
};

static const struct st_param params[] = {
    {.name = "sharpness_factor",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_adjust_sharpness, factor),
     .min = -1e6,
     .max = 1e6,
     .required = true,
     .help = "above 1 sharpens, below 1 softens, 0 is softest"},
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_adjust_sharpness, p),
     .def = 0.5,
     .max = 1,
     .help = "probability"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)self;
    (void)finish;
    return st_plan_picture(shape, "random_adjust_sharpness", err);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_adjust_sharpness *s = self;
    if (st_rng_f64(rng) >= s->p)
        return STOKER_OK;
    return st_image_do(
        image, (struct st_pending){.kind = ST_PENDING_SHARPNESS, .factor = (float)s->factor}, err);
}

const struct st_op st_op_random_adjust_sharpness = {
    .name = "random_adjust_sharpness",
    .help = "sharpens or softens the image with probability p",
    .self_size = sizeof(struct random_adjust_sharpness),
    .params = params,
    .plan = plan,
    .run = run,
    .pending = true,
};
