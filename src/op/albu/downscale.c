/* downscale.c - makes an image smaller and as large again, as Albumentations does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"
#include "op/resize/resize_cv.h"

#include <math.h>

static const char name[] = "albu_downscale";

struct downscale {
    struct st_list scale;
    int32_t down, up;
};

static const struct st_param params[] = {
    {.name = "scale",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct downscale, scale),
     .min = 1e-4,
     .max = 1,
     .help = "what the sides are multiplied by, low and high (0.25, 0.25)"},
    {.name = "down",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct downscale, down),
     .def = ST_FILTER_CV_NEAREST,
     .words = st_filter_words,
     .help = "the filter that makes it smaller, one of OpenCV's"},
    {.name = "up",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct downscale, up),
     .def = ST_FILTER_CV_NEAREST,
     .words = st_filter_words,
     .help = "the filter that makes it larger, one of OpenCV's"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct downscale *d = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_range(&d->scale, name, "scale", 0.25, 0.25, err);
    if (rc >= 0 && (d->down < ST_FILTERS || d->up < ST_FILTERS))
        rc = st_fail(err, STOKER_EINVAL,
                     "%s: its filters must be OpenCV's: cv_nearest, cv_linear, cv_area", name);
    return rc;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct downscale *d = self;
    const double scale = st_albu_draw(&d->scale, rng);
    struct st_view in, small, out;
    if (!st_albu_changes(image))
        return STOKER_OK;
    int rc = st_image_pixels(image, false, false, &in, err);
    if (rc < 0)
        return rc;
    struct st_arena *arena = &image->work->arena;
    const double width = rint(in.width * scale), height = rint(in.height * scale);
    if (width < 1 || height < 1)
        return st_fail(err, STOKER_EINVAL,
                       "%s: nothing is left of %d x %d pixels at a scale of %g; use a larger one", name,
                       in.width, in.height, scale);
    if (!st_view_take(&small, arena, (int32_t)width, (int32_t)height, in.channels) ||
        !st_view_take(&out, arena, in.width, in.height, in.channels))
        return st_albu_no_memory(name, err);
    rc = st_cv_resize_view((enum st_filter)d->down, scale, NULL, &in, &small, arena, err);
    if (rc >= 0)
        rc = st_cv_resize_view((enum st_filter)d->up, 0, NULL, &small, &out, arena, err);
    if (rc >= 0)
        st_image_set(image, out, false);
    return rc;
}

const struct st_op st_op_albu_downscale = {
    .name = name,
    .help = "makes an image smaller and as large again, as Albumentations does",
    .self_size = sizeof(struct downscale),
    .params = params,
    .plan = plan,
    .run = run,
};
