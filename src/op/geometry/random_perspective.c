/* random_perspective.c - moves the image's corners inwards by random amounts, with a given probability
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/warp_op.h"

struct random_perspective {
    double distortion_scale, p;
    struct st_warp_params warp;
};

static const char name[] = "random_perspective";

static const struct st_param params[] = {
    {.name = "distortion_scale",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_perspective, distortion_scale),
     .def = 0.5,
     .max = 1,
     .help = "how far corners move at most, as a fraction of half of the image"},
    {.name = "p",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct random_perspective, p),
     .def = 0.5,
     .max = 1,
     .help = "probability"},
    ST_WARP_PARAMS(struct random_perspective, ST_FILTER_BILINEAR),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    const struct random_perspective *p = self;
    return st_warp_plan(&p->warp, shape, finish, name, err);
}

/* A distance from one side towards the middle. */
static double draw_side(struct st_rng *rng, double scale, int32_t length)
{
    return (double)st_rng_below(rng, (uint64_t)(scale * (length / 2)) + 1);
}

static void draw(const struct random_perspective *p, struct st_rng *rng, int32_t width, int32_t height,
                 double corners[4][2])
{
    static const bool right[4] = {false, true, true, false}, bottom[4] = {false, false, true, true};
    for (int k = 0; k < 4; k++) {
        const double x = draw_side(rng, p->distortion_scale, width);
        const double y = draw_side(rng, p->distortion_scale, height);
        corners[k][0] = right[k] ? width - 1 - x : x;
        corners[k][1] = bottom[k] ? height - 1 - y : y;
    }
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct random_perspective *p = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    struct st_warp warp;
    double corners[4][2];
    if (!(st_rng_f64(rng) < p->p))
        return STOKER_OK;
    draw(p, rng, width, height, corners);
    if (!st_warp_perspective(&warp, corners, width, height))
        return STOKER_OK; /* an image of one or two pixels whose corners came to lie on a line */
    return st_warp_run(&p->warp, &warp, image, name, err);
}

const struct st_op st_op_random_perspective = {
    .name = "random_perspective",
    .help = "moves the image's corners inwards by random amounts",
    .self_size = sizeof(struct random_perspective),
    .params = params,
    .plan = plan,
    .run = run,
    .pending = true,
};
