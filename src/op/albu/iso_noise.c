/* iso_noise.c - pixels that become lighter, and hues that are turned, as Albumentations does
 *
 * To the lightness it adds what is missing to 1 times the intensity times a number of Poisson's
 * distribution, which is mostly 0. What it adds to hues moves the channel between the most and the
 * least, mostly by far less than it is rounded by. So most pixels stay, which one random number says.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/functions.h"
#include "op/albu/albu.h"
#include "op/geometry/turn.h"

#include <math.h>

static const char name[] = "albu_iso_noise";

enum { CHANNELS = 3, SIXTH = 60 }; /* of a circle, in degrees */

struct iso_noise {
    struct st_list color_shift, intensity;
};

static const struct st_param params[] = {
    {.name = "color_shift",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct iso_noise, color_shift),
     .max = 1,
     .help = "standard deviation of hues in degrees, times the intensity, low and high (0.01, 0.05)"},
    {.name = "intensity",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct iso_noise, intensity),
     .max = 1e6,
     .help = "how many pixels become lighter, and by how much, low and high (0.1, 0.5)"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct iso_noise *n = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_range(&n->color_shift, name, "color_shift", 0.01, 0.05, err);
    return rc < 0 ? rc : st_param_range(&n->intensity, name, "intensity", 0.1, 0.5, err);
}

static int32_t most_of(const uint8_t *rgb)
{
    const int32_t most = rgb[0] > rgb[1] ? rgb[0] : rgb[1];
    return most > rgb[2] ? most : rgb[2];
}

static int32_t least_of(const uint8_t *rgb)
{
    const int32_t least = rgb[0] < rgb[1] ? rgb[0] : rgb[1];
    return least < rgb[2] ? least : rgb[2];
}

/* Of the lightness, 0 to 1: half of the sum of the most and the least. */
static double deviation_of(const struct st_view *pixels)
{
    const double count = (double)pixels->width * pixels->height, levels = 510;
    uint64_t sum = 0, squares = 0;
    for (int32_t y = 0; y < pixels->height; y++) {
        const uint8_t *row = st_row(pixels, y);
        for (int32_t x = 0; x < CHANNELS * pixels->width; x += CHANNELS) {
            const uint64_t light = (uint64_t)(most_of(row + x) + least_of(row + x));
            sum += light;
            squares += light * light;
        }
    }
    const double mean = (double)sum / count, variance = (double)squares / count - mean * mean;
    return sqrt(variance > 0 ? variance : 0) / levels;
}

/* ---- pixels ------------------------------------------------------------------------------------ */

/* The share of the way from the least to the most that a channel has at a hue, in sixths of a circle
 * from where it has the most. */
static double share_at(double hue)
{
    const double from = fabs(hue - 6 * floor(hue / 6) - 3) - 1; /* 2 at the most, -1 opposite */
    return from < 0 ? 0 : from > 1 ? 1 : from;
}

/* In sixths of a circle. */
static double hue_of(const uint8_t *rgb, int32_t most, int32_t depth)
{
    const double r = rgb[0], g = rgb[1], b = rgb[2];
    if (depth == 0)
        return 0;
    return most == rgb[0] ? (g - b) / depth
                          : most == rgb[1] ? 2 + (b - r) / depth : 4 + (r - g) / depth;
}

/* Turns the hue, and adds a part, 0 to 1, of what is missing to the lightness; the saturation stays. */
static void change_pixel(uint8_t *rgb, double degrees, double part)
{
    const int32_t most = most_of(rgb), least = least_of(rgb), depth = most - least, sum = most + least;
    const double hue = hue_of(rgb, most, depth) + degrees / SIXTH;
    const double saturation = depth == 0 ? 0 : (double)depth / (sum < 255 ? sum : 510 - sum);
    const double light = sum / 510.0 + part * (1 - sum / 510.0);
    const double half = saturation * (light < 0.5 ? light : 1 - light);
    for (int c = 0; c < CHANNELS; c++)
        rgb[c] = (uint8_t)lrint(255 * (light + half * (2 * share_at(hue - 2 * c) - 1)));
}

/* A number from 0 to 1, but not 0. */
static double positive(struct st_rng *rng) { return 1 - st_rng_f64(rng); }

/* A standard normal number that is further than `least` from 0: by Marsaglia's method, which rejects few
 * if `least` is not small. */
static double tail(double least, struct st_rng *rng)
{
    double size = least;
    if (least <= 0)
        return st_rng_normal(rng);
    do
        size = sqrt(least * least - 2 * st_ln(positive(rng)));
    while (st_rng_f64(rng) * size >= least);
    return st_rng_u32(rng) & 1 ? size : -size;
}

/* A number of Poisson's distribution that is not 0, of a mean below 1. */
static int32_t several(double mean, struct st_rng *rng)
{
    double left = st_rng_f64(rng) * (st_exp(mean) - 1), share = mean;
    int32_t number = 1;
    while (left >= share && number < 64) {
        left -= share;
        share *= mean / ++number;
    }
    return number;
}

struct chances {
    double intensity, expected; /* and the mean of Poisson's distribution */
    double deviation, least;    /* of hues, and of standard normal numbers that can change a byte */
    uint64_t lighter, turned;   /* of 2^32: below the first, and from there to below the second */
};

/* A turn by less than half of a level of the largest depth changes nothing. */
static struct chances chances_of(double deviation, double expected, double intensity)
{
    const double all = 4294967296.0, lighter = 1 - st_exp(-expected);
    struct chances c = {intensity, expected, deviation, .lighter = (uint64_t)(lighter * all)};
    c.least = deviation > 0 ? 0.49 * SIXTH / 255 / deviation : INFINITY;
    if (c.least < 0.5)
        c.least = 0;
    const double turned = deviation > 0 ? 2 * (1 - st_albu_below(c.least)) : 0;
    c.turned = c.lighter + (uint64_t)((1 - lighter) * turned * all);
    return c;
}

static void make_lighter(uint8_t *rgb, const struct chances *c, struct st_rng *rng)
{
    const double part = c->intensity < 1 ? c->intensity * several(c->expected, rng) : 1;
    if (part >= 1)
        memset(rgb, 255, CHANNELS);
    else
        change_pixel(rgb, c->deviation * st_rng_normal(rng), part);
}

static void change(const struct st_view *pixels, const struct chances *c, struct st_rng *rng)
{
    for (int32_t y = 0; y < pixels->height; y++) {
        uint8_t *row = st_row(pixels, y);
        for (int32_t x = 0; x < CHANNELS * pixels->width; x += CHANNELS) {
            const uint32_t random = st_rng_u32(rng);
            if (random < c->lighter)
                make_lighter(row + x, c, rng);
            else if (random < c->turned)
                change_pixel(row + x, c->deviation * tail(c->least, rng), 0);
        }
    }
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct iso_noise *n = self;
    const double shift = st_albu_draw(&n->color_shift, rng);
    const double intensity = st_albu_draw(&n->intensity, rng);
    struct st_view pixels;
    if (!st_albu_changes(image) || st_image_channels(image) != CHANNELS)
        return STOKER_OK;
    const int rc = st_image_pixels(image, true, true, &pixels, err);
    if (rc < 0)
        return rc;
    const struct chances c =
        chances_of(shift * intensity, deviation_of(&pixels) * intensity, intensity);
    change(&pixels, &c, rng);
    return STOKER_OK;
}

const struct st_op st_op_albu_iso_noise = {
    .name = name,
    .help = "makes pixels lighter and turns hues at random, as Albumentations' ISONoise does",
    .self_size = sizeof(struct iso_noise),
    .params = params,
    .plan = plan,
    .run = run,
};
