/* gaussian.c - blurs by a Gaussian of random width, as Albumentations does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "op/albu/albu.h"
#include "op/cv/filter.h"
#include "op/geometry/turn.h"

#include <math.h>

static const char name[] = "albu_gaussian_blur";

enum { HALF_MOST = ST_CV_GAUSS_MOST / 2 };

struct gaussian {
    struct st_list sigma, side;
};

static const struct st_param params[] = {
    {.name = "sigma",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct gaussian, sigma),
     .min = 0,
     .max = 1e6,
     .help = "low and high standard deviation (0.5, 3)"},
    {.name = "side",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct gaussian, side),
     .max = ST_CV_GAUSS_MOST,
     .help = "low and high side of the kernel, even ones plus 1; 0: as sigma requires (0, 0)"},
    {0},
};

static int32_t side_for(double sigma) { return (int32_t)(sigma * 3.5) * 2 + 1; }

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct gaussian *g = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_range(&g->sigma, name, "sigma", 0.5, 3, err);
    if (rc >= 0)
        rc = st_param_range(&g->side, name, "side", 0, 0, err);
    if (rc >= 0)
        rc = st_albu_whole(&g->side, name, "side", err);
    if (rc >= 0 && g->side.value[0] == 0 && side_for(fmin(g->sigma.value[1], 1000)) > ST_CV_GAUSS_MOST)
        rc = st_fail(err, STOKER_EINVAL,
                     "%s: a sigma of %g requires a kernel of more than %d pixels; give side", name,
                     g->sigma.value[1], ST_CV_GAUSS_MOST);
    return rc;
}

/* Of the middle and one side. */
static void weights(float weight[HALF_MOST + 1], int32_t half, double sigma)
{
    double share[HALF_MOST + 1], sum = 0;
    for (int32_t k = 0; k <= half; k++) {
        share[k] = st_exp(-0.5 * (k / sigma) * (k / sigma));
        sum += k ? 2 * share[k] : share[k];
    }
    for (int32_t k = 0; k <= half; k++)
        weight[k] = (float)(share[k] / sum);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct gaussian *g = self;
    const double sigma = st_albu_draw(&g->sigma, rng);
    float weight[HALF_MOST + 1];
    int32_t side = st_albu_draw_whole(&g->side, rng);
    struct st_view in, out;
    side = side ? side | 1 : side_for(sigma);
    if (!st_albu_changes(image) || side == 1 || sigma < 1e-9)
        return STOKER_OK;
    weights(weight, side / 2, sigma);
    const int rc = st_image_pixels(image, false, true, &in, err);
    if (rc < 0)
        return rc;
    if (!st_view_take(&out, &image->work->arena, in.width, in.height, in.channels) ||
        st_cv_separate(st_cv_filter_rows_for(image->work->level), weight, side / 2, &image->work->arena,
                       &in, &out) < 0)
        return st_albu_no_memory(name, err);
    st_image_set(image, out, true);
    return STOKER_OK;
}

const struct st_op st_op_albu_gaussian_blur = {
    .name = name,
    .help = "blurs by a random amount, as Albumentations does",
    .self_size = sizeof(struct gaussian),
    .params = params,
    .plan = plan,
    .run = run,
};
