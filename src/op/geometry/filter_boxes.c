/* filter_boxes.c - begin_boxes and filter_boxes: how Albumentations checks boxes, and removes them
 * behind each step
 *
 * Boxes are not clamped by steps behind begin_boxes, so that filter_boxes knows which part of each is
 * outside of the image.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

struct begin_boxes {
    bool clip, remove_invalid;
};

static const struct st_param begin_params[] = {
    {.name = "clip",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct begin_boxes, clip),
     .max = 1,
     .help = "cuts off what boxes have outside of the image"},
    {.name = "remove_invalid",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct begin_boxes, remove_invalid),
     .max = 1,
     .help = "removes boxes without an area, and cuts off what is outside"},
    {0},
};

#define LIMIT(name_, member, most, text)                                                                \
    {                                                                                                   \
        .name = name_, .type = ST_PARAM_FLOAT, .offset = offsetof(struct st_box_limits, member),        \
        .max = most, .help = text                                                                       \
    }

static const struct st_param filter_params[] = {
    LIMIT("min_area", area, 1e12, "the least area inside of the image, in pixels"),
    LIMIT("min_visibility", visibility, 1, "the least part of its area that is inside"),
    LIMIT("min_width", width, 1e9, "the least width inside of the image"),
    LIMIT("min_height", height, 1e9, "the least height inside of the image"),
    LIMIT("max_ratio", ratio, 1e9, "how many times as long one side may be as the other; 0: any"),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)self;
    (void)shape;
    (void)finish;
    (void)err;
    return STOKER_OK;
}

/* As numpy's isclose with 0 and 1. */
static bool is_inside(double at, double length)
{
    const double part = at / length;
    return part >= -1e-8 && part <= 1 + 1e-8 + 1e-5;
}

static int check(const struct st_boxes *boxes, double width, double height, struct stoker_error *err)
{
    for (uint64_t k = 0; k < boxes->count; k++) {
        const float *box = boxes->box[k];
        if (!is_inside(box[0], width) || !is_inside(box[1], height) || !is_inside(box[2], width) ||
            !is_inside(box[3], height))
            return st_fail(
                err, STOKER_EINVAL,
                "box %llu, from %g, %g to %g, %g, reaches out of the image of %g x %g pixels; "
                "clip=True in bbox_params cuts boxes off",
                (unsigned long long)k, (double)box[0], (double)box[1], (double)box[2], (double)box[3],
                width, height);
        if (!(box[2] > box[0]) || !(box[3] > box[1]))
            return st_fail(err, STOKER_EINVAL,
                           "box %llu, from %g, %g to %g, %g, has no area; filter_invalid_bboxes=True in "
                           "bbox_params removes such boxes",
                           (unsigned long long)k, (double)box[0], (double)box[1], (double)box[2],
                           (double)box[3]);
    }
    return STOKER_OK;
}

static int run_begin(const void *self, struct st_rng *rng, struct st_image *image,
                     struct stoker_error *err)
{
    (void)rng;
    const struct begin_boxes *b = self;
    const struct st_box_limits none = {0};
    const int32_t width = st_image_width(image), height = st_image_height(image);
    if (!image->boxes)
        return STOKER_OK;
    if (b->clip)
        st_boxes_clamp(image->boxes, width, height);
    if (b->remove_invalid)
        st_boxes_filter(image->boxes, &none, width, height);
    image->boxes->loose = true;
    return check(image->boxes, width, height, err);
}

static int run_filter(const void *self, struct st_rng *rng, struct st_image *image,
                      struct stoker_error *err)
{
    (void)rng;
    (void)err;
    if (image->boxes)
        st_boxes_filter(image->boxes, self, st_image_width(image), st_image_height(image));
    return STOKER_OK;
}

const struct st_op st_op_begin_boxes = {
    .name = "begin_boxes",
    .help = "checks boxes; steps behind it leave what is outside to filter_boxes",
    .self_size = sizeof(struct begin_boxes),
    .params = begin_params,
    .plan = plan,
    .run = run_begin,
};

const struct st_op st_op_filter_boxes = {
    .name = "filter_boxes",
    .help = "cuts off what boxes have outside, and removes those with too little inside",
    .self_size = sizeof(struct st_box_limits),
    .params = filter_params,
    .plan = plan,
    .run = run_filter,
};
