/* cv_affine.c - scales, turns, shears and moves the image by random amounts, as Albumentations does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/cv_warp.h"

#include <math.h>

enum { MAP = 9 };
#define PI 3.14159265358979323846

struct cv_affine {
    struct st_list scale[2], move[2], shear[2], rotate; /* across, down */
    bool keep_ratio, balanced, relative;
    struct st_cv_warp_params warp;
};

static const char NAME[] = "cv_affine";

#define RANGE(name_, member, low, high, text)                                                           \
    {                                                                                                   \
        .name = name_, .type = ST_PARAM_LIST, .offset = offsetof(struct cv_affine, member), .min = low, \
        .max = high, .help = text                                                                       \
    }
#define SWITCH(member, text)                                                                            \
    {                                                                                                   \
        .name = #member, .type = ST_PARAM_BOOL, .offset = offsetof(struct cv_affine, member), .max = 1, \
        .help = text                                                                                    \
    }

static const struct st_param params[] = {
    RANGE("scale_x", scale[0], 1e-6, 1e6, "factor across: low, high (1, 1)"),
    RANGE("scale_y", scale[1], 1e-6, 1e6, "factor down, likewise"),
    SWITCH(keep_ratio, "the factor across is that down, too"),
    SWITCH(balanced, "factors below 1 and above are equally likely"),
    RANGE("move_x", move[0], -1e6, 1e6, "move to the right in whole pixels: low, high (0, 0)"),
    RANGE("move_y", move[1], -1e6, 1e6, "move downwards, likewise"),
    SWITCH(relative, "moves are fractions of the width and of the height"),
    RANGE("rotate", rotate, -1e6, 1e6, "degrees, counter-clockwise: low, high (0, 0)"),
    RANGE("shear_x", shear[0], -1e6, 1e6, "degrees across: low, high (0, 0)"),
    RANGE("shear_y", shear[1], -1e6, 1e6, "degrees down, likewise"),
    ST_CV_WARP_PARAMS(struct cv_affine),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    static const char *const names[2][3] = {{"scale_x", "move_x", "shear_x"},
                                            {"scale_y", "move_y", "shear_y"}};
    struct cv_affine *a = self;
    int rc = st_cv_warp_plan(&a->warp, shape, finish, NAME, err);
    for (int k = 0; rc >= 0 && k < 2; k++) {
        rc = st_param_range(&a->scale[k], NAME, names[k][0], 1, 1, err);
        if (rc >= 0)
            rc = st_param_range(&a->move[k], NAME, names[k][1], 0, 0, err);
        if (rc >= 0)
            rc = st_param_range(&a->shear[k], NAME, names[k][2], 0, 0, err);
    }
    return rc < 0 ? rc : st_param_range(&a->rotate, NAME, "rotate", 0, 0, err);
}

static double draw(const struct st_list *range, struct st_rng *rng)
{
    return st_rng_range(rng, range->value[0], range->value[1]);
}

static double draw_scale(const struct cv_affine *a, const struct st_list *range, struct st_rng *rng)
{
    const double low = range->value[0], high = range->value[1];
    if (!a->balanced)
        return draw(range, rng);
    if (low >= 1 && high <= 1)
        return 1;
    const bool smaller = low < 1 && (high <= 1 || st_rng_below(rng, 2));
    return smaller ? st_rng_range(rng, low, 1) : st_rng_range(rng, 1, high);
}

/* Whole pixels. */
static double draw_move(const struct cv_affine *a, const struct st_list *range, struct st_rng *rng,
                        int32_t length)
{
    if (a->relative)
        return trunc(draw(range, rng) * length);
    const double low = trunc(range->value[0]), high = trunc(range->value[1]);
    return low + (double)st_rng_below(rng, (uint64_t)(high - low) + 1);
}

struct drawn {
    double scale[2], move[2], shear[2], rotate; /* shear in radians */
};

static struct drawn draw_all(const struct cv_affine *a, struct st_rng *rng, int32_t width,
                             int32_t height)
{
    struct drawn d;
    for (int k = 0; k < 2; k++) {
        d.move[k] = draw_move(a, &a->move[k], rng, k ? height : width);
        d.shear[k] = -draw(&a->shear[k], rng) * (PI / 180);
        d.scale[k] = draw_scale(a, &a->scale[k], rng);
    }
    if (a->keep_ratio)
        d.scale[1] = d.scale[0];
    const double angle = fmod(draw(&a->rotate, rng), 360);
    d.rotate = (angle < 0 ? angle + 360 : angle) * (PI / 180);
    return d;
}

/* m becomes m times n. */
static void multiply(double m[MAP], const double n[MAP])
{
    double out[MAP];
    for (int k = 0; k < MAP; k++) {
        const double *row = m + k / 3 * 3, *column = n + k % 3;
        out[k] = row[0] * column[0] + row[1] * column[3] + row[2] * column[6];
    }
    memcpy(m, out, sizeof out);
}

/* Around a point. */
static void make_map(double m[MAP], const struct drawn *d, double x, double y)
{
    const double cosine = cos(d->rotate), sine = sin(d->rotate);
    const double centre[MAP] = {1, 0, x, 0, 1, y, 0, 0, 1}, back[MAP] = {1, 0, -x, 0, 1, -y, 0, 0, 1};
    const double move[MAP] = {1, 0, d->move[0], 0, 1, d->move[1], 0, 0, 1};
    const double shear[MAP] = {1, tan(d->shear[0]), 0, tan(d->shear[1]), 1, 0, 0, 0, 1};
    const double turn[MAP] = {cosine, sine, 0, -sine, cosine, 0, 0, 0, 1};
    const double scale[MAP] = {d->scale[0], 0, 0, 0, d->scale[1], 0, 0, 0, 1};
    const double *const factors[] = {move, shear, turn, scale, back};
    memcpy(m, centre, sizeof centre);
    for (size_t k = 0; k < sizeof factors / sizeof *factors; k++)
        multiply(m, factors[k]);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct cv_affine *a = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const struct drawn drawn = draw_all(a, rng, width, height);
    struct st_cv_map map = {.width = width, .height = height};
    make_map(map.pixels, &drawn, width / 2. - 0.5, height / 2. - 0.5);
    make_map(map.boxes, &drawn, width / 2., height / 2.);
    return st_image_cv_warp(image, &map, &a->warp, NAME, err);
}

const struct st_op st_op_cv_affine = {
    .name = NAME,
    .help = "scales, turns, shears and moves by random amounts, with OpenCV's arithmetic",
    .self_size = sizeof(struct cv_affine),
    .params = params,
    .plan = plan,
    .run = run,
};
