/* colours.c - ops on colours, as Albumentations makes them: hue, saturation and value; jitter; channels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"
#include "op/cv/colour.h"

enum { CHANNELS = 3 };

static const struct st_cv_colour_rows *rows_of(const struct st_image *image)
{
    return st_cv_colour_rows_for(image->work->level);
}

/* ---- hue, saturation and value ---- */

struct shift_hsv {
    struct st_list range[CHANNELS];
};

#define SHIFT(text, which, most, what)                                                                  \
    {                                                                                                   \
        .name = text, .type = ST_PARAM_LIST, .offset = offsetof(struct shift_hsv, range[which]),        \
        .min = -most, .max = most, .help = what                                                         \
    }

static const struct st_param shift_hsv_params[] = {
    SHIFT("hue", 0, 180, "what is added to hues of 0 to 179, low and high (-20, 20)"),
    SHIFT("saturation", 1, 255, "what is added to saturations, low and high (-30, 30)"),
    SHIFT("value", 2, 255, "what is added to values, low and high (-20, 20)"),
    {0},
};

static int plan_shift_hsv(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                          struct stoker_error *err)
{
    struct shift_hsv *s = self;
    int rc = st_plan_bytes(shape, finish, "albu_shift_hsv", err);
    if (rc >= 0)
        rc = st_param_range(&s->range[0], "albu_shift_hsv", "hue", -20, 20, err);
    if (rc >= 0)
        rc = st_param_range(&s->range[1], "albu_shift_hsv", "saturation", -30, 30, err);
    return rc < 0 ? rc : st_param_range(&s->range[2], "albu_shift_hsv", "value", -20, 20, err);
}

/* A fraction is left out. */
static void add_to_all(uint8_t table[256], double by)
{
    for (int32_t v = 0; v < 256; v++)
        table[v] = st_albu_byte((float)(v + (int32_t)by));
}

/* All pixels outside of `framed` become what one of them becomes. */
static void through_hsv_framed(const struct st_cv_colour_rows *rows, const struct st_view *pixels,
                               struct st_region framed, const uint8_t table[3][256])
{
    enum { VECTOR = ST_CV_HSV_VECTOR, VECTOR_BYTES = VECTOR * CHANNELS };
    const bool first = framed.x || framed.y;
    const size_t row = (size_t)pixels->width * CHANNELS;
    const size_t left = framed.x / VECTOR * VECTOR_BYTES;
    const size_t right = st_align(framed.x + framed.width, VECTOR) * CHANNELS;
    const uint8_t *alike = st_row(pixels, first ? 0 : pixels->height - 1) + (first ? 0 : row - CHANNELS);
    uint8_t around[VECTOR_BYTES];
    for (size_t k = 0; k < VECTOR_BYTES; k++)
        around[k] = alike[k % CHANNELS];
    rows->through_hsv(around, VECTOR, table);
    for (int32_t y = 0; y < pixels->height; y++) {
        const bool inside = (uint32_t)y - framed.y < framed.height;
        uint8_t *to = st_row(pixels, y);
        for (size_t at = 0; at < row; at += VECTOR_BYTES)
            if (!inside || at < left || at >= right)
                memcpy(to + at, around, VECTOR_BYTES);
        if (inside)
            rows->through_hsv(to + left, (right - left) / CHANNELS, table);
    }
}

static int through_hsv(struct st_image *image, const uint8_t table[3][256], struct stoker_error *err)
{
    const struct st_cv_colour_rows *rows = rows_of(image);
    struct st_view pixels;
    const bool all_alike = st_image_width(image) % ST_CV_HSV_VECTOR == 0;
    int rc = st_image_pixels(image, false, all_alike, &pixels, err);
    const struct st_region framed = image->framed;
    if (rc >= 0)
        rc = st_image_pixels(image, true, all_alike, &pixels, err);
    if (rc >= 0 && framed.width && all_alike) {
        through_hsv_framed(rows, &pixels, framed, table);
        image->framed = framed;
        return rc;
    }
    for (int32_t y = 0; rc >= 0 && y < pixels.height; y++)
        rows->through_hsv(st_row(&pixels, y), (size_t)pixels.width, table);
    return rc;
}

