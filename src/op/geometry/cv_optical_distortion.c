/* cv_optical_distortion.c - bends the image as a lens does, by a random amount, as Albumentations'
 * OpticalDistortion does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/cv_remap.h"

struct cv_optical_distortion {
    struct st_list limit;
    bool points;
    struct st_cv_warp_params warp;
};

static const char NAME[] = "cv_optical_distortion";

static const struct st_param params[] = {
    {.name = "limit",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct cv_optical_distortion, limit),
     .min = -1e3,
     .max = 1e3,
     .help = "coefficient of the lens: low, high (-0.05, 0.05)"},
    ST_CV_WARP_PARAMS(struct cv_optical_distortion),
    ST_CV_REMAP_POINTS(struct cv_optical_distortion),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct cv_optical_distortion *o = self;
    const int rc = st_cv_warp_plan(&o->warp, shape, finish, NAME, err);
    return rc < 0 ? rc : st_param_range(&o->limit, NAME, "limit", -0.05, 0.05, err);
}

/* A camera whose focal lengths are the sides of the image, and whose axis goes through the end of the
 * middle pixel before the lens and through its middle behind it. */
struct lens {
    double coefficient;
    int32_t width, height;
};

/* The place of a pixel along an axis, in focal lengths. */
static double place_of(int32_t at, double length)
{
    return at * (1 / length) - (length - 1) / 2 / length;
}

/* The order of the operations is that of OpenCV's initUndistortRectifyMap. */
static void row(const void *by, int32_t y, float *xs, float *ys)
{
    const struct lens *lens = by;
    const double width = lens->width, height = lens->height, k = lens->coefficient;
    const double down = place_of(y, height);
    for (int32_t column = 0; column < lens->width; column++) {
        const double across = place_of(column, width), square = across * across + down * down;
        const double factor = 1 + (k * square + k) * square;
        xs[column] = (float)(width * (across * factor) + width / 2);
        ys[column] = (float)(height * (down * factor) + height / 2);
    }
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct cv_optical_distortion *o = self;
    const double drawn = st_rng_range(rng, o->limit.value[0], o->limit.value[1]);
    const struct lens lens = {(double)(float)drawn, st_image_width(image), st_image_height(image)};
    const struct st_cv_points_of points = {row, &lens};
    const int rc = st_cv_remap_has_work(image, o->points, NAME, err);
    return rc <= 0 ? rc : st_image_cv_remap(image, &points, &o->warp, NAME, err);
}

const struct st_op st_op_cv_optical_distortion = {
    .name = NAME,
    .help = "bends the image as a lens does, by a random amount, with OpenCV's arithmetic",
    .self_size = sizeof(struct cv_optical_distortion),
    .params = params,
    .plan = plan,
    .run = run,
};
