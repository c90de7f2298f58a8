/* jitter.c - brightness, contrast, saturation and hue in random order, as Albumentations changes them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"
#include "op/colour/tables.h"
#include "op/cv/colour.h"

static const char name[] = "albu_jitter";

enum { BRIGHTNESS, CONTRAST, SATURATION, HUE, CHANGES, CHANNELS = 3 };

struct jitter {
    struct st_list range[CHANGES];
};

#define RANGE(text, which, low, high, what)                                                             \
    {                                                                                                   \
        .name = text, .type = ST_PARAM_LIST, .offset = offsetof(struct jitter, range[which]),           \
        .min = low, .max = high, .help = what                                                           \
    }

static const struct st_param params[] = {
    RANGE("brightness", BRIGHTNESS, 0, 1e6, "low and high factor (0.8, 1.2)"),
    RANGE("contrast", CONTRAST, 0, 1e6, "low and high factor (0.8, 1.2)"),
    RANGE("saturation", SATURATION, 0, 1e6, "low and high factor (0.8, 1.2)"),
    RANGE("hue", HUE, -0.5, 0.5, "low and high shift as a fraction of the circle of hues (-0.5, 0.5)"),
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    static const char *const names[CHANGES] = {"brightness", "contrast", "saturation", "hue"};
    struct jitter *j = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    for (int k = 0; rc >= 0 && k < CHANGES; k++)
        rc = st_param_range(&j->range[k], name, names[k], k == HUE ? -0.5 : 0.8, k == HUE ? 0.5 : 1.2,
                            err);
    return rc;
}

/* Each value times `factor` plus `add`. */
static void scale(const struct st_image *image, const struct st_view *pixels, float factor, float add)
{
    uint8_t table[CHANNELS][256];
    struct st_tables tables;
    for (int v = 0; v < 256; v++)
        table[0][v] = table[1][v] = table[2][v] = st_albu_byte((float)v * factor + add);
    st_tables_begin(&tables, st_colour_rows_of(image->work), pixels);
    st_tables_replace(&tables, table[0]);
    st_tables_end(&tables);
}

/* Without contrast, the mean is rounded first. */
static void change_contrast(const struct st_image *image, const struct st_view *pixels, double by,
                            double mean)
{
    if (by == 0)
        scale(image, pixels, 0, (float)(int32_t)(mean + 0.5));
    else
        scale(image, pixels, (float)by, (float)(mean * (1 - by)));
}

static int mean_grey(const struct st_image *image, const struct st_view *pixels, double *mean)
{
    const struct st_cv_colour_rows *rows = st_cv_colour_rows_for(image->work->level);
    const size_t width = (size_t)pixels->width;
    uint8_t *grey = st_arena_take(&image->work->arena, width);
    uint64_t sum = 0;
    if (!grey)
        return STOKER_ENOMEM;
    for (int32_t y = 0; y < pixels->height; y++) {
        const uint8_t *row = st_row(pixels, y);
        if (pixels->channels == CHANNELS) {
            rows->grey(grey, row, width);
            row = grey;
        }
        for (size_t x = 0; x < width; x++)
            sum += row[x];
    }
    *mean = (double)sum / ((double)width * pixels->height);
    return STOKER_OK;
}

static int change(const struct st_image *image, const struct st_view *pixels, int which, double by)
{
    const struct st_cv_colour_rows *rows = st_cv_colour_rows_for(image->work->level);
    const size_t width = (size_t)pixels->width;
    uint8_t table[CHANNELS][256];
    const double neutral = which == HUE ? 0 : 1;
    double mean;
    if (which == BRIGHTNESS) {
        scale(image, pixels, (float)by, 0);
    } else if (which == CONTRAST) {
        if (mean_grey(image, pixels, &mean) < 0)
            return STOKER_ENOMEM;
        change_contrast(image, pixels, by, mean);
    } else if (pixels->channels == CHANNELS && by != neutral) {
        st_albu_turn_hues(table, by * ST_ALBU_HUES);
        for (int32_t y = 0; y < pixels->height; y++)
            if (which == SATURATION)
                rows->saturate(st_row(pixels, y), width, (float)by, (float)(1 - by));
            else
                rows->through_hsv(st_row(pixels, y), width, (const uint8_t(*)[256])table);
    }
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct jitter *j = self;
    int order[CHANGES] = {BRIGHTNESS, CONTRAST, SATURATION, HUE};
    double by[CHANGES];
    struct st_view pixels;
    for (int k = 0; k < CHANGES; k++)
        by[k] = st_albu_draw(&j->range[k], rng);
    for (int k = CHANGES - 1; k > 0; k--) {
        const int other = (int)st_rng_below(rng, (uint64_t)k + 1), kept = order[k];
        order[k] = order[other];
        order[other] = kept;
    }
    if (!st_albu_changes(image))
        return STOKER_OK;
    const int rc = st_image_pixels(image, true, false, &pixels, err);
    for (int k = 0; rc >= 0 && k < CHANGES; k++)
        if (change(image, &pixels, order[k], by[order[k]]) < 0)
            return st_albu_no_memory(name, err);
    return rc;
}

const struct st_op st_op_albu_jitter = {
    .name = name,
    .help = "changes brightness, contrast, saturation and hue, as Albumentations does",
    .self_size = sizeof(struct jitter),
    .params = params,
    .plan = plan,
    .run = run,
};
