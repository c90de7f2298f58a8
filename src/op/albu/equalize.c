/* equalize.c - makes values equally frequent, as Albumentations does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"
#include "op/colour/tables.h"
#include "op/cv/colour.h"
#include "op/geometry/turn.h"

#include <math.h>

static const char name[] = "albu_equalize";

enum { CHANNELS = 3 };

struct equalize {
    bool luma;
};

static const struct st_param params[] = {
    {.name = "luma",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct equalize, luma),
     .help = "of the luminance, not of each channel"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)self;
    return st_plan_bytes(shape, finish, name, err);
}

/* As OpenCV's equalizeHist: a product of floats, rounded. The lowest value becomes 0, and one that is
 * everywhere stays. */
static void make_table(uint8_t table[256], const uint64_t count_of[256])
{
    uint64_t total = 0, sum = 0;
    int first = 255;
    for (int v = 255; v >= 0; v--) {
        total += count_of[v];
        first = count_of[v] ? v : first;
    }
    memset(table, 0, 256);
    table[first] = count_of[first] == total ? (uint8_t)first : 0;
    const float scale = 255.f / (float)(total - count_of[first]);
    for (int v = first + 1; v < 256 && count_of[first] < total; v++) {
        sum += count_of[v];
        table[v] = (uint8_t)fminf(rintf((float)sum * scale), 255);
    }
}

static void equalize(const struct st_colour_rows *rows, const struct st_view *pixels, bool first_only)
{
    uint64_t count_of[CHANNELS][256];
    uint8_t table[CHANNELS][256];
    struct st_tables tables;
    rows->histogram(pixels, count_of);
    for (int c = 0; c < CHANNELS; c++)
        if (c < pixels->channels && !(first_only && c > 0))
            make_table(table[c], count_of[c]);
        else
            for (int v = 0; v < 256; v++)
                table[c][v] = (uint8_t)v;
    st_tables_begin(&tables, rows, pixels);
    st_tables_replace(&tables, table[0]);
    st_tables_end(&tables);
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct equalize *e = self;
    const struct st_cv_colour_rows *cv = st_cv_colour_rows_for(image->work->level);
    const struct st_colour_rows *rows = st_colour_rows_of(image->work);
    struct st_view pixels;
    (void)rng;
    if (!st_albu_changes(image))
        return STOKER_OK;
    const int rc = st_image_pixels(image, true, true, &pixels, err);
    if (rc < 0)
        return rc;
    const bool luma = e->luma && pixels.channels == CHANNELS;
    for (int32_t y = 0; luma && y < pixels.height; y++)
        cv->to_ycrcb(st_row(&pixels, y), st_row(&pixels, y), (size_t)pixels.width);
    equalize(rows, &pixels, luma);
    for (int32_t y = 0; luma && y < pixels.height; y++)
        cv->from_ycrcb(st_row(&pixels, y), st_row(&pixels, y), (size_t)pixels.width);
    return STOKER_OK;
}

const struct st_op st_op_albu_equalize = {
    .name = name,
    .help = "makes values equally frequent, as Albumentations does",
    .self_size = sizeof(struct equalize),
    .params = params,
    .plan = plan,
    .run = run,
};