static int run_shift_hsv(const void *self, struct st_rng *rng, struct st_image *image,
                         struct stoker_error *err)
{
    const struct shift_hsv *s = self;
    uint8_t table[CHANNELS][256];
    double by[CHANNELS];
    for (int c = 0; c < CHANNELS; c++)
        by[c] = st_albu_draw(&s->range[c], rng);
    if (!st_albu_changes(image) || st_image_channels(image) != CHANNELS ||
        (by[0] == 0 && by[1] == 0 && by[2] == 0))
        return STOKER_OK;
    st_albu_turn_hues(table, by[0]);
    add_to_all(table[1], by[1]);
    table[1][0] = 0; /* grey stays grey */
    add_to_all(table[2], by[2]);
    return through_hsv(image, (const uint8_t(*)[256])table, err);
}

/* ---- channels ---- */

struct drop_channels {
    struct st_list count;
    double fill;
};

static const struct st_param drop_channels_params[] = {
    {.name = "count",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct drop_channels, count),
     .min = 1,
     .max = 2,
     .help = "how many channels are dropped, low and high (1, 1)"},
    {.name = "fill",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct drop_channels, fill),
     .max = 255,
     .help = "the value that they get"},
    {0},
};

static int plan_drop_channels(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                              struct stoker_error *err)
{
    struct drop_channels *d = self;
    int rc = st_plan_bytes(shape, finish, "albu_drop_channels", err);
    if (rc >= 0)
        rc = st_param_range(&d->count, "albu_drop_channels", "count", 1, 1, err);
    if (rc >= 0)
        rc = st_albu_whole(&d->count, "albu_drop_channels", "count", err);
    if (rc >= 0 && shape->channels != CHANNELS)
        rc = st_fail(err, STOKER_EINVAL, "albu_drop_channels: the image has only one channel");
    return rc;
}

static int run_drop_channels(const void *self, struct st_rng *rng, struct st_image *image,
                             struct stoker_error *err)
{
    const struct drop_channels *d = self;
    const int32_t count = st_albu_draw_whole(&d->count, rng);
    const uint64_t chosen = st_rng_below(rng, CHANNELS); /* dropped, or the only one that stays */
    uint8_t table[CHANNELS][256];
    for (uint64_t c = 0; c < CHANNELS; c++)
        for (int v = 0; v < 256; v++)
            table[c][v] = (uint8_t)((c == chosen) == (count == 1) ? d->fill : v);
    return st_albu_replace(image, (const uint8_t(*)[256])table, err);
}

/* ---- grey ---- */

enum method { WEIGHTED, LIGHT, MIDDLE, MEAN, MOST };

static const char *const method_words[] = {"weighted_average", "from_lab", "desaturation",
                                           "average",          "max",      NULL};

struct grey {
    int32_t method;
    struct st_cv_light light;
};

static const struct st_param grey_params[] = {
    {.name = "method",
     .type = ST_PARAM_WORD,
     .offset = offsetof(struct grey, method),
     .def = WEIGHTED,
     .words = method_words,
     .help = "how it is made"},
    {0},
};

static int plan_grey(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                     struct stoker_error *err)
{
    struct grey *g = self;
    if (g->method == LIGHT)
        st_cv_light_make(&g->light);
    return st_plan_bytes(shape, finish, "albu_grey", err);
}

static int run_grey(const void *self, struct st_rng *rng, struct st_image *image,
                    struct stoker_error *err)
{
    const struct grey *g = self;
    const struct st_cv_colour_rows *rows = rows_of(image);
    void (*const of_method[])(uint8_t *, size_t) = {
        [WEIGHTED] = rows->grey3, [MIDDLE] = rows->middle3, [MEAN] = rows->mean3, [MOST] = rows->most3};
    struct st_view pixels;
    (void)rng;
    if (!st_albu_changes(image) || st_image_channels(image) != CHANNELS)
        return STOKER_OK;
    const int rc = st_image_pixels(image, true, true, &pixels, err);
    for (int32_t y = 0; rc >= 0 && y < pixels.height; y++)
        if (g->method == LIGHT)
            rows->light3(st_row(&pixels, y), (size_t)pixels.width, &g->light);
        else
            of_method[g->method](st_row(&pixels, y), (size_t)pixels.width);
    return rc;
}

#define OP(title, size, what)                                                                           \
    const struct st_op st_op_albu_##title = {.name = "albu_" #title,                                    \
                                             .help = what,                                              \
                                             .self_size = size,                                         \
                                             .params = title##_params,                                  \
                                             .plan = plan_##title,                                      \
                                             .run = run_##title}

OP(shift_hsv, sizeof(struct shift_hsv),
   "adds random numbers to hue, saturation and value, as Albumentations does");
OP(drop_channels, sizeof(struct drop_channels), "fills random channels, as Albumentations does");
OP(grey, sizeof(struct grey), "makes all channels the grey value, as Albumentations does");
