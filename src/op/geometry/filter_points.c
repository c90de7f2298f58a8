/* filter_points.c - begin_points and filter_points: how Albumentations checks key points, and removes
 * those that are outside of the image behind each step
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

static const struct st_param no_params[] = {{0}};

static int run_begin(const void *self, struct st_rng *rng, struct st_image *image,
                     struct stoker_error *err)
{
    (void)self, (void)rng;
    struct st_boxes *boxes = image->boxes;
    if (!boxes || !boxes->points)
        return STOKER_OK;
    if (!boxes->which || boxes->count)
        return st_fail(err, STOKER_EINVAL,
                       "key points of an object stay together, and none of them can be removed: give "
                       "keypoint_params remove_invisible=False, or store them as [N, 2]");
    const float width = (float)st_image_width(image), height = (float)st_image_height(image);
    for (uint64_t k = 0; k < boxes->points; k++) {
        const float *at = boxes->point + k * boxes->each;
        if (at[0] < 0 || at[0] >= width || at[1] < 0 || at[1] >= height)
            return st_fail(err, STOKER_EINVAL,
                           "key point %llu, at %g, %g, is outside of the image of %g x %g pixels; "
                           "remove_invisible=False in keypoint_params permits that",
                           (unsigned long long)k, (double)at[0], (double)at[1], (double)width,
                           (double)height);
    }
    boxes->seen = true;
    return STOKER_OK;
}

static int run_filter(const void *self, struct st_rng *rng, struct st_image *image,
                      struct stoker_error *err)
{
    (void)self, (void)rng, (void)err;
    if (image->boxes && image->boxes->seen)
        st_points_filter(image->boxes, st_image_width(image), st_image_height(image));
    return STOKER_OK;
}

const struct st_op st_op_begin_points = {
    .name = "begin_points",
    .help = "checks key points; those that are covered behind it are removed",
    .self_size = 1,
    .params = no_params,
    .run = run_begin,
};

const struct st_op st_op_filter_points = {
    .name = "filter_points",
    .help = "removes key points that are outside of the image",
    .self_size = 1,
    .params = no_params,
    .run = run_filter,
};
