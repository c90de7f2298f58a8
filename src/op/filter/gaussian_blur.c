/* gaussian_blur.c - blurs by a random amount
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct gaussian_blur {
    struct st_list kernel_size, sigma;
    int32_t across, down; /* taps */
};

static const struct st_param params[] = {
    {.name = "kernel_size",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct gaussian_blur, kernel_size),
     .min = 1,
     .max = 65535,
     .required = true,
     .help = "odd: horizontal and vertical, or one number for both"},
    {.name = "sigma",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct gaussian_blur, sigma),
     .min = 1e-6,
     .max = 1e6,
     .help = "standard deviation, or low and high of a range to draw from (0.1, 2)"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct gaussian_blur *b = self;
    int rc = st_plan_bytes(shape, finish, "gaussian_blur", err);
    if (rc >= 0)
        rc = st_param_size(&b->kernel_size, "gaussian_blur", "kernel_size", &b->across, &b->down, err);
    if (rc < 0)
        return rc;
    if (b->across % 2 == 0 || b->down % 2 == 0)
        return st_fail(err, STOKER_EINVAL, "gaussian_blur: kernel_size must be odd, not %d x %d",
                       b->across, b->down);
    if (b->sigma.count == 1)
        b->sigma = (struct st_list){.count = 2, .value = {b->sigma.value[0], b->sigma.value[0]}};
    return st_param_range(&b->sigma, "gaussian_blur", "sigma", 0.1, 2.0, err);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct gaussian_blur *b = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const struct st_pending op = {.kind = ST_PENDING_BLUR,
                                  .across = b->across,
                                  .down = b->down,
                                  .sigma = st_rng_range(rng, b->sigma.value[0], b->sigma.value[1])};
    if (b->across / 2 >= width || b->down / 2 >= height)
        return st_fail(err, STOKER_EINVAL,
                       "gaussian_blur: a kernel of %d x %d is too large for an image of "
                       "%d x %d",
                       b->across, b->down, width, height);
    return st_image_do(image, op, err);
}

const struct st_op st_op_gaussian_blur = {
    .name = "gaussian_blur",
    .help = "blurs by a random amount",
    .self_size = sizeof(struct gaussian_blur),
    .params = params,
    .plan = plan,
    .run = run,
    .pending = true,
};
