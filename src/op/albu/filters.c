/* filters.c - ops that blur and sharpen, as Albumentations does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"
#include "op/cv/filter.h"
#include "op/geometry/turn.h"

static const struct st_cv_filter_rows *rows_of(const struct st_image *image)
{
    return st_cv_filter_rows_for(image->work->level);
}

/* The pixels, and room for as many new ones. */
static int begin(struct st_image *image, bool any_side, struct st_view *in, struct st_view *out,
                 const char *op, struct stoker_error *err)
{
    const int rc = st_image_pixels(image, false, any_side, in, err);
    if (rc < 0)
        return rc;
    if (!st_view_take(out, &image->work->arena, in->width, in->height, in->channels))
        return st_albu_no_memory(op, err);
    return STOKER_OK;
}

static int end(struct st_image *image, bool any_side, const struct st_view *out, int rc, const char *op,
               struct stoker_error *err)
{
    if (rc < 0)
        return st_albu_no_memory(op, err);
    st_image_set(image, *out, any_side);
    return STOKER_OK;
}

/* ---- sides of windows ---- */

struct sides {
    struct st_list range;
};

#define SIDES(most)                                                                                     \
    {                                                                                                   \
        {.name = "side",                                                                                \
         .type = ST_PARAM_LIST,                                                                         \
         .offset = offsetof(struct sides, range),                                                       \
         .min = 3,                                                                                      \
         .max = most,                                                                                   \
         .help = "low and high side of the window, odd (3, 7)"},                                        \
        {                                                                                               \
            0                                                                                           \
        }                                                                                               \
    }

static int plan_sides(struct sides *s, const struct st_shape *shape, const struct st_finish_spec *finish,
                      const char *op, struct stoker_error *err)
{
    int rc = st_plan_bytes(shape, finish, op, err);
    if (rc >= 0)
        rc = st_param_range(&s->range, op, "side", 3, 7, err);
    if (rc >= 0)
        rc = st_albu_odd(&s->range, op, "side", err);
    return rc;
}

typedef int window_filter(const struct st_cv_filter_rows *rows, int32_t side, struct st_arena *arena,
                          const struct st_view *in, const struct st_view *out);

static int run_window(const void *self, struct st_rng *rng, struct st_image *image,
                      window_filter *filter, const char *op, struct stoker_error *err)
{
    const struct sides *s = self;
    const int32_t side = st_albu_draw_odd(&s->range, rng);
    struct st_view in, out;
    if (!st_albu_changes(image))
        return STOKER_OK;
    int rc = begin(image, true, &in, &out, op, err);
    if (rc < 0)
        return rc;
    rc = filter(rows_of(image), side, &image->work->arena, &in, &out);
    return end(image, true, &out, rc, op, err);
}

static const struct st_param box_blur_params[] = SIDES(ST_CV_BOX_MOST);
static const struct st_param median_blur_params[] = SIDES(ST_CV_MEDIAN_MOST);

static int plan_box_blur(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                         struct stoker_error *err)
{
    return plan_sides(self, shape, finish, "albu_box_blur", err);
}

static int run_box_blur(const void *self, struct st_rng *rng, struct st_image *image,
                        struct stoker_error *err)
{
    return run_window(self, rng, image, st_cv_box, "albu_box_blur", err);
}

static int plan_median_blur(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                            struct stoker_error *err)
{
    return plan_sides(self, shape, finish, "albu_median_blur", err);
}

static int run_median_blur(const void *self, struct st_rng *rng, struct st_image *image,
                           struct stoker_error *err)
{
    return run_window(self, rng, image, st_cv_median, "albu_median_blur", err);
}

/* ---- 3 x 3 weights ---- */

struct edges {
    struct st_list alpha, strength;
};

