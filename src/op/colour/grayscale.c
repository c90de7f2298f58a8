/* grayscale.c - converts images to grey, always or at random
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct grayscale {
    int32_t channels;
    double p;
};

static const struct st_param always_params[] = {
    {.name = "num_output_channels",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct grayscale, channels),
     .def = 1,
     .min = 1,
     .max = 3,
     .help = "1, or 3 with equal values"},
    {0},
};

static const struct st_param random_params[] = {
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct grayscale, p),
     .def = 0.1,
     .max = 1,
     .help = "probability"},
    {0},
};

static int make_grey(struct st_image *image, int32_t channels, struct stoker_error *err)
{
    struct st_view pixels, out;
    if (image->numbers || image->boxes)
        return STOKER_OK;
    if (st_image_channels(image) == channels)
        return channels == 3 ? st_image_do(image, (struct st_pending){.kind = ST_PENDING_GREY}, err)
                             : STOKER_OK;
    if (channels == 1)
        return st_image_grey(image, err);
    const int rc = st_image_pixels(image, false, true, &pixels, err);
    if (rc < 0)
        return rc;
    if (!st_view_take(&out, &image->work->arena, pixels.width, pixels.height, channels))
        return st_fail(err, STOKER_ENOMEM, "no memory for an image of %d x %d pixels", pixels.width,
                       pixels.height);
    st_colour_triple(&pixels, &out);
    st_image_set(image, out, true);
    return STOKER_OK;
}

static int plan_always(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                       struct stoker_error *err)
{
    (void)finish;
    const struct grayscale *g = self;
    if (g->channels == 2)
        return st_fail(err, STOKER_EINVAL, "grayscale: num_output_channels is 2; allowed are 1 and 3");
    shape->channels = g->channels;
    return st_plan_picture(shape, "grayscale", err);
}

static int plan_random(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                       struct stoker_error *err)
{
    (void)self;
    (void)finish;
    return st_plan_picture(shape, "random_grayscale", err);
}

static int run_always(const void *self, struct st_rng *rng, struct st_image *image,
                      struct stoker_error *err)
{
    (void)rng;
    const struct grayscale *g = self;
    return make_grey(image, g->channels, err);
}

static int run_random(const void *self, struct st_rng *rng, struct st_image *image,
                      struct stoker_error *err)
{
    const struct grayscale *g = self;
    return st_rng_f64(rng) < g->p ? make_grey(image, st_image_channels(image), err) : STOKER_OK;
}

const struct st_op st_op_grayscale = {
    .name = "grayscale",
    .help = "converts the image to grey",
    .self_size = sizeof(struct grayscale),
    .params = always_params,
    .plan = plan_always,
    .run = run_always,
    .pending = true,
};

const struct st_op st_op_random_grayscale = {
    .name = "random_grayscale",
    .help = "converts the image to grey with probability p",
    .self_size = sizeof(struct grayscale),
    .params = random_params,
    .plan = plan_random,
    .run = run_random,
    .pending = true,
};
