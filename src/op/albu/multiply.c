/* multiply.c - multiplies values by random numbers, as Albumentations' MultiplicativeNoise does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"

enum { CHANNELS = 3 };
static const char name[] = "albu_multiply";

struct multiply {
    struct st_list by;
    bool per_channel, each;
};

static const struct st_param params[] = {
    {.name = "by",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct multiply, by),
     .max = 1e6,
     .help = "low and high factor (0.9, 1.1)"},
    {.name = "per_channel",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct multiply, per_channel),
     .help = "channels have factors of their own"},
    {.name = "each",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct multiply, each),
     .help = "pixels have factors of their own"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct multiply *m = self;
    const int rc = st_plan_bytes(shape, finish, name, err);
    return rc < 0 ? rc : st_param_range(&m->by, name, "by", 0.9, 1.1, err);
}

static float factor(const struct multiply *m, struct st_rng *rng)
{
    return (float)st_albu_draw(&m->by, rng);
}

static int multiply_all(const struct multiply *m, struct st_rng *rng, struct st_image *image,
                        struct stoker_error *err)
{
    uint8_t table[CHANNELS][256];
    float by = 0;
    for (int c = 0; c < CHANNELS; c++) {
        by = c == 0 || m->per_channel ? factor(m, rng) : by;
        for (int v = 0; v < 256; v++)
            table[c][v] = st_albu_byte((float)v * by);
    }
    return st_albu_replace(image, (const uint8_t(*)[256])table, err);
}

static void multiply_pixel(const struct multiply *m, struct st_rng *rng, uint8_t *pixel,
                           int32_t channels)
{
    float by = 0;
    for (int32_t c = 0; c < channels; c++) {
        by = c == 0 || m->per_channel ? factor(m, rng) : by;
        pixel[c] = st_albu_byte((float)pixel[c] * by);
    }
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct multiply *m = self;
    struct st_view pixels;
    if (!st_albu_changes(image))
        return STOKER_OK;
    if (!m->each)
        return multiply_all(m, rng, image, err);
    const int rc = st_image_pixels(image, true, true, &pixels, err);
    for (int32_t y = 0; rc >= 0 && y < pixels.height; y++) {
        uint8_t *row = st_row(&pixels, y);
        for (int32_t x = 0; x < pixels.width; x++)
            multiply_pixel(m, rng, row + (size_t)x * (size_t)pixels.channels, pixels.channels);
    }
    return rc;
}

const struct st_op st_op_albu_multiply = {
    .name = name,
    .help = "multiplies values by random numbers, as Albumentations does",
    .self_size = sizeof(struct multiply),
    .params = params,
    .plan = plan,
    .run = run,
};
