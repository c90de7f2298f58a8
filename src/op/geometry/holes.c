/* holes.c - rectangles of an image that are overwritten
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/holes.h"

#include "base/text.h"

enum { CHANNELS = 4 };
enum fill { NUMBERS, RANDOM, RANDOM_COLOR };
const char *const st_hole_fill_words[] = {"random", "random_color", NULL};

int st_holes_plan(const struct st_hole_fill *fill, const struct st_shape *shape,
                  const struct st_finish_spec *finish, const char *op, struct stoker_error *err)
{
    const int rc = st_plan_bytes(shape, finish, op, err);
    if (rc >= 0 && fill->fill.count > 1 && fill->fill.count != (uint32_t)shape->channels)
        return st_fail(err, STOKER_EINVAL, "%s: fill has %u values, but the image has %d channel%s", op,
                       fill->fill.count, shape->channels, st_s((uint64_t)shape->channels));
    return rc;
}

int st_holes_have_work(const struct st_hole_fill *fill, const struct st_image *image, const char *op,
                       struct stoker_error *err)
{
    if (image->boxes && image->boxes->count)
        return st_fail(err, STOKER_EINVAL, "%s: boxes cannot follow, since a hole may hide them", op);
    return !image->boxes && (!image->numbers || fill->mask_fill >= 0);
}

static void draw_pixel(struct st_rng *rng, uint8_t pixel[CHANNELS])
{
    const uint64_t bits = st_rng_u64(rng);
    for (int c = 0; c < CHANNELS; c++)
        pixel[c] = (uint8_t)(bits >> 8 * c);
}

static void fill_hole(const struct st_hole_fill *f, struct st_rng *rng, const struct st_view *pixels,
                      struct st_region hole, const uint8_t given[CHANNELS], bool is_mask)
{
    const enum fill fill = is_mask ? NUMBERS : (enum fill)f->fill.word;
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

static void find_value(const struct st_hole_fill *f, const struct st_image *image,
                       uint8_t pixel[CHANNELS])
{
    if (image->numbers) {
        st_image_number(image, (uint8_t)f->mask_fill, pixel);
        return;
    }
    for (uint32_t c = 0; c < CHANNELS; c++)
        pixel[c] = f->fill.count == 0 ? 0 : (uint8_t)f->fill.value[c < f->fill.count ? c : 0];
}

int st_image_drop(struct st_image *image, struct st_rng *rng, const struct st_hole_fill *fill,
                  const struct st_region *holes, uint64_t count, struct stoker_error *err)
{
    struct st_view pixels;
    uint8_t value[CHANNELS];
    const int rc = st_image_pixels(image, true, false, &pixels, err);
    if (rc < 0)
        return rc;
    find_value(fill, image, value);
    for (uint64_t k = 0; k < count; k++)
        fill_hole(fill, rng, &pixels, holes[k], value, image->numbers != NULL);
    return STOKER_OK;
}
