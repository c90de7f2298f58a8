/* cv_perspective.c - moves the image's corners by random amounts, as Albumentations' Perspective does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/cv_warp.h"

#include <math.h>

enum { MAP = 9, CORNERS = 4 };

struct cv_perspective {
    struct st_list scale;
    bool keep_size;
    struct st_cv_warp_params warp;
};

static const char NAME[] = "cv_perspective";

static const struct st_param params[] = {
    {.name = "scale",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct cv_perspective, scale),
     .max = 1e3,
     .help = "standard deviation of the moves, as a part of the sides: low, high (0.05, 0.1)"},
    {.name = "keep_size",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct cv_perspective, keep_size),
     .def = 1,
     .max = 1,
     .help = "the result has the size of the image, else of what is between the corners"},
    ST_CV_WARP_PARAMS(struct cv_perspective),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct cv_perspective *p = self;
    int rc = st_cv_warp_plan(&p->warp, shape, finish, NAME, err);
    if (rc >= 0)
        rc = st_param_range(&p->scale, NAME, "scale", 0.05, 0.1, err);
    if (!p->keep_size)
        shape->width = shape->height = ST_SIZE_DIFFERS;
    return rc;
}

/* Clockwise from the upper left; each moves inwards. */
static void draw_corners(struct st_rng *rng, double scale, int32_t width, int32_t height,
                         float corner[CORNERS][2])
{
    static const double most = 0.32;
    for (int k = 0; k < CORNERS; k++) {
        const double x = fmod(fabs(st_rng_normal(rng) * scale), most);
        const double y = fmod(fabs(st_rng_normal(rng) * scale), most);
        corner[k][0] = (float)((k == 1 || k == 2 ? 1 - x : x) * width);
        corner[k][1] = (float)((k >= 2 ? 1 - y : y) * height);
    }
}

/* Moves two coordinates apart; the order of the comparisons is Albumentations'. */
static void part(float *a, float *b, float step)
{
    if (*a > *b)
        *a += step;
    if (*a > *b)
        *b -= step;
    if (*a <= *b)
        *a -= step;
    if (*a <= *b)
        *b += step;
}

/* The distance of two corners, which are moved apart if they are close. */
static float distance(float a[2], float b[2])
{
    static const float least = 2;
    const float x = a[0] - b[0], y = a[1] - b[1], size = sqrtf(x * x + y * y);
    if (size >= least)
        return size;
    part(&a[0], &b[0], (least - size) / 2);
    part(&a[1], &b[1], (least - size) / 2);
    return least;
}

/* The map of the corners of a rectangle of this size, as they are in `corner`, to the rectangle's own:
 * the inverse of the one from it, which has a closed form. */
static void make_map(double m[MAP], const float corner[CORNERS][2], double width, double height)
{
    const double x0 = corner[0][0], x1 = corner[1][0], x2 = corner[2][0], x3 = corner[3][0];
    const double y0 = corner[0][1], y1 = corner[1][1], y2 = corner[2][1], y3 = corner[3][1];
    const double ax = x1 - x2, bx = x3 - x2, cx = x0 - x1 + x2 - x3;
    const double ay = y1 - y2, by = y3 - y2, cy = y0 - y1 + y2 - y3;
    const double divisor = ax * by - bx * ay;
    const double g = (cx * by - bx * cy) / divisor, h = (ax * cy - cx * ay) / divisor;
    const double a = x1 - x0 + g * x1, b = x3 - x0 + h * x3, c = x0;
    const double d = y1 - y0 + g * y1, e = y3 - y0 + h * y3, f = y0;
    const double by_last = a * e - b * d;
    const double inverse[MAP] = {e - f * h,     c * h - b,     b * f - c * e, f * g - d,    a - c * g,
                                 c * d - a * f, d * h - e * g, b * g - a * h, a * e - b * d};
    for (int k = 0; k < MAP; k++)
        m[k] = inverse[k] / by_last * (k < 3 ? width : k < 6 ? height : 1);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct cv_perspective *p = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const double scale = st_rng_range(rng, p->scale.value[0], p->scale.value[1]);
    float corner[CORNERS][2];
    draw_corners(rng, scale, width, height, corner);
    const float across = fmaxf(distance(corner[1], corner[0]), distance(corner[2], corner[3]));
    const float down = fmaxf(distance(corner[2], corner[1]), distance(corner[3], corner[0]));
    struct st_cv_map map = {.perspective = true, .width = (int32_t)across, .height = (int32_t)down};
    make_map(map.pixels, corner, width, height);
    for (int k = 0; p->keep_size && k < 6; k++)
        map.pixels[k] *= k < 3 ? (double)width / map.width : (double)height / map.height;
    if (p->keep_size) {
        map.width = width;
        map.height = height;
    }
    memcpy(map.boxes, map.pixels, sizeof map.boxes);
    return st_image_cv_warp(image, &map, &p->warp, NAME, err);
}

const struct st_op st_op_cv_perspective = {
    .name = NAME,
    .help = "moves the corners by random amounts, with OpenCV's arithmetic",
    .self_size = sizeof(struct cv_perspective),
    .params = params,
    .plan = plan,
    .run = run,
};
