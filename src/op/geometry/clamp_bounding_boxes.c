/* clamp_bounding_boxes.c - cuts off what boxes have outside of their image
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

static const struct st_param no_params[] = {{0}};

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    (void)self, (void)rng, (void)err;
    if (image->boxes)
        st_boxes_clamp(image->boxes, st_image_width(image), st_image_height(image));
    return STOKER_OK;
}

const struct st_op st_op_clamp_bounding_boxes = {
    .name = "clamp_bounding_boxes",
    .help = "cuts off what boxes have outside of their image",
    .self_size = 1,
    .params = no_params,
    .run = run,
};
