/* random_resize.c - resizes to a random size: random_resize, random_shortest_size, scale_jitter
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"
#include "op/resize/sides.h"

#include <math.h>

enum { SIDE_MAX = 1 << 20 };

/* The parameters of all three. */
struct random_resize {
    struct st_list target, scale; /* of scale_jitter */
    struct st_list sides;         /* of random_shortest_size */
    int32_t min_size, max_size, filter;
};

#define SIDE(text, member, what)                                                                        \
    .name = text, .offset = offsetof(struct random_resize, member), .min = 1, .max = SIDE_MAX,          \
    .help = what

#define INTERPOLATION                                                                                   \
    .name = "interpolation", .type = ST_PARAM_WORD, .offset = offsetof(struct random_resize, filter),   \
    .def = ST_FILTER_BILINEAR, .words = st_filter_words, .help = "the filter"

/* Bytes that can be computed here; the size of the result varies. */
static int plan(struct st_shape *shape, const struct st_finish_spec *finish, const char *op,
                struct stoker_error *err)
{
    const int rc = st_plan_bytes(shape, finish, op, err);
    shape->width = shape->height = ST_SIZE_DIFFERS;
    return rc;
}

/* To sides that are truncated to whole pixels. */
static int resize_to(const struct random_resize *r, struct st_image *image, double width, double height,
                     const char *op, struct stoker_error *err)
{
    if (!(width >= 1 && width <= INT32_MAX && height >= 1 && height <= INT32_MAX))
        return st_fail(err, STOKER_EINVAL, "%s: %d x %d pixels cannot be resized to %.0f x %.0f", op,
                       st_image_width(image), st_image_height(image), floor(width), floor(height));
    return st_image_resize(image, (int32_t)width, (int32_t)height, (enum st_filter)r->filter, err);
}

/* ---- random_resize ------------------------------------------------------------------------------ */

static const struct st_param resize_params[] = {
    {SIDE("min_size", min_size, "the least length of the shorter side"), .type = ST_PARAM_INT,
     .required = true},
    {SIDE("max_size", max_size, "its length stays below this"), .type = ST_PARAM_INT, .required = true},
    {INTERPOLATION},
    {0},
};

static int plan_resize(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                       struct stoker_error *err)
{
    const struct random_resize *r = self;
    if (r->min_size >= r->max_size)
        return st_fail(err, STOKER_EINVAL,
                       "random_resize: min_size = %d must be less than max_size = %d", r->min_size,
                       r->max_size);
    return plan(shape, finish, "random_resize", err);
}

static int run_resize(const void *self, struct st_rng *rng, struct st_image *image,
                      struct stoker_error *err)
{
    const struct random_resize *r = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const uint64_t many = (uint64_t)(r->max_size - r->min_size);
    const int32_t side = r->min_size + (int32_t)st_rng_below(rng, many);
    int32_t out_width, out_height;
    if (!st_resize_side(side, 0, width, height, &out_width, &out_height))
        return st_fail(err, STOKER_ELIMIT,
                       "random_resize: with a shorter side of %d the longer side of %d x %d is too long",
                       side, width, height);
    return st_image_resize(image, out_width, out_height, (enum st_filter)r->filter, err);
}

const struct st_op st_op_random_resize = {
    .name = "random_resize",
    .help = "resizes the shorter side to a random length",
    .self_size = sizeof(struct random_resize),
    .params = resize_params,
    .plan = plan_resize,
    .run = run_resize,
    .moves = true,
};

/* ---- random_shortest_size ----------------------------------------------------------------------- */

static const struct st_param shortest_params[] = {
    {SIDE("min_size", sides, "the lengths of the shorter side, of which one is chosen"),
     .type = ST_PARAM_LIST, .required = true},
    {SIDE("max_size", max_size, "maximum length of the longer side"), .type = ST_PARAM_INT},
    {INTERPOLATION},
    {0},
};

static int plan_shortest(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                         struct stoker_error *err)
{
    const struct random_resize *r = self;
    for (uint32_t k = 0; k < r->sides.count; k++)
        if (r->sides.value[k] != floor(r->sides.value[k]))
            return st_fail(err, STOKER_EINVAL, "random_shortest_size: min_size must be integers, not %g",
                           r->sides.value[k]);
    return plan(shape, finish, "random_shortest_size", err);
}

static int run_shortest(const void *self, struct st_rng *rng, struct st_image *image,
                        struct stoker_error *err)
{
    const struct random_resize *r = self;
    const double width = st_image_width(image), height = st_image_height(image);
    double times = r->sides.value[st_rng_below(rng, r->sides.count)] / fmin(width, height);
    if (r->max_size)
        times = fmin(times, r->max_size / fmax(width, height));
    return resize_to(r, image, width * times, height * times, "random_shortest_size", err);
}

const struct st_op st_op_random_shortest_size = {
    .name = "random_shortest_size",
    .help = "resizes the shorter side to one of several lengths",
    .self_size = sizeof(struct random_resize),
    .params = shortest_params,
    .plan = plan_shortest,
    .run = run_shortest,
    .moves = true,
};

/* ---- scale_jitter ------------------------------------------------------------------------------- */

static const struct st_param jitter_params[] = {
    {SIDE("target_size", target, "the size that a scale of 1 fits into"), .type = ST_PARAM_LIST,
     .required = true},
    {.name = "scale_range",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct random_resize, scale),
     .max = 1e6,
     .help = "low and high scale (0.1, 2)"},
    {INTERPOLATION},
    {0},
};

static int plan_jitter(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                       struct stoker_error *err)
{
    struct random_resize *r = self;
    if (r->target.count != 2)
        return st_fail(err, STOKER_EINVAL, "scale_jitter: target_size must be two numbers, not %u",
                       r->target.count);
    const int rc = st_param_range(&r->scale, "scale_jitter", "scale_range", 0.1, 2, err);
    return rc < 0 ? rc : plan(shape, finish, "scale_jitter", err);
}

static int run_jitter(const void *self, struct st_rng *rng, struct st_image *image,
                      struct stoker_error *err)
{
    const struct random_resize *r = self;
    const double width = st_image_width(image), height = st_image_height(image);
    const double scale = st_rng_range(rng, r->scale.value[0], r->scale.value[1]);
    const double times = fmin(r->target.value[1] / height, r->target.value[0] / width) * scale;
    return resize_to(r, image, width * times, height * times, "scale_jitter", err);
}

const struct st_op st_op_scale_jitter = {
    .name = "scale_jitter",
    .help = "resizes by a random factor",
    .self_size = sizeof(struct random_resize),
    .params = jitter_params,
    .plan = plan_jitter,
    .run = run_jitter,
    .moves = true,
};
