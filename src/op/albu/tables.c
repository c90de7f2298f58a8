/* tables.c - ops that replace each value by another: gamma, posterize, solarize, shifts of channels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "op/albu/albu.h"

enum { CHANNELS = 3 };

/* The same for all channels. */
static int replace_all(struct st_image *image, const uint8_t one[256], struct stoker_error *err)
{
    uint8_t table[CHANNELS][256];
    for (int c = 0; c < CHANNELS; c++)
        memcpy(table[c], one, 256);
    return st_albu_replace(image, (const uint8_t(*)[256])table, err);
}

struct one_range {
    struct st_list range;
};

#define RANGE(text, low, high, what)                                                                    \
    {                                                                                                   \
        .name = text, .type = ST_PARAM_LIST, .offset = offsetof(struct one_range, range), .min = low,   \
        .max = high, .help = what                                                                       \
    }

/* ---- gamma ---- */

static const struct st_param gamma_params[] = {
    RANGE("gamma", 1e-3, 1e6, "low and high exponent in percent (80, 120)"), {0}};

static int plan_gamma(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                      struct stoker_error *err)
{
    struct one_range *g = self;
    const int rc = st_plan_bytes(shape, finish, "albu_gamma", err);
    return rc < 0 ? rc : st_param_range(&g->range, "albu_gamma", "gamma", 80, 120, err);
}

static int run_gamma(const void *self, struct st_rng *rng, struct st_image *image,
                     struct stoker_error *err)
{
    const struct one_range *g = self;
    const double exponent = st_albu_draw(&g->range, rng) / 100;
    uint8_t table[256];
    for (int v = 0; v < 256; v++) {
        const double level = v * (1.0 / 255);
        table[v] = (uint8_t)((exponent == 1 ? level : st_power(level, exponent)) * 255);
    }
    return replace_all(image, table, err);
}

/* ---- posterize ---- */

static const struct st_param posterize_params[] = {
    RANGE("bits", 1, 8, "low and high number of bits kept, or these for each channel (4, 4)"), {0}};

static int plan_posterize(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                          struct stoker_error *err)
{
    struct one_range *b = self;
    int rc = st_plan_bytes(shape, finish, "albu_posterize", err);
    if (rc >= 0)
        rc = st_albu_whole(&b->range, "albu_posterize", "bits", err);
    if (rc < 0 || b->range.count != 2 * CHANNELS)
        return rc < 0 ? rc : st_param_range(&b->range, "albu_posterize", "bits", 4, 4, err);
    if (shape->channels != CHANNELS)
        return st_fail(err, STOKER_EINVAL,
                       "albu_posterize: bits has ranges for 3 channels, but the image has %d",
                       shape->channels);
    for (uint32_t k = 0; k < b->range.count; k += 2)
        if (b->range.value[k] > b->range.value[k + 1])
            return st_fail(err, STOKER_EINVAL,
                           "albu_posterize: bits must be in ascending order, but %g is greater than %g",
                           b->range.value[k], b->range.value[k + 1]);
    return STOKER_OK;
}

static int run_posterize(const void *self, struct st_rng *rng, struct st_image *image,
                         struct stoker_error *err)
{
    const struct one_range *b = self;
    uint8_t table[CHANNELS][256];
    int32_t bits = 0;
    for (uint32_t c = 0; c < CHANNELS; c++) {
        if (2 * c < b->range.count) {
            const struct st_list range = {.value = {b->range.value[2 * c], b->range.value[2 * c + 1]}};
            bits = st_albu_draw_whole(&range, rng);
        }
        for (uint32_t v = 0; v < 256; v++)
            table[c][v] = (uint8_t)(v & st_posterize_mask(bits));
    }
    return st_albu_replace(image, (const uint8_t(*)[256])table, err);
}

/* ---- solarize ---- */

static const struct st_param solarize_params[] = {
    RANGE("threshold", 0, 1,
          "low and high of the first level that is inverted, as a fraction of 255 (0.5, 0.5)"),
    {0}};

static int plan_solarize(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                         struct stoker_error *err)
{
    struct one_range *s = self;
    const int rc = st_plan_bytes(shape, finish, "albu_solarize", err);
    return rc < 0 ? rc : st_param_range(&s->range, "albu_solarize", "threshold", 0.5, 0.5, err);
}

static int run_solarize(const void *self, struct st_rng *rng, struct st_image *image,
                        struct stoker_error *err)
{
    const struct one_range *s = self;
    const uint32_t level = st_solarize_level(st_albu_draw(&s->range, rng) * 255);
    return st_image_do(image, (struct st_pending){.kind = ST_PENDING_SOLARIZE, .level = level}, err);
}

/* ---- shifts ---- */

struct shift {
    struct st_list range[CHANNELS];
};

#define SHIFT(text, which)                                                                              \
    {                                                                                                   \
        .name = text, .type = ST_PARAM_LIST, .offset = offsetof(struct shift, range[which]), .min = -1, \
        .max = 1,                                                                                       \
        .help = "what is added to the channel, as a fraction of 255, low and high (-0.08, 0.08)"        \
    }

static const char *const shift_names[CHANNELS] = {"r", "g", "b"};
static const struct st_param shift_rgb_params[] = {SHIFT("r", 0), SHIFT("g", 1), SHIFT("b", 2), {0}};

static int plan_shift_rgb(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                          struct stoker_error *err)
{
    struct shift *s = self;
    int rc = st_plan_bytes(shape, finish, "albu_shift_rgb", err);
    for (int c = 0; rc >= 0 && c < CHANNELS; c++)
        rc = st_param_range(&s->range[c], "albu_shift_rgb", shift_names[c], -0.08, 0.08, err);
    return rc;
}

static int run_shift_rgb(const void *self, struct st_rng *rng, struct st_image *image,
                         struct stoker_error *err)
{
    const struct shift *s = self;
    uint8_t table[CHANNELS][256];
    for (int c = 0; c < CHANNELS; c++) {
        const int32_t by = (int32_t)(st_albu_draw(&s->range[c], rng) * 255);
        for (int32_t v = 0; v < 256; v++)
            table[c][v] = st_albu_byte((float)(v + by));
    }
    return st_albu_replace(image, (const uint8_t(*)[256])table, err);
}

#define OP(title, self, waits, what)                                                                    \
    const struct st_op st_op_albu_##title = {.name = "albu_" #title,                                    \
                                             .help = what,                                              \
                                             .self_size = sizeof(struct self),                          \
                                             .params = title##_params,                                  \
                                             .plan = plan_##title,                                      \
                                             .run = run_##title,                                        \
                                             .pending = waits}

OP(gamma, one_range, false, "raises values to a random power, as Albumentations does");
OP(posterize, one_range, false, "keeps a random number of bits, as Albumentations does");
OP(solarize, one_range, true, "inverts values from a random level on, as Albumentations does");
OP(shift_rgb, shift, false, "adds a random number to each channel, as Albumentations does");
