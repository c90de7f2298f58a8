/* random_affine.c - turns, moves, scales and shears the image by random amounts
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_op.h"

#include <math.h>

struct random_affine {
    struct st_list degrees, translate, scale, shear;
    struct st_warp_params warp;
};

static const char name[] = "random_affine";

#define LIST(text, member, low, high, what)                                                             \
    {                                                                                                   \
        .name = text, .type = ST_PARAM_LIST, .offset = offsetof(struct random_affine, member),          \
        .min = low, .max = high, .help = what                                                           \
    }

static const struct st_param params[] = {
    {.name = "degrees",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_affine, degrees),
     .min = -1e6,
     .max = 1e6,
     .required = true,
     .help = "clockwise: low and high, or one number for both directions"},
    LIST("translate", translate, 0, 1, "maximum move, as a fraction of the width and of the height"),
    LIST("scale", scale, 1e-6, 1e6, "low and high factor"),
    LIST("shear", shear, -1e6, 1e6,
         "degrees along x: low and high, or one number for both directions; with four numbers, the "
         "last two along y"),
    ST_WARP_PARAMS(struct random_affine, ST_FILTER_NEAREST),
    ST_WARP_CENTRE(struct random_affine),
    {0},
};

static int plan_shear(struct st_list *shear, struct stoker_error *err)
{
    if (shear->count == 0)
        return STOKER_OK;
    if (shear->count != 4)
        return st_param_angles(shear, name, "shear", err);
    if (shear->value[0] <= shear->value[1] && shear->value[2] <= shear->value[3])
        return STOKER_OK;
    return st_fail(err, STOKER_EINVAL, "%s: shear must be in ascending order: low, high, low, high",
                   name);
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct random_affine *a = self;
    int rc = st_warp_plan(&a->warp, shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_angles(&a->degrees, name, "degrees", err);
    if (rc >= 0)
        rc = st_param_range(&a->scale, name, "scale", 1, 1, err);
    if (rc >= 0)
        rc = plan_shear(&a->shear, err);
    if (rc >= 0 && a->translate.count && a->translate.count != 2)
        rc = st_fail(err, STOKER_EINVAL, "%s: translate must be two numbers (x, y), not %u", name,
                     a->translate.count);
    return rc;
}

/* Whole pixels. */
static double draw_move(struct st_rng *rng, double most)
{
    return rint(st_rng_range(rng, -most, most)); /* rounds halves to even, like Python */
}

static struct st_affine draw(const struct random_affine *a, struct st_rng *rng, int32_t width,
                             int32_t height)
{
    struct st_affine out = {.angle = st_rng_range(rng, a->degrees.value[0], a->degrees.value[1])};
    if (a->translate.count) {
        out.move[0] = draw_move(rng, a->translate.value[0] * width);
        out.move[1] = draw_move(rng, a->translate.value[1] * height);
    }
    out.scale = st_rng_range(rng, a->scale.value[0], a->scale.value[1]);
    for (uint32_t k = 0; 2 * k < a->shear.count; k++)
        out.shear[k] = st_rng_range(rng, a->shear.value[2 * k], a->shear.value[2 * k + 1]);
    return out;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_affine *a = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    struct st_warp warp;
    const struct st_affine affine = draw(a, rng, width, height);
    st_warp_affine(&warp, &affine, st_warp_centre(&a->warp), width, height);
    return st_warp_run(&a->warp, &warp, image, name, err);
}

const struct st_op st_op_random_affine = {
    .name = "random_affine",
    .help = "turns, moves, scales and shears the image by random amounts",
    .self_size = sizeof(struct random_affine),
    .params = params,
    .plan = plan,
    .run = run,
    .pending = true,
};
