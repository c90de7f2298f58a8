/* random_turn.c - mirrors, flips and turns the image by right angles: one of the eight orientations
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp.h"
#include "op/op.h"

#include <math.h>

enum { ORIENTATIONS = 8 };

struct random_turn {
    struct st_list of;
};

static const struct st_param params[] = {
    {.name = "of",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_turn, of),
     .min = 1,
     .max = ORIENTATIONS,
     .required = true,
     .help = "EXIF orientations: what makes an image with one of them upright is done; one is drawn"},
    {0},
};

static bool transposes(const struct random_turn *t, uint32_t k)
{
    return st_turn_upright((uint32_t)t->of.value[k]).transpose;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)finish;
    const struct random_turn *t = self;
    uint32_t count = 0;
    for (uint32_t k = 0; k < t->of.count; k++) {
        if (t->of.value[k] != floor(t->of.value[k]))
            return st_fail(err, STOKER_EINVAL, "random_turn: %g is no orientation: they are 1 to 8",
                           t->of.value[k]);
        count += transposes(t, k);
    }
    const int rc = st_plan_movable(shape, "random_turn", err);
    if (rc < 0 || !count)
        return rc;
    if (count == t->of.count && shape->width >= 0 && shape->height >= 0) {
        const int32_t width = shape->width;
        shape->width = shape->height;
        shape->height = width;
    } else if (shape->width < 0 || shape->width != shape->height) {
        shape->width = shape->height = ST_SIZE_DIFFERS;
    }
    return STOKER_OK;
}

/* On decoding, if there is nothing before it: the other sides are then mirrored and flipped. */
static int transpose(struct st_image *image, struct stoker_error *err)
{
    const struct st_turn turn = image->turn;
    const struct st_region crop = image->crop;
    const bool mirror = image->mirror;
    if (image->boxes) {
        st_boxes_transpose(image->boxes);
        st_image_of_boxes(image, image->work, (int32_t)crop.height, (int32_t)crop.width, image->boxes);
        return STOKER_OK;
    }
    if (!image->encoded || image->resized || image->edges.column || image->pending_count)
        return st_image_transpose(image, "random_turn", err);
    image->turn = (struct st_turn){!turn.transpose, turn.flip, turn.mirror};
    image->crop = (struct st_region){crop.y, crop.x, crop.height, crop.width};
    image->mirror = image->flip;
    image->flip = mirror;
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_turn *t = self;
    const uint32_t drawn = (uint32_t)st_rng_below(rng, t->of.count);
    const struct st_turn turn = st_turn_upright((uint32_t)t->of.value[drawn]);
    const int rc = turn.transpose ? transpose(image, err) : STOKER_OK;
    if (rc < 0)
        return rc;
    if (turn.mirror)
        st_image_mirror(image);
    if (turn.flip)
        st_image_flip(image);
    return STOKER_OK;
}

const struct st_op st_op_random_turn = {
    .name = "random_turn",
    .help = "mirrors, flips or turns by right angles, drawn from a list",
    .self_size = sizeof(struct random_turn),
    .params = params,
    .plan = plan,
    .run = run,
    .pending = true,
};
