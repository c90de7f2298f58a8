/* keep_ratio.c - resizes to about a size and keeps the image's shape, or nearly: timm's ResizeKeepRatio
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include "base/functions.h"

#include <math.h>

struct keep_ratio {
    struct st_list size, scale, aspect;
    double longest, scale_p, aspect_p;
    bool area;
    int32_t height, width, filter;
};

static const char name[] = "resize_keep_ratio";

static const struct st_param params[] = {
    {.name = "size",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct keep_ratio, size),
     .min = 1,
     .max = 1 << 20,
     .required = true,
     .help = "height and width, or one number for both"},
    {.name = "longest",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct keep_ratio, longest),
     .max = 1,
     .help = "0: the image covers the size; 1: it fits into it; or between the two"},
    {.name = "interpolation",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct keep_ratio, filter),
     .def = ST_FILTER_BILINEAR,
     .words = st_filter_words,
     .help = "the filter"},
    {.name = "scale_p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct keep_ratio, scale_p),
     .max = 1,
     .help = "probability of a random scale"},
    {.name = "scale",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct keep_ratio, scale),
     .min = 1e-6,
     .max = 1e6,
     .help = "low and high of the scale (0.85, 1.05)"},
    {.name = "scale_area",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct keep_ratio, area),
     .max = 1,
     .help = "scale is the fraction of the image's area that the size will show"},
    {.name = "aspect_p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct keep_ratio, aspect_p),
     .max = 1,
     .help = "probability of a random shape"},
    {.name = "aspect",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct keep_ratio, aspect),
     .min = 1e-6,
     .max = 1e6,
     .help = "low and high by which width divided by height changes (0.9, 1.11)"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct keep_ratio *k = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_size(&k->size, name, "size", &k->height, &k->width, err);
    if (rc >= 0)
        rc = st_param_range(&k->scale, name, "scale", 0.85, 1.05, err);
    if (rc >= 0)
        rc = st_param_range(&k->aspect, name, "aspect", 0.9, 1.11, err);
    shape->width = shape->height = ST_SIZE_DIFFERS;
    return rc;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct keep_ratio *k = self;
    const double width = st_image_width(image), height = st_image_height(image);
    const double across = width / k->width, down = height / k->height;
    const double ratio = fmax(down, across) * k->longest + fmin(down, across) * (1 - k->longest);
    double wider = 1, higher = 1;
    if (st_rng_f64(rng) < k->scale_p) {
        const double scale = st_rng_range(rng, k->scale.value[0], k->scale.value[1]);
        wider = higher = k->area ? 1 / sqrt(scale) : scale;
    }
    if (st_rng_f64(rng) < k->aspect_p) {
        const double *aspect = k->aspect.value;
        const double by = sqrt(st_exp(st_rng_range(rng, st_ln(aspect[0]), st_ln(aspect[1]))));
        wider *= by;
        higher /= by;
    }
    const double out_width = rint(width * wider / ratio); /* halves to even, like Python */
    const double out_height = rint(height * higher / ratio);
    if (!(out_width >= 1 && out_width <= INT32_MAX && out_height >= 1 && out_height <= INT32_MAX))
        return st_fail(err, STOKER_EINVAL, "%s: %.0f x %.0f pixels cannot be resized to %.0f x %.0f",
                       name, width, height, out_width, out_height);
    return st_image_resize(image, (int32_t)out_width, (int32_t)out_height, (enum st_filter)k->filter,
                           err);
}

const struct st_op st_op_resize_keep_ratio = {
    .name = name,
    .help = "resizes to about a size and keeps the image's shape",
    .self_size = sizeof(struct keep_ratio),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
};
