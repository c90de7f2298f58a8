/* center_crop.c - crops the centre of an image; images that are too small get a border
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/border.h"

#include <math.h>

struct center_crop {
    struct st_list size;
    int32_t height, width;
    struct st_border border;
};

static const struct st_param params[] = {
    {.name = "size",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct center_crop, size),
     .min = 1,
     .max = 1 << 20,
     .required = true,
     .help = "height and width, or one number for both"},
    ST_BORDER_PARAMS(struct center_crop),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct center_crop *c = self;
    int rc = st_plan_movable(shape, "center_crop", err);
    if (rc >= 0)
        rc = st_param_size(&c->size, "center_crop", "size", &c->height, &c->width, err);
    if (rc >= 0)
        rc = st_border_plan(&c->border, shape, finish, "center_crop", err);
    shape->width = c->width;
    shape->height = c->height;
    return rc;
}

static uint32_t middle(int32_t has, int32_t wants)
{
    return (uint32_t)rint((has - wants) / 2.0); /* rounds halves to even, like Python */
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    (void)rng;
    const struct center_crop *c = self;
    int32_t width = st_image_width(image), height = st_image_height(image);
    const int32_t wide = c->width > width ? c->width - width : 0;
    const int32_t high = c->height > height ? c->height - height : 0;
    width += wide;
    height += high;
    const struct st_region window = {middle(width, c->width), middle(height, c->height),
                                     (uint32_t)c->width, (uint32_t)c->height};
    if (!wide && !high)
        return st_image_crop(image, window, err);
    const struct st_sides sides = {wide / 2, high / 2, (wide + 1) / 2, (high + 1) / 2};
    return st_image_pad(image, &c->border, &sides, 1, &window, "center_crop", err);
}

const struct st_op st_op_center_crop = {
    .name = "center_crop",
    .help = "crops the centre; smaller images get a border",
    .self_size = sizeof(struct center_crop),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
