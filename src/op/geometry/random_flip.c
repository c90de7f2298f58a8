/* random_flip.c - flips the image horizontally or vertically with a given probability
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct random_flip {
    double p;
};

static const struct st_param params[] = {
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_flip, p),
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
    return st_plan_movable(shape, "random flips", err);
}

static int run_horizontal(const void *self, struct st_rng *rng, struct st_image *image,
                          struct stoker_error *err)
{
    (void)err;
    const struct random_flip *f = self;
    if (st_rng_f64(rng) < f->p)
        st_image_mirror(image);
    return STOKER_OK;
}

static int run_vertical(const void *self, struct st_rng *rng, struct st_image *image,
                        struct stoker_error *err)
{
    (void)err;
    const struct random_flip *f = self;
    if (st_rng_f64(rng) < f->p)
        st_image_flip(image);
    return STOKER_OK;
}

const struct st_op st_op_random_horizontal_flip = {
    .name = "random_horizontal_flip",
    .help = "flips left to right with probability p",
    .self_size = sizeof(struct random_flip),
    .params = params,
    .plan = plan,
    .run = run_horizontal,
};

const struct st_op st_op_random_vertical_flip = {
    .name = "random_vertical_flip",
    .help = "flips upside down with probability p",
    .self_size = sizeof(struct random_flip),
    .params = params,
    .plan = plan,
    .run = run_vertical,
};