#define EDGES(second, what)                                                                             \
    {                                                                                                   \
        {.name = "alpha",                                                                               \
         .type = ST_PARAM_LIST,                                                                         \
         .offset = offsetof(struct edges, alpha),                                                       \
         .max = 1,                                                                                      \
         .help = "how visible the result is, low and high (0.2, 0.5)"},                                 \
            {.name = second,                                                                            \
             .type = ST_PARAM_LIST,                                                                     \
             .offset = offsetof(struct edges, strength),                                                \
             .max = 1e6,                                                                                \
             .help = what},                                                                             \
        {                                                                                               \
            0                                                                                           \
        }                                                                                               \
    }

static const struct st_param sharpen_params[] = EDGES("lightness", "low and high lightness (0.5, 1)");
static const struct st_param emboss_params[] = EDGES("strength", "low and high strength (0.2, 0.7)");

static int plan_edges(struct edges *e, const struct st_shape *shape, const struct st_finish_spec *finish,
                      const char *op, const char *second, double low, double high,
                      struct stoker_error *err)
{
    int rc = st_plan_bytes(shape, finish, op, err);
    if (rc >= 0)
        rc = st_param_range(&e->alpha, op, "alpha", 0.2, 0.5, err);
    return rc < 0 ? rc : st_param_range(&e->strength, op, second, low, high, err);
}

static int plan_sharpen(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                        struct stoker_error *err)
{
    return plan_edges(self, shape, finish, "albu_sharpen", "lightness", 0.5, 1, err);
}

static int plan_emboss(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                       struct stoker_error *err)
{
    return plan_edges(self, shape, finish, "albu_emboss", "strength", 0.2, 0.7, err);
}

/* `effect` is blended with the kernel that changes nothing. */
static int run_edges(struct st_image *image, double alpha, const double effect[9], const char *op,
                     struct stoker_error *err)
{
    struct st_cv_tap tap[9];
    struct st_view in, out;
    int32_t count = 0;
    if (!st_albu_changes(image))
        return STOKER_OK;
    for (int32_t k = 0; k < 9; k++) {
        const float weight = (k == 4 ? (float)(1 - alpha) : 0) + (float)alpha * (float)effect[k];
        if (weight != 0)
            tap[count++] = (struct st_cv_tap){k % 3 - 1, k / 3 - 1, weight};
    }
    int rc = begin(image, false, &in, &out, op, err);
    if (rc < 0)
        return rc;
    rc = st_cv_weigh(rows_of(image), tap, count, &image->work->arena, &in, &out);
    return end(image, false, &out, rc, op, err);
}

static int run_sharpen(const void *self, struct st_rng *rng, struct st_image *image,
                       struct stoker_error *err)
{
    const struct edges *e = self;
    const double alpha = st_albu_draw(&e->alpha, rng), light = st_albu_draw(&e->strength, rng);
    const double effect[9] = {-1, -1, -1, -1, 8 + light, -1, -1, -1, -1};
    return run_edges(image, alpha, effect, "albu_sharpen", err);
}

static int run_emboss(const void *self, struct st_rng *rng, struct st_image *image,
                      struct stoker_error *err)
{
    const struct edges *e = self;
    const double alpha = st_albu_draw(&e->alpha, rng), by = st_albu_draw(&e->strength, rng);
    const double effect[9] = {-1 - by, 0 - by, 0, 0 - by, 1, 0 + by, 0, 0 + by, 1 + by};
    return run_edges(image, alpha, effect, "albu_emboss", err);
}

#define OP(title, self, what)                                                                           \
    const struct st_op st_op_albu_##title = {.name = "albu_" #title,                                    \
                                             .help = what,                                              \
                                             .self_size = sizeof(struct self),                          \
                                             .params = title##_params,                                  \
                                             .plan = plan_##title,                                      \
                                             .run = run_##title}

OP(box_blur, sides, "means of a window of random size, as Albumentations makes them");
OP(median_blur, sides, "medians of a window of random size, as Albumentations makes them");
OP(sharpen, edges, "sharpens by a random amount, as Albumentations does");
OP(emboss, edges, "embosses by a random amount, as Albumentations does");
