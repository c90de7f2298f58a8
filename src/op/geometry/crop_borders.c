/* crop_borders.c - crops random parts of the borders, as Albumentations' RandomCropFromBorders does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct crop_borders {
    double left, top, right, bottom;
};

static const char NAME[] = "crop_borders";

#define PART(name_)                                                                                     \
    {                                                                                                   \
        .name = #name_, .type = ST_PARAM_FLOAT, .offset = offsetof(struct crop_borders, name_),         \
        .max = 1, .help = "part of the image's side that may be cut off there"                          \
    }

static const struct st_param params[] = {PART(left), PART(top), PART(right), PART(bottom), {0}};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)self;
    (void)finish;
    shape->width = shape->height = ST_SIZE_DIFFERS;
    return st_plan_movable(shape, NAME, err);
}

/* Where the part begins and ends along an axis: at least one pixel is left, if there is one. */
static int draw_side(double first, double last, struct st_rng *rng, int32_t length, uint32_t *begin,
                     uint32_t *pixels, struct stoker_error *err)
{
    const int32_t from = (int32_t)st_rng_below(rng, (uint64_t)(first * length) + 1);
    const int32_t end = (int32_t)((1 - last) * length), least = end > from ? end : from + 1;
    if (least > length)
        return st_fail(err, STOKER_EINVAL, "%s: nothing is left of a side of %d pixels", NAME, length);
    const int32_t to = least + (int32_t)st_rng_below(rng, (uint64_t)(length - least) + 1);
    *begin = (uint32_t)from;
    *pixels = (uint32_t)(to - from);
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct crop_borders *c = self;
    struct st_region part = {0};
    int rc = draw_side(c->left, c->right, rng, st_image_width(image), &part.x, &part.width, err);
    if (rc >= 0)
        rc = draw_side(c->top, c->bottom, rng, st_image_height(image), &part.y, &part.height, err);
    return rc < 0 ? rc : st_image_crop(image, part, err);
}

const struct st_op st_op_crop_borders = {
    .name = NAME,
    .help = "crops random parts of the borders",
    .self_size = sizeof(struct crop_borders),
    .params = params,
    .plan = plan,
    .run = run,
};
