/* cv_grid_distortion.c - stretches the columns and rows of a grid by random factors, as Albumentations'
 * GridDistortion does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/cv_remap.h"

enum { STEPS_MOST = 100 };

struct cv_grid_distortion {
    int32_t steps;
    struct st_list limit;
    bool normalized, points;
    struct st_cv_warp_params warp;
};

static const char NAME[] = "cv_grid_distortion";

static const struct st_param params[] = {
    {.name = "steps",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct cv_grid_distortion, steps),
     .def = 5,
     .min = 1,
     .max = STEPS_MOST,
     .help = "columns of the grid, and rows"},
    {.name = "limit",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct cv_grid_distortion, limit),
     .min = -1,
     .max = 1,
     .help = "factors of their sizes, less 1: low, high (-0.3, 0.3)"},
    {.name = "normalized",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct cv_grid_distortion, normalized),
     .def = 1,
     .max = 1,
     .help = "what is stretched has the size of the image"},
    ST_CV_WARP_PARAMS(struct cv_grid_distortion),
    ST_CV_REMAP_POINTS(struct cv_grid_distortion),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct cv_grid_distortion *g = self;
    const int rc = st_cv_warp_plan(&g->warp, shape, finish, NAME, err);
    return rc < 0 ? rc : st_param_range(&g->limit, NAME, "limit", -0.3, 0.3, err);
}

/* The order of additions is numpy's. */
static double sum_of(const double *value, int32_t count)
{
    enum { LANES = 8 };
    const int32_t whole = count - count % LANES;
    double lane[LANES] = {0}, sum = 0;
    for (int32_t k = 0; k < whole; k++)
        lane[k % LANES] += value[k];
    if (whole)
        sum = ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    for (int32_t k = whole; k < count; k++)
        sum += value[k];
    return sum;
}

/* Scales the factors, of which the last is that of the pixels behind the last whole column, so that all
 * columns together are as long as the image. */
static void normalize(double *factor, int32_t steps, int32_t length)
{
    const int32_t step = length / steps, rest = length - steps * step;
    factor[steps] *= (double)(rest < step ? rest : step) / step;
    const double times = (double)length / step / sum_of(factor, steps + 1);
    for (int32_t k = 0; k <= steps; k++)
        factor[k] *= times;
}

/* Where the pixels of an axis come from. */
static void fill_axis(float *at, const double *factor, int32_t steps, int32_t length)
{
    const int32_t step = length / steps;
    double from = 0;
    for (int32_t k = 0; k < length; k++)
        at[k] = 0;
    for (int32_t s = 0; s <= steps && step; s++) {
        const int32_t first = s * step, count = length - first < step ? length - first : step;
        const double to = from + step * factor[s], slope = count > 1 ? (to - from) / (count - 1) : 0;
        for (int32_t k = 0; k < count; k++)
            at[first + k] = (float)(k && k == count - 1 ? to : k * slope + from);
        from = to;
    }
}

struct axes {
    const float *x, *y;
    size_t width;
};

static void row(const void *by, int32_t y, float *xs, float *ys)
{
    const struct axes *axes = by;
    memcpy(xs, axes->x, axes->width * sizeof *xs);
    for (size_t k = 0; k < axes->width; k++)
        ys[k] = axes->y[y];
}

static int make_axis(const struct cv_grid_distortion *g, struct st_rng *rng, struct st_arena *arena,
                     int32_t length, const float **out, struct stoker_error *err)
{
    double factor[STEPS_MOST + 1];
    float *at = st_arena_take(arena, (uint64_t)length * sizeof *at);
    if (!at)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", NAME);
    for (int32_t k = 0; k <= g->steps; k++)
        factor[k] = 1 + st_rng_range(rng, g->limit.value[0], g->limit.value[1]);
    if (g->normalized && length < g->steps)
        return st_fail(err, STOKER_EINVAL,
                       "%s: a side of %d pixels cannot have %d steps; normalized=false can", NAME,
                       length, g->steps);
    if (g->normalized)
        normalize(factor, g->steps, length);
    fill_axis(at, factor, g->steps, length);
    *out = at;
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct cv_grid_distortion *g = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    struct axes axes = {.width = (size_t)width};
    const struct st_cv_points_of points = {row, &axes};
    int rc = st_cv_remap_has_work(image, g->points, NAME, err);
    if (rc <= 0)
        return rc;
    rc = make_axis(g, rng, &image->work->arena, width, &axes.x, err);
    if (rc >= 0)
        rc = make_axis(g, rng, &image->work->arena, height, &axes.y, err);
    return rc < 0 ? rc : st_image_cv_remap(image, &points, &g->warp, NAME, err);
}

const struct st_op st_op_cv_grid_distortion = {
    .name = NAME,
    .help = "stretches the columns and rows of a grid by random factors, with OpenCV's arithmetic",
    .self_size = sizeof(struct cv_grid_distortion),
    .params = params,
    .plan = plan,
    .run = run,
};
