/* drop_holes.c - overwrites rectangles at random places of the image, as Albumentations' CoarseDropout
 * does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include "base/text.h"

#include <math.h>

enum { MOST_HOLES = 1 << 16, SIDE_MAX = 1 << 20, CHANNELS = 4 };
enum fill { NUMBERS, RANDOM, RANDOM_COLOR };
static const char *const fill_words[] = {"random", "random_color", NULL};

struct drop_holes {
    struct st_list count, height, width, fill;
    bool relative;
    int32_t mask_fill;
};

#define LIST(name_, member, low, high, text)                                                            \
    {                                                                                                   \
        .name = name_, .type = ST_PARAM_LIST, .offset = offsetof(struct drop_holes, member),            \
        .min = low, .max = high, .required = true, .help = text                                         \
    }

static const struct st_param params[] = {
    LIST("count", count, 1, MOST_HOLES, "how many rectangles: least, most"),
    LIST("height", height, 0, SIDE_MAX, "of each, in pixels: least, most"),
    LIST("width", width, 0, SIDE_MAX, "of each, in pixels: least, most"),
    {.name = "relative",
     .type = ST_PARAM_BOOL,
     .offset = offsetof(struct drop_holes, relative),
     .max = 1,
     .help = "height and width are fractions of the image's"},
    {.name = "fill",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct drop_holes, fill),
     .max = 255,
     .words = fill_words,
     .help = "their value (0), or one per channel; random: for each pixel; random_color: for each "
             "rectangle"},
    {.name = "mask_fill",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct drop_holes, mask_fill),
     .def = -1,
     .max = 255,
     .help = "their value in masks, which else stay as they are"},
    {0},
};

static int check_range(const struct st_list *range, const char *name, bool whole, double most,
                       struct stoker_error *err)
{
    const double *v = range->value;
    if (range->count != 2 || !(v[0] <= v[1]))
        return st_fail(err, STOKER_EINVAL, "drop_holes: %s must be two numbers in ascending order",
                       name);
    if (v[1] > most || (whole && (v[0] != floor(v[0]) || v[1] != floor(v[1]))))
        return st_fail(err, STOKER_EINVAL, "drop_holes: %s must be %s", name,
                       whole ? "integers" : "fractions, from 0 to 1");
    return STOKER_OK;
}

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    const struct drop_holes *d = self;
    const double most = d->relative ? 1 : SIDE_MAX;
    int rc = st_plan_bytes(shape, finish, "drop_holes", err);
    if (rc >= 0)
        rc = check_range(&d->count, "count", true, MOST_HOLES, err);
    if (rc >= 0)
        rc = check_range(&d->height, "height", !d->relative, most, err);
    if (rc >= 0)
        rc = check_range(&d->width, "width", !d->relative, most, err);
    if (rc >= 0 && d->fill.count > 1 && d->fill.count != (uint32_t)shape->channels)
        rc =
            st_fail(err, STOKER_EINVAL, "drop_holes: fill has %u values, but the image has %d channel%s",
                    d->fill.count, shape->channels, st_s((uint64_t)shape->channels));
    return rc;
}

/* The length of a side in an image of this length. */
static int draw_length(const struct drop_holes *d, const struct st_list *range, struct st_rng *rng,
                       int32_t length, uint32_t *out, struct stoker_error *err)
{
    const double low = range->value[0];
    if (d->relative) {
        *out = (uint32_t)(length * st_rng_range(rng, low, range->value[1]));
        return STOKER_OK;
    }
    const double high = range->value[1] < length ? range->value[1] : length;
    if (low > high)
        return st_fail(err, STOKER_EINVAL, "drop_holes: %.0f pixels do not fit into an image of %d", low,
                       length);
    *out = (uint32_t)low + (uint32_t)st_rng_below(rng, (uint64_t)(high - low) + 1);
    return STOKER_OK;
}

static int draw_hole(const struct drop_holes *d, struct st_rng *rng, int32_t width, int32_t height,
                     struct st_region *hole, struct stoker_error *err)
{
    int rc = draw_length(d, &d->height, rng, height, &hole->height, err);
    if (rc >= 0)
        rc = draw_length(d, &d->width, rng, width, &hole->width, err);
    if (rc < 0)
        return rc;
    hole->y = (uint32_t)st_rng_below(rng, (uint64_t)height - hole->height + 1);
    hole->x = (uint32_t)st_rng_below(rng, (uint64_t)width - hole->width + 1);
    return STOKER_OK;
}

static void draw_pixel(struct st_rng *rng, uint8_t pixel[CHANNELS])
{
    const uint64_t bits = st_rng_u64(rng);
    for (int c = 0; c < CHANNELS; c++)
        pixel[c] = (uint8_t)(bits >> 8 * c);
}

static void fill_hole(const struct drop_holes *d, struct st_rng *rng, const struct st_view *pixels,
                      struct st_region hole, const uint8_t given[CHANNELS], bool is_mask)
{
    const enum fill fill = is_mask ? NUMBERS : (enum fill)d->fill.word;
    const size_t channels = (size_t)pixels->channels;
    uint8_t pixel[CHANNELS];
    memcpy(pixel, given, sizeof pixel);
    if (fill == RANDOM_COLOR)
        draw_pixel(rng, pixel);
    for (uint32_t y = hole.y; y < hole.y + hole.height; y++) {
        uint8_t *to = st_row(pixels, (int32_t)y) + hole.x * channels;
        for (uint32_t x = 0; x < hole.width; x++, to += channels) {
            if (fill == RANDOM)
                draw_pixel(rng, pixel);
            memcpy(to, pixel, channels);
        }
    }
}

static void find_value(const struct drop_holes *d, const struct st_image *image, uint8_t pixel[CHANNELS])
{
    if (image->numbers) {
        st_image_number(image, (uint8_t)d->mask_fill, pixel);
        return;
    }
    for (uint32_t c = 0; c < CHANNELS; c++)
        pixel[c] = d->fill.count == 0 ? 0 : (uint8_t)d->fill.value[c < d->fill.count ? c : 0];
}

/* All holes are drawn first: those of a mask are the same, and have no colours. */
static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct drop_holes *d = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const uint64_t many = (uint64_t)(d->count.value[1] - d->count.value[0]) + 1;
    const uint64_t count = (uint64_t)d->count.value[0] + st_rng_below(rng, many);
    struct st_view pixels;
    uint8_t value[CHANNELS];
    if (image->numbers && d->mask_fill < 0)
        return STOKER_OK;
    if (image->boxes && image->boxes->count)
        return st_fail(err, STOKER_EINVAL,
                       "drop_holes: boxes cannot follow, since a hole may hide them");
    if (image->boxes)
        return STOKER_OK;
    struct st_region *holes = st_arena_take(&image->work->arena, count * sizeof *holes);
    int rc = holes ? STOKER_OK : st_fail(err, STOKER_ENOMEM, "drop_holes: out of memory");
    for (uint64_t k = 0; rc >= 0 && k < count; k++)
        rc = draw_hole(d, rng, width, height, &holes[k], err);
    if (rc >= 0)
        rc = st_image_pixels(image, true, false, &pixels, err);
    if (rc < 0)
        return rc;
    find_value(d, image, value);
    for (uint64_t k = 0; k < count; k++)
        fill_hole(d, rng, &pixels, holes[k], value, image->numbers != NULL);
    return STOKER_OK;
}

const struct st_op st_op_drop_holes = {
    .name = "drop_holes",
    .help = "overwrites rectangles at random places",
    .self_size = sizeof(struct drop_holes),
    .params = params,
    .plan = plan,
    .run = run,
};
