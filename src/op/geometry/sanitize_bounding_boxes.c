/* sanitize_bounding_boxes.c - removes boxes that are too small, or that are none
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct sanitize {
    double min_size, min_area;
};

static const struct st_param params[] = {
    {.name = "min_size",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct sanitize, min_size),
     .def = 1,
     .min = 1,
     .max = 1e9,
     .help = "the least width and height"},
    {.name = "min_area",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct sanitize, min_area),
     .def = 1,
     .min = 1,
     .max = 1e9,
     .help = "the least area"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)self, (void)shape, (void)finish, (void)err;
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    (void)rng, (void)err;
    const struct sanitize *s = self;
    if (image->boxes)
        st_boxes_sanitize(image->boxes, (float)s->min_size, (float)s->min_area, st_image_width(image),
                          st_image_height(image));
    return STOKER_OK;
}

const struct st_op st_op_sanitize_bounding_boxes = {
    .name = "sanitize_bounding_boxes",
    .help = "removes boxes that are too small, and what belongs to them",
    .self_size = sizeof(struct sanitize),
    .params = params,
    .plan = plan,
    .run = run,
};
