/* random_crop.c - crops a part of given size at a random position
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/border.h"

struct random_crop {
    struct st_list size;
    int32_t height, width;
    bool pad_if_needed;
    struct st_border border;
};

static const struct st_param params[] = {
    {.name = "size",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_crop, size),
     .min = 1,
     .max = 1 << 20,
     .required = true,
     .help = "height and width, or one number for both"},
    {.name = "padding",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_crop, border.padding),
     .min = -(1 << 20),
     .max = 1 << 20,
     .help =
         "added before cropping: one number, or left/right and top/bottom, or left, top, right, bottom"},
    {.name = "pad_if_needed",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct random_crop, pad_if_needed),
     .max = 1,
     .help = "pads images that are smaller than the crop"},
    ST_BORDER_PARAMS(struct random_crop),
    {0},
};

static int too_small(const struct random_crop *c, int32_t width, int32_t height,
                     struct stoker_error *err)
{
    return st_fail(err, STOKER_EINVAL,
                   "random_crop: a crop of %d x %d does not fit into an image of %d x %d; "
                   "pad_if_needed=true pads such images",
                   c->width, c->height, width, height);
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct random_crop *c = self;
    int rc = st_plan_movable(shape, "random_crop", err);
    if (rc >= 0)
        rc = st_param_size(&c->size, "random_crop", "size", &c->height, &c->width, err);
    if (rc >= 0)
        rc = st_border_plan(&c->border, shape, finish, "random_crop", err);
    if (rc < 0)
        return rc;
    const struct st_sides sides = st_border_sides(&c->border);
    if (!c->pad_if_needed && shape->width >= 0 && shape->height >= 0) {
        const int32_t width = shape->width + sides.left + sides.right;
        const int32_t height = shape->height + sides.top + sides.bottom;
        if (width < c->width || height < c->height)
            return too_small(c, width, height, err);
    }
    shape->width = c->width;
    shape->height = c->height;
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_crop *c = self;
    struct st_sides sides[2] = {st_border_sides(&c->border)};
    int64_t width = (int64_t)st_image_width(image) + sides[0].left + sides[0].right;
    int64_t height = (int64_t)st_image_height(image) + sides[0].top + sides[0].bottom;
    if (c->pad_if_needed && width < c->width) { /* on both sides: the crop can be anywhere */
        sides[1].left = sides[1].right = (int32_t)(c->width - width);
        width += 2 * (int64_t)sides[1].left;
    }
    if (c->pad_if_needed && height < c->height) {
        sides[1].top = sides[1].bottom = (int32_t)(c->height - height);
        height += 2 * (int64_t)sides[1].top;
    }
    if (width < c->width || height < c->height)
        return too_small(c, (int32_t)width, (int32_t)height, err);
    struct st_region window = {.width = (uint32_t)c->width, .height = (uint32_t)c->height};
    window.y = (uint32_t)st_rng_below(rng, (uint64_t)(height - c->height + 1));
    window.x = (uint32_t)st_rng_below(rng, (uint64_t)(width - c->width + 1));
    if (!c->border.padding.count && !sides[1].left && !sides[1].top)
        return st_image_crop(image, window, err);
    return st_image_pad(image, &c->border, sides, 2, &window, "random_crop", err);
}

const struct st_op st_op_random_crop = {
    .name = "random_crop",
    .help = "crops a part of given size at a random position",
    .self_size = sizeof(struct random_crop),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
