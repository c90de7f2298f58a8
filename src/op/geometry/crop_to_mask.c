/* crop_to_mask.c - crops a part with a random pixel of the mask, as Albumentations'
 * CropNonEmptyMaskIfExists does
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/chosen_crop.h"

enum { SIDE_MAX = 1 << 20 };

struct crop_to_mask {
    struct st_list size, ignore;
    int32_t height, width;
};

static const char NAME[] = "crop_to_mask";

static const struct st_param params[] = {
    {.name = "size",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct crop_to_mask, size),
     .min = 1,
     .max = SIDE_MAX,
     .required = true,
     .help = "height and width, or one number for both"},
    {.name = "ignore",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct crop_to_mask, ignore),
     .max = UINT16_MAX,
     .help = "numbers of the mask that count as 0, the background"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    (void)finish;
    struct crop_to_mask *c = self;
    int rc = st_plan_movable(shape, NAME, err);
    if (rc >= 0)
        rc = st_param_size(&c->size, NAME, "size", &c->height, &c->width, err);
    shape->width = c->width;
    shape->height = c->height;
    return rc;
}

static bool counts(const struct crop_to_mask *c, const uint8_t *pixel, bool wide)
{
    const uint32_t number = pixel[0] | (wide ? (uint32_t)pixel[1] << 8 : 0);
    for (uint32_t k = 0; number && k < c->ignore.count; k++)
        if (c->ignore.value[k] == number)
            return false;
    return number;
}

/* Looks for the pixel before which `before` others count; returns how many count until it is found. */
static uint64_t find(const struct crop_to_mask *c, const struct st_view *mask, bool wide,
                     uint64_t before, int32_t at[2])
{
    uint64_t count = 0;
    for (int32_t y = 0; y < mask->height; y++)
        for (int32_t x = 0; x < mask->width; x++) {
            if (!counts(c, st_row(mask, y) + (ptrdiff_t)x * mask->channels, wide))
                continue;
            if (count++ == before) {
                at[0] = x;
                at[1] = y;
                return count;
            }
        }
    return count;
}

/* Where a part begins that has the pixel at a random place, as far as the image permits. */
static uint32_t begin_around(struct st_rng *rng, int32_t at, int32_t part, int32_t length)
{
    const int32_t begin = at - (int32_t)st_rng_below(rng, (uint64_t)part);
    return (uint32_t)(begin < 0 ? 0 : begin > length - part ? length - part : begin);
}

static int choose(const void *self, struct st_rng *rng, struct st_image *guide, struct st_region *out,
                  struct stoker_error *err)
{
    const struct crop_to_mask *c = self;
    struct st_view mask;
    int32_t at[2] = {0, 0};
    const int rc = st_image_pixels(guide, false, false, &mask, err);
    if (rc < 0)
        return rc;
    if (c->width > mask.width || c->height > mask.height)
        return st_fail(err, STOKER_EINVAL, "a crop of %d x %d does not fit into an image of %d x %d",
                       c->width, c->height, mask.width, mask.height);
    *out = (struct st_region){.width = (uint32_t)c->width, .height = (uint32_t)c->height};
    const uint64_t count = find(c, &mask, guide->numbers->wide, UINT64_MAX, at);
    if (count) {
        find(c, &mask, guide->numbers->wide, st_rng_below(rng, count), at);
        out->x = begin_around(rng, at[0], c->width, mask.width);
        out->y = begin_around(rng, at[1], c->height, mask.height);
    } else {
        out->x = (uint32_t)st_rng_below(rng, (uint64_t)(mask.width - c->width) + 1);
        out->y = (uint32_t)st_rng_below(rng, (uint64_t)(mask.height - c->height) + 1);
    }
    return STOKER_OK;
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    return st_image_crop_chosen(self, rng, image, image->numbers && !image->numbers->bits, choose,
                                "mask", err);
}

const struct st_op st_op_crop_to_mask = {
    .name = NAME,
    .help = "crops a part with a random pixel of the mask that is not 0, if there is one",
    .self_size = sizeof(struct crop_to_mask),
    .params = params,
    .plan = plan,
    .run = run,
    .guide = ST_GUIDE_MASK,
};
