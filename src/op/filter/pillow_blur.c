/* pillow_blur.c - blurs by a random amount, as Pillow's GaussianBlur does
 *
 * gaussian_blur has torchvision's kernel, of a fixed size. Pillow applies boxes three times instead, as
 * wide as sigma requires, and its bytes differ.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/filter/pillow_blur.h"
#include "op/filter/box_blur.h"
#include "op/op.h"

struct pillow_blur {
    struct st_list sigma;
};

static const struct st_param params[] = {
    {.name = "sigma",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct pillow_blur, sigma),
     .max = ST_PILLOW_BLUR_SIGMA_MAX,
     .required = true,
     .help = "standard deviation, or low and high of a range to draw from"},
    {0},
};

static const char name[] = "pillow_blur";

int st_pillow_blur(struct st_image *image, double sigma, const char *op, struct stoker_error *err)
{
    const float radius = st_box_gaussian_radius((float)sigma, false);
    struct st_view pixels;
    if (image->numbers || image->boxes)
        return STOKER_OK;
    const int rc = st_image_pixels(image, true, true, &pixels, err); /* mirrored or not */
    if (rc < 0)
        return rc;
    if (st_box_blur(st_colour_rows_of(image->work), radius, radius, ST_BOX_GAUSSIAN_PASSES,
                    &image->work->arena, &pixels) < 0)
        return st_fail(err, STOKER_ENOMEM, "%s: no memory to blur %d x %d pixels", op, pixels.width,
                       pixels.height);
    return STOKER_OK;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct pillow_blur *b = self;
    (void)finish;
    const int rc = st_plan_picture(shape, name, err);
    if (rc < 0)
        return rc;
    if (b->sigma.count == 1)
        b->sigma = (struct st_list){.count = 2, .value = {b->sigma.value[0], b->sigma.value[0]}};
    return st_param_range(&b->sigma, name, "sigma", 0, 0, err);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct pillow_blur *b = self;
    return st_pillow_blur(image, st_rng_range(rng, b->sigma.value[0], b->sigma.value[1]), name, err);
}

const struct st_op st_op_pillow_blur = {
    .name = name,
    .help = "blurs by a random amount, as Pillow's GaussianBlur",
    .self_size = sizeof(struct pillow_blur),
    .params = params,
    .plan = plan,
    .run = run,
};
