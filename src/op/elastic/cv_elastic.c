/* cv_elastic.c - moves pixels by random, smooth distances, as Albumentations' ElasticTransform does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "op/cv/filter.h"
#include "op/geometry/cv_remap.h"
#include "order/normals.h"

#include <math.h>

enum { GAUSSIAN, UNIFORM, FIXED_TAPS = 17, SIGMA_MOST = 1000 };
static const char *const noise_words[] = {"gaussian", "uniform", NULL};

struct cv_elastic {
    double alpha, sigma;
    bool approximate, same, points;
    int32_t noise;
    struct st_cv_warp_params warp;
    struct st_normals normals;
};

static const char NAME[] = "cv_elastic";

static const struct st_param params[] = {
    {.name = "alpha",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct cv_elastic, alpha),
     .def = 1,
     .max = 1e6,
     .help = "strength, in pixels"},
    {.name = "sigma",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct cv_elastic, sigma),
     .def = 50,
     .min = 1,
     .max = SIGMA_MOST,
     .help = "smoothness, in pixels"},
    {.name = "approximate",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct cv_elastic, approximate),
     .max = 1,
     .help = "blurs by a kernel of 17 pixels, whatever sigma is"},
    {.name = "same",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct cv_elastic, same),
     .max = 1,
     .help = "moves as far across as down"},
    {.name = "noise",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct cv_elastic, noise),
     .words = noise_words,
     .help = "what is blurred: gaussian, of which the largest is 1, or uniform from -1 to 1"},
    ST_CV_WARP_PARAMS(struct cv_elastic),
    ST_CV_REMAP_POINTS(struct cv_elastic),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct cv_elastic *e = self;
    st_normals_init(&e->normals);
    return st_cv_warp_plan(&e->warp, shape, finish, NAME, err);
}

/* The noise of both directions, one below the other as Albumentations has them (so that at the seam each
 * is blurred with some of the other), blurred across; blurred down when a row is needed. */
struct field {
    const struct st_cv_filter_rows *rows;
    int32_t width, height, lines; /* of the image; of the noise */
    int32_t taps;
    const float **tap;
    float *weight, *plane;
    float alpha;
};

static int32_t taps_of(const struct cv_elastic *e)
{
    return e->approximate ? FIXED_TAPS : (int32_t)rint(e->sigma * 8 + 1) | 1;
}

static void make_weights(float *weight, int32_t taps, double sigma)
{
    double sum = 0;
    for (int32_t k = 0; k < taps; k++) {
        const double at = (k - taps / 2) / sigma;
        sum += st_exp(-0.5 * at * at);
    }
    for (int32_t k = 0; k < taps; k++) {
        const double at = (k - taps / 2) / sigma;
        weight[k] = (float)(st_exp(-0.5 * at * at) / sum);
    }
}

/* The noise of a line; returns the largest. */
static float draw_line(float *line, int32_t width, const struct cv_elastic *e, struct st_rng *rng)
{
    float most = 0;
    for (int32_t x = 0; x < width; x++) {
        line[x] = e->noise == UNIFORM ? (float)(int32_t)st_rng_u32(rng) * 0x1p-31f
                                      : (float)st_normals_draw(&e->normals, rng);
        most = fmaxf(most, fabsf(line[x]));
    }
    return most;
}

/* `wide` has room for a line and half of the taps at both ends. */
static void draw_field(struct field *f, const struct cv_elastic *e, struct st_rng *rng, float *wide)
{
    const int32_t half = f->taps / 2;
    float *line = wide + half, most = 0;
    for (int32_t k = 0; k < f->taps; k++)
        f->tap[k] = wide + k;
    for (int32_t y = 0; y < f->lines; y++) {
        most = fmaxf(most, draw_line(line, f->width, e, rng));
        for (int32_t k = 1; k <= half; k++) {
            line[-k] = line[0];
            line[f->width - 1 + k] = line[f->width - 1];
        }
        f->rows->weigh_floats(f->plane + (size_t)y * (size_t)f->width, f->tap, f->weight, f->taps,
                              (size_t)f->width);
    }
    f->alpha = (float)(e->noise == GAUSSIAN && most > 0 ? e->alpha / (double)most : e->alpha);
}

static void blur_down(const struct field *f, int32_t line, float *out)
{
    for (int32_t k = 0; k < f->taps; k++) {
        const int32_t at = line - f->taps / 2 + k, last = f->lines - 1;
        f->tap[k] = f->plane + (size_t)(at < 0 ? 0 : at > last ? last : at) * (size_t)f->width;
    }
    f->rows->weigh_floats(out, f->tap, f->weight, f->taps, (size_t)f->width);
}

static void row(const void *by, int32_t y, float *xs, float *ys)
{
    const struct field *f = by;
    blur_down(f, y, xs);
    if (f->lines > f->height)
        blur_down(f, y + f->height, ys);
    else
        memcpy(ys, xs, (size_t)f->width * sizeof *ys);
    for (int32_t x = 0; x < f->width; x++) {
        xs[x] = (float)x + xs[x] * f->alpha;
        ys[x] = (float)y + ys[x] * f->alpha;
    }
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct cv_elastic *e = self;
    struct st_arena *arena = &image->work->arena;
    struct field f = {.rows = st_cv_filter_rows_for(image->work->level),
                      .width = st_image_width(image),
                      .height = st_image_height(image),
                      .taps = taps_of(e)};
    const struct st_cv_points_of points = {row, &f};
    const int rc = st_cv_remap_has_work(image, e->points, NAME, err);
    if (rc <= 0)
        return rc;
    const uint64_t wide = (uint64_t)f.width + (uint64_t)f.taps;
    f.lines = f.height * (e->same ? 1 : 2);
    f.tap = st_arena_take(arena, (uint64_t)f.taps * sizeof *f.tap);
    f.weight = st_arena_take(arena, (uint64_t)f.taps * sizeof *f.weight);
    f.plane = st_arena_take(arena, (uint64_t)f.lines * (uint64_t)f.width * sizeof *f.plane);
    float *line = st_arena_take(arena, wide * sizeof *line);
    if (!f.tap || !f.weight || !f.plane || !line)
        return st_fail(err, STOKER_ENOMEM, "%s: no memory for the noise of %d x %d pixels", NAME,
                       f.width, f.height);
    make_weights(f.weight, f.taps, e->sigma);
    draw_field(&f, e, rng, line);
    return st_image_cv_remap(image, &points, &e->warp, NAME, err);
}

const struct st_op st_op_cv_elastic = {
    .name = NAME,
    .help = "moves pixels by random, smooth distances, with OpenCV's arithmetic",
    .self_size = sizeof(struct cv_elastic),
    .params = params,
    .plan = plan,
    .run = run,
};
