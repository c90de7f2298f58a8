/* augment_and_mix.c - AugMix: several chains of changes, added up with drawn weights
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

enum { WIDTH_MAX = 16, DEPTH_MAX = 15, DRAWN_DEPTH = 3 };
_Static_assert(WIDTH_MAX * DEPTH_MAX <= ST_REPEATS_MAX, "every change draws for itself");

enum style { TORCHVISION, TIMM, TIMM_BLENDED };
static const char *const styles[] = {"torchvision", "timm", "timm_blended", NULL};

struct augment_and_mix {
    int32_t width, depth, style;
    double alpha;
};

static const struct st_param params[] = {
    {.name = "width",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct augment_and_mix, width),
     .def = 3,
     .min = 1,
     .max = WIDTH_MAX,
     .help = "how many chains there are"},
    {.name = "depth",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct augment_and_mix, depth),
     .max = DEPTH_MAX,
     .help = "changes of a chain; 0: 1 to 3, drawn for each chain"},
    {.name = "alpha",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct augment_and_mix, alpha),
     .def = 1,
     .min = 1e-3,
     .max = 1e6,
     .help = "of the distributions of the weights"},
    {.name = "style",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct augment_and_mix, style),
     .words = styles,
     .help = "whose arithmetic adds the chains up"},
    {0},
};

static const char name[] = "augment_and_mix";

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)self;
    if (shape->mixed)
        return st_fail(err, STOKER_EINVAL, "%s: cannot be inside another one", name);
    return st_plan_bytes(shape, finish, name, err);
}

static int held(const void *self, uint32_t count, struct stoker_error *err)
{
    (void)self;
    return count ? STOKER_OK : st_fail(err, STOKER_EINVAL, "%s: there is no op to choose", name);
}

/* ---- weights ------------------------------------------------------------------------------------ */

struct weights {
    float chain[WIDTH_MAX];
    float image, changed; /* of the image itself, and of all chains together */
};

/* Shares with a Dirichlet distribution, whose sum is 1. */
static void draw_shares(struct st_rng *rng, double alpha, int32_t count, double *share)
{
    double most = -INFINITY, sum = 0;
    for (int32_t k = 0; k < count; k++) {
        share[k] = st_rng_log_gamma(rng, alpha);
        most = share[k] > most ? share[k] : most;
    }
    for (int32_t k = 0; k < count; k++)
        sum += share[k] = st_exp(share[k] - most);
    for (int32_t k = 0; k < count; k++)
        share[k] /= sum;
}

static struct weights draw_weights(const struct augment_and_mix *a, struct st_rng *rng)
{
    struct weights out;
    double share[WIDTH_MAX], both[2];
    draw_shares(rng, a->alpha, a->width, share);
    draw_shares(rng, a->alpha, 2, both);
    out.image = (float)both[0];
    out.changed = (float)both[1];
    for (int32_t k = 0; k < a->width; k++)
        out.chain[k] = (float)share[k];
    return out;
}

/* What each blend, one after the other, gives the chain, so that it has its weight at the end. */
static void weigh_blends(struct weights *weights, int32_t count)
{
    float rest = 1;
    for (int32_t k = count - 1; k >= 0; k--) {
        const float part = weights->chain[k] * weights->changed / rest;
        weights->chain[k] = part >= 0 && part <= 1 ? part : 0; /* not a number: there was no rest */
        rest *= 1 - weights->chain[k];
    }
}

/* ---- adding up ---------------------------------------------------------------------------------- */

static void add_row(float *restrict sum, const uint8_t *restrict row, float weight, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += weight * row[i];
}

static uint8_t truncated(float value)
{
    const int32_t whole = (int32_t)value;
    return (uint8_t)(whole < 0 ? 0 : whole > 255 ? 255 : whole);
}

/* As Pillow blends two images. */
static uint8_t blended(uint8_t from, uint8_t to, float share)
{
    return truncated((float)from + share * (float)(to - from));
}

struct mix {
    const struct augment_and_mix *how;
    struct weights weights;
    struct st_view image, out;
    float *sum; /* of chains; NULL if they are blended into `out` */
};

static size_t row_values(const struct st_view *view)
{
    return (size_t)view->width * (size_t)view->channels;
}

static void begin(struct mix *m)
{
    const size_t count = row_values(&m->image);
    for (int32_t y = 0; y < m->image.height; y++) {
        if (!m->sum) {
            memcpy(st_row(&m->out, y), st_row(&m->image, y), count);
            continue;
        }
        float *sum = m->sum + (size_t)y * count;
        memset(sum, 0, count * sizeof *sum);
        if (m->how->style == TORCHVISION)
            add_row(sum, st_row(&m->image, y), m->weights.image, count);
    }
}

