/* pad.c - adds a border to the image
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/border.h"

#include <stdlib.h>

enum { ADDED_MAX = 1 << 29 };

struct pad {
    struct st_border border;
};

static const struct st_param params[] = {
    {.name = "padding",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct pad, border.padding),
     .min = -(1 << 20),
     .max = 1 << 20,
     .required = true,
     .help = "pixels added: one number, or left/right and top/bottom, or left, top, right, bottom"},
    ST_BORDER_PARAMS(struct pad),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct pad *p = self;
    int rc = st_plan_movable(shape, "pad", err);
    if (rc >= 0)
        rc = st_border_plan(&p->border, shape, finish, "pad", err);
    if (rc < 0)
        return rc;
    if (p->border.fill_refused)
        return st_fail(err, STOKER_EINVAL,
                       "pad: the image consists of floats here, which cannot be filled "
                       "with this value; move pad before to_tensor and normalize");
    const struct st_sides sides = st_border_sides(&p->border);
    const bool known = shape->width >= 0 && shape->height >= 0;
    if (shape->width == ST_SIZE_AS_READ && shape->height == ST_SIZE_AS_READ) {
        shape->more_width += sides.left + sides.right;
        shape->more_height += sides.top + sides.bottom;
        if (abs(shape->more_width) > ADDED_MAX || abs(shape->more_height) > ADDED_MAX)
            shape->width = shape->height = ST_SIZE_DIFFERS;
        return STOKER_OK;
    }
    const int32_t width = shape->width + sides.left + sides.right;
    const int32_t height = shape->height + sides.top + sides.bottom;
    if (known && (width <= 0 || height <= 0))
        return st_fail(err, STOKER_EINVAL, "pad: the negative padding removes the whole image");
    shape->width = known ? width : ST_SIZE_DIFFERS;
    shape->height = known ? height : ST_SIZE_DIFFERS;
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    (void)rng;
    const struct pad *p = self;
    const struct st_sides sides = st_border_sides(&p->border);
    return st_image_pad(image, &p->border, &sides, 1, NULL, "pad", err);
}

const struct st_op st_op_pad = {
    .name = "pad",
    .help = "adds a border",
    .self_size = sizeof(struct pad),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
