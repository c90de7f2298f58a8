/* noise.c - adds normally distributed noise, as Albumentations does
 *
 * Bytes change by whole numbers, so the noise is drawn as one: out of a table of how likely each is
 * (Walker's alias method), which takes one random number for each value.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/albu/albu.h"

static const char name[] = "albu_noise";

struct noise {
    struct st_list std, mean;
    bool grey;
};

static const struct st_param params[] = {
    {.name = "std",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct noise, std),
     .max = 1,
     .help = "standard deviation as a fraction of 255, low and high (0.2, 0.44)"},
    {.name = "mean",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct noise, mean),
     .min = -1,
     .max = 1,
     .help = "mean as a fraction of 255, low and high (0, 0)"},
    {.name = "grey",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct noise, grey),
     .help = "all channels of a pixel get the same noise"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    struct noise *n = self;
    int rc = st_plan_bytes(shape, finish, name, err);
    if (rc >= 0)
        rc = st_param_range(&n->std, name, "std", 0.2, 0.44, err);
    return rc < 0 ? rc : st_param_range(&n->mean, name, "mean", 0, 0, err);
}

/* ---- how likely each number is ---- */

enum { BITS = 10, PLACES = 1 << BITS, FRACTION = 32 - BITS, MOST = 255 };
enum { KINDS = 2 * MOST + 1 }; /* from -255 to 255: what is beyond makes the same bytes */

struct numbers {
    uint32_t keep[PLACES]; /* a fraction below this keeps the place's own number */
    int16_t own[PLACES], other[PLACES];
};

/* Fills each place up to 1 / PLACES: one number with too little takes the rest of one with too much. */
static void make_numbers(struct numbers *n, double mean, double std)
{
    double share[PLACES] = {0}, before = 0;
    uint16_t little[PLACES], much[PLACES], littles = 0, muches = 0;
    for (int k = 0; k < KINDS; k++) {
        const double edge = k < MOST ? k - MOST : k - MOST + 1; /* fractions are left out */
        const double until = k == KINDS - 1 ? 1
                             : std > 0      ? st_albu_below((edge - mean) / std)
                                            : edge > mean;
        share[k] = (until - before) * PLACES;
        before = until;
    }
    for (uint16_t k = 0; k < PLACES; k++) {
        n->own[k] = n->other[k] = (int16_t)(k - MOST);
        n->keep[k] = 1u << FRACTION;
        if (share[k] < 1)
            little[littles++] = k;
        else
            much[muches++] = k;
    }
    while (littles && muches) {
        const uint16_t low = little[--littles], high = much[muches - 1];
        n->keep[low] = (uint32_t)(share[low] * (1u << FRACTION) + 0.5);
        n->other[low] = (int16_t)(high - MOST);
        share[high] -= 1 - share[low];
        if (share[high] < 1) {
            little[littles++] = high;
            muches--;
        }
    }
}

static int32_t draw(const struct numbers *n, struct st_rng *rng)
{
    const uint32_t random = st_rng_u32(rng), place = random >> FRACTION;
    return (random & ((1u << FRACTION) - 1)) < n->keep[place] ? n->own[place] : n->other[place];
}

static uint8_t sum_of(uint8_t value, int32_t number)
{
    const int32_t sum = value + number;
    return (uint8_t)(sum < 0 ? 0 : sum > MOST ? MOST : sum);
}

static void add(const struct st_view *pixels, const struct numbers *n, bool grey, struct st_rng *rng)
{
    const int32_t channels = pixels->channels, values = pixels->width * channels;
    for (int32_t y = 0; y < pixels->height; y++) {
        uint8_t *row = st_row(pixels, y);
        if (!grey) {
            for (int32_t k = 0; k < values; k++)
                row[k] = sum_of(row[k], draw(n, rng));
            continue;
        }
        for (int32_t k = 0; k < values; k += channels) {
            const int32_t number = draw(n, rng);
            for (int32_t c = 0; c < channels; c++)
                row[k + c] = sum_of(row[k + c], number);
        }
    }
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct noise *n = self;
    const double std = st_albu_draw(&n->std, rng) * 255, mean = st_albu_draw(&n->mean, rng) * 255;
    struct numbers numbers;
    struct st_view pixels;
    if (!st_albu_changes(image))
        return STOKER_OK;
    const int rc = st_image_pixels(image, true, true, &pixels, err);
    if (rc < 0)
        return rc;
    make_numbers(&numbers, mean, std);
    add(&pixels, &numbers, n->grey, rng);
    return STOKER_OK;
}

const struct st_op st_op_albu_noise = {
    .name = name,
    .help = "adds normally distributed noise, as Albumentations does",
    .self_size = sizeof(struct noise),
    .params = params,
    .plan = plan,
    .run = run,
};
