/* random_scale.c - resizes by a random factor
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct random_scale {
    struct st_list factor;
    int32_t filter;
};

static const struct st_param params[] = {
    {.name = "factor",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_scale, factor),
     .max = 1e6,
     .help = "of both sides: low, high (0.9, 1.1)"},
    {.name = "interpolation",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct random_scale, filter),
     .def = ST_FILTER_CV_LINEAR,
     .words = st_filter_words,
     .help = "the filter"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct random_scale *s = self;
    int rc = st_plan_bytes(shape, finish, "random_scale", err);
    if (rc >= 0)
        rc = st_param_range(&s->factor, "random_scale", "factor", 0.9, 1.1, err);
    shape->width = shape->height = ST_SIZE_DIFFERS;
    return rc;
}

/* The sides are truncated to whole pixels. */
static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_scale *s = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const double by = st_rng_range(rng, s->factor.value[0], s->factor.value[1]);
    const double wide = width * by, high = height * by;
    if (!(wide >= 1 && high >= 1 && wide <= INT32_MAX && high <= INT32_MAX))
        return st_fail(err, STOKER_EINVAL, "random_scale: %d x %d cannot be resized by a factor of %g",
                       width, height, by);
    return st_image_resize(image, (int32_t)wide, (int32_t)high, (enum st_filter)s->filter, err);
}

const struct st_op st_op_random_scale = {
    .name = "random_scale",
    .help = "resizes by a random factor",
    .self_size = sizeof(struct random_scale),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
