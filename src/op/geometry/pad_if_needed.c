/* pad_if_needed.c - adds a border to images that are too small, or whose sides are no multiples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/border.h"

enum { MOST = 1 << 20 };
enum position { CENTER, TOP_LEFT, TOP_RIGHT, BOTTOM_LEFT, BOTTOM_RIGHT, RANDOM };
static const char *const position_words[] = {"center",       "top_left", "top_right", "bottom_left",
                                             "bottom_right", "random",   NULL};

struct pad_if_needed {
    int32_t min_height, min_width, height_divisor, width_divisor;
    int32_t position; /* of the image in the result */
    struct st_border border;
};

#define LENGTH(member, text)                                                                            \
    {                                                                                                   \
        .name = #member, .type = ST_PARAM_INT, .offset = offsetof(struct pad_if_needed, member),        \
        .max = MOST, .help = text                                                                       \
    }

static const struct st_param params[] = {
    LENGTH(min_height, "the least height"),
    LENGTH(min_width, "the least width"),
    LENGTH(height_divisor, "the height becomes a multiple of this, if there is no least one"),
    LENGTH(width_divisor, "the width becomes a multiple of this, if there is no least one"),
    {.name = "position",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct pad_if_needed, position),
     .words = position_words,
     .help = "where in the result the image is"},
    ST_BORDER_PARAMS(struct pad_if_needed),
    {0},
};

/* What a side lacks. */
static int32_t lacking(int32_t length, int32_t least, int32_t divisor)
{
    if (least)
        return length < least ? least - length : 0;
    return divisor ? (divisor - length % divisor) % divisor : 0;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct pad_if_needed *p = self;
    int rc = st_plan_movable(shape, "pad_if_needed", err);
    if (rc >= 0)
        rc = st_border_plan(&p->border, shape, finish, "pad_if_needed", err);
    if (rc < 0)
        return rc;
    if (p->border.fill_refused)
        return st_fail(err, STOKER_EINVAL,
                       "pad_if_needed: the image consists of floats here, which cannot be filled with "
                       "this value; move it before to_tensor and normalize");
    const bool known = shape->width >= 0 && shape->height >= 0;
    shape->width =
        known ? shape->width + lacking(shape->width, p->min_width, p->width_divisor) : ST_SIZE_DIFFERS;
    shape->height = known ? shape->height + lacking(shape->height, p->min_height, p->height_divisor)
                          : ST_SIZE_DIFFERS;
    return STOKER_OK;
}

/* The part of `lack` that comes before the image. */
static int32_t before(const struct pad_if_needed *p, struct st_rng *rng, int32_t lack, bool image_first)
{
    if (p->position == CENTER)
        return lack / 2;
    if (p->position == RANDOM)
        return (int32_t)st_rng_below(rng, (uint64_t)lack + 1);
    return image_first ? 0 : lack;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct pad_if_needed *p = self;
    const int32_t across = lacking(st_image_width(image), p->min_width, p->width_divisor);
    const int32_t down = lacking(st_image_height(image), p->min_height, p->height_divisor);
    const bool at_top = p->position == TOP_LEFT || p->position == TOP_RIGHT;
    const bool at_left = p->position == TOP_LEFT || p->position == BOTTOM_LEFT;
    struct st_sides sides;
    sides.top = before(p, rng, down, at_top);
    sides.bottom = down - sides.top;
    sides.left = before(p, rng, across, at_left);
    sides.right = across - sides.left;
    if (!across && !down)
        return STOKER_OK;
    return st_image_pad(image, &p->border, &sides, 1, NULL, "pad_if_needed", err);
}

const struct st_op st_op_pad_if_needed = {
    .name = "pad_if_needed",
    .help = "adds a border where an image is too small",
    .self_size = sizeof(struct pad_if_needed),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
