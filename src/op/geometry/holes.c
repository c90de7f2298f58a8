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

bool st_holes_have_work(const struct st_hole_fill *fill, const struct st_image *image)
{
    if (image->boxes)
        return image->boxes->count > 0 || (image->boxes->seen && image->boxes->points > 0);
    return !image->numbers || fill->mask_fill >= 0;
}

/* ---- boxes --------------------------------------------------------------------------------------- */

/* The pixels of a box, of which those from `most` on are outside, and those of them that are seen. */
struct seen {
    int32_t least[2], most[2];
    uint64_t pixels;
};

/* Albumentations has the sides of boxes as parts of the image's, and leaves out fractions of pixels. */
static int32_t pixel_of(float at, int32_t length)
{
    const double pixel = (double)(at / (float)length) * length;
    return pixel > 0 ? (pixel < length ? (int32_t)pixel : length) : 0;
}

static struct seen pixels_of(const float box[4], const int32_t size[2])
{
    struct seen all = {.pixels = 1};
    for (int axis = 0; axis < 2; axis++) {
        all.least[axis] = pixel_of(box[axis], size[axis]);
        all.most[axis] = pixel_of(box[axis + 2], size[axis]);
        const int32_t length = all.most[axis] - all.least[axis];
        all.pixels *= length > 0 ? (uint64_t)length : 0;
    }
    return all;
}

/* `row` has room for a byte for each column of the image. */
static struct seen look_around(const struct seen *box, const struct st_region *holes, uint64_t count,
                               uint8_t *row)
{
    struct seen found = {.least = {INT32_MAX, -1}};
    for (int32_t y = box->least[1]; y < box->most[1]; y++) {
        memset(row + box->least[0], 1, (size_t)(box->most[0] - box->least[0]));
        for (uint64_t k = 0; k < count; k++)
            if ((uint32_t)y >= holes[k].y && (uint32_t)y - holes[k].y < holes[k].height)
                memset(row + holes[k].x, 0, holes[k].width);
        for (int32_t x = box->least[0]; x < box->most[0]; x++) {
            if (!row[x])
                continue;
            found.pixels++;
            found.least[0] = x < found.least[0] ? x : found.least[0];
            found.most[0] = x + 1 > found.most[0] ? x + 1 : found.most[0];
            found.least[1] = found.least[1] < 0 ? y : found.least[1];
            found.most[1] = y + 1;
        }
    }
    return found;
}

static int hide_boxes(struct st_image *image, const struct st_hole_fill *limits,
                      const struct st_region *holes, uint64_t count, struct stoker_error *err)
{
    struct st_boxes *boxes = image->boxes;
    const int32_t size[2] = {st_image_width(image), st_image_height(image)};
    uint8_t *row = st_arena_take(&image->work->arena, (uint64_t)size[0]);
    uint64_t kept = 0;
    if (!row)
        return st_fail(err, STOKER_ENOMEM, "no memory for a row of %d pixels", size[0]);
    for (uint64_t k = 0; k < boxes->count; k++) {
        const struct seen box = pixels_of(boxes->box[k], size);
        const struct seen left =
            box.pixels ? look_around(&box, holes, count, row) : (struct seen){.pixels = 0};
        const double pixels = (double)left.pixels;
        if (!left.pixels || pixels < limits->area || pixels / (double)box.pixels < limits->visibility)
            continue;
        st_boxes_keep(boxes, kept, k);
        for (int axis = 0; axis < 2; axis++) {
            boxes->box[kept][axis] = (float)left.least[axis];
            boxes->box[kept][axis + 2] = (float)left.most[axis];
        }
        kept++;
    }
    boxes->count = kept;
    return STOKER_OK;
}

static bool is_hidden(const float at[2], const struct st_region *holes, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++) {
        const struct st_region *hole = &holes[k];
        if (at[0] >= (float)hole->x && at[0] < (float)(hole->x + hole->width) &&
            at[1] >= (float)hole->y && at[1] < (float)(hole->y + hole->height))
            return true;
    }
    return false;
}

static void hide_points(struct st_boxes *boxes, const struct st_region *holes, uint64_t count)
{
    uint64_t kept = 0;
    for (uint64_t k = 0; k < boxes->points; k++)
        if (!is_hidden(boxes->point + k * boxes->each, holes, count))
            st_points_keep(boxes, kept++, k);
    boxes->points = kept;
}

/* ---- pixels -------------------------------------------------------------------------------------- */

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
    if (image->boxes && image->boxes->seen)
        hide_points(image->boxes, holes, count);
    if (image->boxes)
        return hide_boxes(image, fill, holes, count, err);
    const int rc = st_image_pixels(image, true, false, &pixels, err);
    if (rc < 0)
        return rc;
    find_value(fill, image, value);
    for (uint64_t k = 0; k < count; k++)
        fill_hole(fill, rng, &pixels, holes[k], value, image->numbers != NULL);
    return STOKER_OK;
}
