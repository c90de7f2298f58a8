/* spots.c - overwrites random pixels, as Albumentations' PixelDropout and SaltAndPepper do
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"

#include "base/text.h"

enum { CHANNELS = 4 };

/* ---- white and black pixels ---- */

struct salt {
    struct st_list amount, salt;
};

static const struct st_param salt_params[] = {
    {.name = "amount",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct salt, amount),
     .max = 1,
     .help = "part of the pixels, low and high (0.01, 0.06)"},
    {.name = "salt",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct salt, salt),
     .max = 1,
     .help = "part of these that become white, low and high (0.4, 0.6)"},
    {0},
};

static int plan_salt(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                     struct stoker_error *err)
{
    static const char op[] = "albu_salt_and_pepper";
    struct salt *s = self;
    int rc = st_plan_bytes(shape, finish, op, err);
    if (rc >= 0)
        rc = st_param_range(&s->amount, op, "amount", 0.01, 0.06, err);
    return rc < 0 ? rc : st_param_range(&s->salt, op, "salt", 0.4, 0.6, err);
}

/* Whether one of those that are left is chosen, of which there are `all`. */
static bool is_chosen(struct st_rng *rng, uint64_t *chosen, uint64_t all)
{
    const bool it_is = st_rng_below(rng, all) < *chosen;
    *chosen -= it_is;
    return it_is;
}

static int run_salt(const void *self, struct st_rng *rng, struct st_image *image,
                    struct stoker_error *err)
{
    const struct salt *s = self;
    const double amount = st_albu_draw(&s->amount, rng), ratio = st_albu_draw(&s->salt, rng);
    struct st_view pixels;
    if (!st_albu_changes(image))
        return STOKER_OK;
    const int rc = st_image_pixels(image, true, true, &pixels, err);
    if (rc < 0)
        return rc;
    uint64_t left = (uint64_t)pixels.width * (uint64_t)pixels.height;
    uint64_t spots = (uint64_t)((double)left * amount), white = (uint64_t)((double)spots * ratio);
    const size_t channels = (size_t)pixels.channels;
    for (int32_t y = 0; y < pixels.height && spots; y++) {
        uint8_t *pixel = st_row(&pixels, y);
        for (int32_t x = 0; x < pixels.width && spots; x++, left--, pixel += channels) {
            const uint64_t before = spots;
            if (is_chosen(rng, &spots, left))
                memset(pixel, is_chosen(rng, &white, before) ? 255 : 0, channels);
        }
    }
    return STOKER_OK;
}

/* ---- pixels of one value ---- */

struct drop {
    double share;
    bool per_channel;
    struct st_list fill;
};

static const char *const fill_words[] = {"random", NULL};
static const struct st_param drop_params[] = {
    {.name = "share",
     .type = ST_PARAM_FLOAT,
     .offset = offsetof(struct drop, share),
     .def = 0.01,
     .max = 1,
     .help = "how likely each pixel is overwritten"},
    {.name = "per_channel",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct drop, per_channel),
     .help = "each value is overwritten or not"},
    {.name = "fill",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct drop, fill),
     .max = 255,
     .words = fill_words,
     .help = "its value (0), or one per channel; random: one for all"},
    {0},
};

static int plan_drop(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                     struct stoker_error *err)
{
    const struct drop *d = self;
    const int rc = st_plan_bytes(shape, finish, "albu_drop_pixels", err);
    if (rc >= 0 && d->fill.count > 1 && d->fill.count != (uint32_t)shape->channels)
        return st_fail(err, STOKER_EINVAL,
                       "albu_drop_pixels: fill has %u values, but the image has %d channel%s",
                       d->fill.count, shape->channels, st_s((uint64_t)shape->channels));
    return rc;
}

static void drop_pixel(const struct drop *d, struct st_rng *rng, uint8_t *pixel, uint32_t channels,
                       const uint8_t fill[CHANNELS])
{
    bool drop = false;
    for (uint32_t c = 0; c < channels; c++) {
        drop = c == 0 || d->per_channel ? st_rng_f64(rng) < d->share : drop;
        pixel[c] = drop ? fill[c] : pixel[c];
    }
}

static int run_drop(const void *self, struct st_rng *rng, struct st_image *image,
                    struct stoker_error *err)
{
    const struct drop *d = self;
    uint8_t fill[CHANNELS] = {0};
    struct st_view pixels;
    if (!st_albu_changes(image))
        return STOKER_OK;
    const int rc = st_image_pixels(image, true, true, &pixels, err);
    if (rc < 0)
        return rc;
    for (uint32_t c = 0; c < CHANNELS; c++)
        fill[c] = d->fill.word    ? (uint8_t)st_rng_below(rng, 255) /* as Albumentations: without 255 */
                  : d->fill.count ? (uint8_t)d->fill.value[c < d->fill.count ? c : 0]
                                  : 0;
    for (int32_t y = 0; y < pixels.height; y++) {
        uint8_t *pixel = st_row(&pixels, y);
        for (int32_t x = 0; x < pixels.width; x++, pixel += pixels.channels)
            drop_pixel(d, rng, pixel, (uint32_t)pixels.channels, fill);
    }
    return STOKER_OK;
}

const struct st_op st_op_albu_salt_and_pepper = {
    .name = "albu_salt_and_pepper",
    .help = "makes random pixels white and black, as Albumentations does",
    .self_size = sizeof(struct salt),
    .params = salt_params,
    .plan = plan_salt,
    .run = run_salt,
};

const struct st_op st_op_albu_drop_pixels = {
    .name = "albu_drop_pixels",
    .help = "overwrites random pixels, as Albumentations does",
    .self_size = sizeof(struct drop),
    .params = drop_params,
    .plan = plan_drop,
    .run = run_drop,
};
