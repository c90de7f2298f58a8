/* brightness_contrast.c - multiplies values and adds to them, as Albumentations does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"

static const char name[] = "albu_brightness_contrast";

struct brightness_contrast {
    struct st_list brightness, contrast;
    bool by_mean, safe;
};

static const struct st_param params[] = {
    {.name = "brightness",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct brightness_contrast, brightness),
     .min = -1e6,
     .max = 1e6,
     .help = "what is added, low and high, as a fraction of 255 or of the mean (-0.2, 0.2)"},
    {.name = "contrast",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct brightness_contrast, contrast),
     .min = -1e6,
     .max = 1e6,
     .help = "the factor less 1, low and high (-0.2, 0.2)"},
    {.name = "by_mean",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct brightness_contrast, by_mean),
     .help = "brightness is a fraction of the image's mean"},
    {.name = "safe",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct brightness_contrast, safe),
     .help = "reduces both until no value is clipped"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct brightness_contrast *b = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_range(&b->brightness, name, "brightness", -0.2, 0.2, err);
    return rc < 0 ? rc : st_param_range(&b->contrast, name, "contrast", -0.2, 0.2, err);
}

/* Of all values. */
static double mean_of(const struct st_view *pixels)
{
    const size_t count = (size_t)pixels->width * (size_t)pixels->channels;
    uint64_t sum = 0;
    for (int32_t y = 0; y < pixels->height; y++) {
        const uint8_t *row = st_row(pixels, y);
        for (size_t k = 0; k < count; k++)
            sum += row[k];
    }
    return (double)sum / ((double)count * pixels->height);
}

/* What is added becomes 0 to 255, and the factor so small that no value exceeds 255. */
static void make_safe(double *factor, double *add)
{
    *add = *add < 0 ? 0 : *add > 255 ? 255 : *add;
    if (*factor > (255 - *add) / 255)
        *factor = (255 - *add) / 255;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct brightness_contrast *b = self;
    double factor = 1 + st_albu_draw(&b->contrast, rng);
    double add = st_albu_draw(&b->brightness, rng);
    uint8_t table[3][256];
    if (!st_albu_changes(image))
        return STOKER_OK;
    if (b->by_mean) {
        struct st_view pixels;
        const int rc = st_image_pixels(image, false, true, &pixels, err);
        if (rc < 0)
            return rc;
        add *= mean_of(&pixels);
    } else {
        add *= 255;
    }
    if (b->safe && factor > 0)
        make_safe(&factor, &add);
    for (int v = 0; v < 256; v++)
        table[0][v] = table[1][v] = table[2][v] = st_albu_byte((float)v * (float)factor + (float)add);
    return st_albu_replace(image, (const uint8_t(*)[256])table, err);
}

const struct st_op st_op_albu_brightness_contrast = {
    .name = name,
    .help = "changes brightness and contrast at random, as Albumentations does",
    .self_size = sizeof(struct brightness_contrast),
    .params = params,
    .plan = plan,
    .run = run,
};
