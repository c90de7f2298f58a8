/* drop_holes.c - overwrites rectangles at random places of the image, as Albumentations' CoarseDropout
 * does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/holes.h"

#include <math.h>

enum { MOST_HOLES = 1 << 16, SIDE_MAX = 1 << 20 };

struct drop_holes {
    struct st_list count, height, width;
    bool relative;
    struct st_hole_fill fill;
};

static const char NAME[] = "drop_holes";

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
    ST_HOLE_FILL_PARAMS(struct drop_holes),
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
    int rc = st_holes_plan(&d->fill, shape, finish, NAME, err);
    if (rc >= 0)
        rc = check_range(&d->count, "count", true, MOST_HOLES, err);
    if (rc >= 0)
        rc = check_range(&d->height, "height", !d->relative, most, err);
    return rc < 0 ? rc : check_range(&d->width, "width", !d->relative, most, err);
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

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    const struct drop_holes *d = self;
    const int32_t width = st_image_width(image), height = st_image_height(image);
    const uint64_t many = (uint64_t)(d->count.value[1] - d->count.value[0]) + 1;
    const uint64_t count = (uint64_t)d->count.value[0] + st_rng_below(rng, many);
    if (!st_holes_have_work(&d->fill, image))
        return STOKER_OK;
    struct st_region *holes = st_arena_take(&image->work->arena, count * sizeof *holes);
    int rc = holes ? STOKER_OK : st_fail(err, STOKER_ENOMEM, "drop_holes: out of memory");
    for (uint64_t k = 0; rc >= 0 && k < count; k++)
        rc = draw_hole(d, rng, width, height, &holes[k], err);
    return rc < 0 ? rc : st_image_drop(image, rng, &d->fill, holes, count, err);
}

const struct st_op st_op_drop_holes = {
    .name = "drop_holes",
    .help = "overwrites rectangles at random places",
    .self_size = sizeof(struct drop_holes),
    .params = params,
    .plan = plan,
    .run = run,
};