static void add_chain(struct mix *m, int32_t k, const struct st_view *chain)
{
    const size_t count = row_values(&m->image);
    float weight = m->weights.chain[k];
    if (m->how->style == TORCHVISION)
        weight *= m->weights.changed;
    for (int32_t y = 0; y < m->image.height; y++) {
        const uint8_t *row = st_row(chain, y);
        uint8_t *out = st_row(&m->out, y);
        if (m->sum)
            add_row(m->sum + (size_t)y * count, row, weight, count);
        for (size_t i = 0; !m->sum && i < count; i++)
            out[i] = blended(out[i], row[i], weight);
    }
}

static void end(struct mix *m)
{
    const size_t count = row_values(&m->image);
    for (int32_t y = 0; m->sum && y < m->image.height; y++) {
        const float *sum = m->sum + (size_t)y * count;
        const uint8_t *from = st_row(&m->image, y);
        uint8_t *out = st_row(&m->out, y);
        for (size_t i = 0; i < count; i++) {
            out[i] = truncated(sum[i]);
            if (m->how->style == TIMM)
                out[i] = blended(from[i], out[i], m->weights.changed);
        }
    }
}

static int no_memory(const struct st_view *view, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: no memory for an image of %d x %d pixels", name, view->width,
                   view->height);
}

static int make_room(struct mix *m, struct st_arena *arena, struct stoker_error *err)
{
    const struct st_view *in = &m->image;
    uint64_t bytes;
    if (!st_view_take(&m->out, arena, in->width, in->height, in->channels))
        return no_memory(in, err);
    if (m->how->style == TIMM_BLENDED)
        return STOKER_OK;
    if (!ST_PRODUCT(&bytes, (uint64_t)in->width, (uint64_t)in->height, (uint64_t)in->channels,
                    sizeof *m->sum))
        return no_memory(in, err);
    m->sum = st_arena_take(arena, bytes);
    return m->sum ? STOKER_OK : no_memory(in, err);
}

/* ---- chains ------------------------------------------------------------------------------------- */

static int run_chain(struct mix *m, int32_t k, struct st_rng *rng, const struct st_held_ops *held,
                     struct st_work *work, struct stoker_error *err)
{
    const int32_t depth = m->how->depth ? m->how->depth : 1 + (int32_t)st_rng_below(rng, DRAWN_DEPTH);
    struct st_image image;
    struct st_view pixels;
    int rc = STOKER_OK;
    st_image_wrap(&image, work, m->image);
    for (int32_t at = 0; rc >= 0 && at < depth; at++)
        rc = held->run(held, (uint32_t)st_rng_below(rng, held->count), (uint32_t)(k * DEPTH_MAX + at),
                       &image, err);
    if (rc >= 0)
        rc = st_image_pixels(&image, false, false, &pixels, err);
    if (rc < 0)
        return rc;
    if (pixels.width != m->image.width || pixels.height != m->image.height ||
        pixels.channels != m->image.channels)
        return st_fail(err, STOKER_EINVAL, "%s: its ops must not change the size of images", name);
    add_chain(m, k, &pixels);
    return STOKER_OK;
}

static int mix(const void *self, struct st_rng *rng, const struct st_held_ops *held,
               struct st_image *image, struct stoker_error *err)
{
    const struct augment_and_mix *a = self;
    struct st_arena *arena = &image->work->arena;
    struct mix m = {.how = a, .weights = draw_weights(a, rng)};
    int rc = st_image_pixels(image, false, false, &m.image, err);
    if (rc >= 0)
        rc = make_room(&m, arena, err);
    if (rc < 0)
        return rc;
    if (a->style == TIMM_BLENDED)
        weigh_blends(&m.weights, a->width);
    begin(&m);
    for (int32_t k = 0; rc >= 0 && k < a->width; k++) {
        const struct st_arena_mark mark = st_arena_mark(arena);
        rc = run_chain(&m, k, rng, held, image->work, err);
        st_arena_rewind(arena, mark);
    }
    if (rc < 0)
        return rc;
    end(&m);
    st_image_set(image, m.out, false);
    return STOKER_OK;
}

const struct st_op st_op_augment_and_mix = {
    .name = name,
    .help = "augment_and_mix(width=3){...}: adds up several chains of the ops in braces (AugMix)",
    .self_size = sizeof(struct augment_and_mix),
    .params = params,
    .plan = plan,
    .holds = ST_HOLDS_MIXED,
    .held = held,
    .mix = mix,
};
