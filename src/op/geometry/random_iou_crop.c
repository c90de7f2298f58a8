/* random_iou_crop.c - a random crop that keeps enough of some box
 *
 * The arithmetic is torchvision's: sizes, places and overlaps are float32, aspect ratios double.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include <string.h>

/* Rounds of drawing an overlap until there is a crop, or the image is left as it is. */
enum { ROUNDS_MOST = 10000 };

struct iou_crop {
    double min_scale, max_scale, min_aspect_ratio, max_aspect_ratio;
    struct st_list overlaps;
    int32_t trials;
};

#define NUMBER(name_, default_, most, text)                                                             \
    {                                                                                                   \
        .name = #name_, .type = ST_PARAM_FLOAT, .offset = offsetof(struct iou_crop, name_),             \
        .def = default_, .max = most, .help = text                                                      \
    }

static const char name[] = "random_iou_crop";

static const struct st_param params[] = {
    NUMBER(min_scale, 0.3, 1, "the least width and height, as a fraction of the image's"),
    NUMBER(max_scale, 1, 1, "the largest ones"),
    NUMBER(min_aspect_ratio, 0.5, 1e6, "the least width, divided by the height"),
    NUMBER(max_aspect_ratio, 2, 1e6, "the largest one"),
    {.name = "overlaps",
     .type = ST_PARAM_LIST,
     .offset = offsetof(struct iou_crop, overlaps),
     .max = 1e6,
     .help = "one is drawn, the least intersection over union that some box must have with the crop; 1 "
             "leaves the image as it is (0, 0.1, 0.3, 0.5, 0.7, 0.9, 1)"},
    {.name = "trials",
     .type = ST_PARAM_INT,
     .offset = offsetof(struct iou_crop, trials),
     .def = 40,
     .min = 1,
     .max = 10000,
     .help = "crops that are tried until another overlap is drawn"},
    {0},
};

static int plan(void *self, struct st_shape *shape, struct st_finish_spec *finish,
                struct stoker_error *err)
{
    static const double overlaps[] = {0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0};
    (void)finish;
    struct iou_crop *c = self;
    if (!c->overlaps.count) {
        c->overlaps.count = sizeof overlaps / sizeof *overlaps;
        memcpy(c->overlaps.value, overlaps, sizeof overlaps);
    }
    shape->width = shape->height = ST_SIZE_DIFFERS;
    return st_plan_movable(shape, name, err);
}

/* As torch draws float32: 24 bits. */
static float draw(struct st_rng *rng) { return (float)(st_rng_u32(rng) >> 8) * 0x1p-24f; }

static uint32_t draw_side(const struct iou_crop *c, struct st_rng *rng, int32_t length)
{
    const float scale = (float)c->min_scale + (float)(c->max_scale - c->min_scale) * draw(rng);
    const int64_t side = (int64_t)((float)length * scale);
    return (uint32_t)(side < length ? side : length);
}

static bool is_inside(const float *box, const struct st_region *crop)
{
    const float x = 0.5f * (box[0] + box[2]), y = 0.5f * (box[1] + box[3]);
    return (float)crop->x < x && x < (float)(crop->x + crop->width) && (float)crop->y < y &&
           y < (float)(crop->y + crop->height);
}

/* Without a common area 0, as the sides of what is common are. */
static float common(float low, float high, float from, float to)
{
    const float begin = low > from ? low : from, end = high < to ? high : to;
    return end > begin ? end - begin : 0;
}

static float overlap(const float *box, const struct st_region *crop)
{
    const float left = (float)crop->x, right = (float)(crop->x + crop->width);
    const float top = (float)crop->y, bottom = (float)(crop->y + crop->height);
    const float both = common(box[0], box[2], left, right) * common(box[1], box[3], top, bottom);
    const float area = (box[2] - box[0]) * (box[3] - box[1]);
    return both / (area + (right - left) * (bottom - top) - both);
}

/* Whether a box whose centre is inside has that overlap; a box without a number for it has, as in
 * torchvision. */
static bool suits(const struct st_region *crop, const struct st_boxes *boxes, float least)
{
    bool found = false;
    for (uint64_t k = 0; k < boxes->count && !found; k++)
        found = is_inside(boxes->box[k], crop) && !(overlap(boxes->box[k], crop) < least);
    return found;
}

/* Draws a crop; false if it is none. */
static bool draw_crop(const struct iou_crop *c, struct st_rng *rng, int32_t width, int32_t height,
                      struct st_region *out)
{
    out->width = draw_side(c, rng, width);
    out->height = draw_side(c, rng, height);
    if (!out->width || !out->height)
        return false;
    const double ratio = (double)out->width / out->height;
    if (!(c->min_aspect_ratio <= ratio && ratio <= c->max_aspect_ratio))
        return false;
    out->x = (uint32_t)((float)((uint32_t)width - out->width) * draw(rng));
    out->y = (uint32_t)((float)((uint32_t)height - out->height) * draw(rng));
    return true;
}

/* Width 0: the image is left as it is. */
static int choose(const struct iou_crop *c, struct st_rng *rng, const struct st_image *image,
                  struct st_region *out, struct stoker_error *err)
{
    const int32_t width = st_image_width(image), height = st_image_height(image);
    for (int round = 0; round < ROUNDS_MOST; round++) {
        const double least = c->overlaps.value[st_rng_below(rng, c->overlaps.count)];
        *out = (struct st_region){0};
        if (least >= 1)
            return STOKER_OK;
        for (int32_t k = 0; k < c->trials; k++)
            if (draw_crop(c, rng, width, height, out) && suits(out, image->boxes, (float)least))
                return STOKER_OK;
    }
    return st_fail(err, STOKER_EINVAL,
                   "%s: no crop of an image of %d x %d with %llu boxes was found; 1 among the overlaps "
                   "leaves such images as they are",
                   name, width, height, (unsigned long long)image->boxes->count);
}

/* Boxes whose centres are outside have no area from here on, so that sanitize_bounding_boxes removes
 * them. */
static void drop_outside(struct st_boxes *boxes, const struct st_region *crop)
{
    const float corner[4] = {(float)crop->x, (float)crop->y, (float)crop->x, (float)crop->y};
    for (uint64_t k = 0; k < boxes->count; k++)
        if (!is_inside(boxes->box[k], crop))
            memcpy(boxes->box[k], corner, sizeof corner); /* zeros, once the crop has moved it */
}

static int run(const void *self, struct st_rng *rng, struct st_image *image, struct stoker_error *err)
{
    struct st_region *crop = image->chosen;
    if (!crop)
        return st_fail(err, STOKER_EINVAL,
                       "%s: the crop depends on boxes, and there is an image alone", name);
    if (image->boxes && image->boxes->box) { /* not of key points */
        const int rc = choose(self, rng, image, crop, err);
        if (rc < 0)
            return rc;
        if (crop->width)
            drop_outside(image->boxes, crop);
    }
    return crop->width ? st_image_crop(image, *crop, err) : STOKER_OK;
}

const struct st_op st_op_random_iou_crop = {
    .name = "random_iou_crop",
    .help = "a random crop that keeps enough of some box",
    .self_size = sizeof(struct iou_crop),
    .params = params,
    .plan = plan,
    .run = run,
    .moves = true,
    .guide = ST_GUIDE_BOXES,
};
