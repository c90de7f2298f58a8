/* boxes.c - the boxes and key points of objects in an image, which follow what moves its pixels
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/boxes.h"

#include <math.h>
#include <string.h>

const char *const st_box_format_words[] = {"xyxy", "xywh", "cxcywh", NULL};

void st_boxes_to_corners(struct st_boxes *boxes, enum st_box_format format)
{
    for (uint64_t k = 0; k < boxes->count && format != ST_BOX_XYXY; k++)
        for (int side = 0; side < 2; side++) {
            float *box = boxes->box[k] + side;
            if (format == ST_BOX_CXCYWH)
                box[0] -= box[2] / 2;
            box[2] += box[0];
        }
}

void st_boxes_to_format(struct st_boxes *boxes, int32_t width, int32_t height)
{
    for (uint64_t k = 0; k < boxes->count; k++)
        for (int side = 0; side < 2; side++) {
            float *box = boxes->box[k] + side;
            if (boxes->relative) {
                box[0] /= (float)(side ? height : width);
                box[2] /= (float)(side ? height : width);
            }
            if (boxes->format != ST_BOX_XYXY)
                box[2] -= box[0];
            if (boxes->format == ST_BOX_CXCYWH)
                box[0] = (box[0] * 2 + box[2]) / 2;
        }
}

void st_boxes_shift(struct st_boxes *boxes, float right, float down)
{
    for (uint64_t k = 0; k < boxes->count; k++)
        for (int side = 0; side < 4; side++)
            boxes->box[k][side] += side % 2 ? down : right;
    for (uint64_t k = 0; k < boxes->points; k++) {
        boxes->point[k * boxes->each] += right;
        boxes->point[k * boxes->each + 1] += down;
    }
}

static void clamp(float *box, int32_t width, int32_t height)
{
    for (int side = 0; side < 4; side++) {
        const float most = (float)(side % 2 ? height : width), at = box[side];
        box[side] = at < 0 ? 0 : at > most ? most : at;
    }
}

void st_boxes_clamp(struct st_boxes *boxes, int32_t width, int32_t height)
{
    for (uint64_t k = 0; k < boxes->count && !boxes->loose; k++)
        clamp(boxes->box[k], width, height);
}

static float scaled(const struct st_boxes *boxes, float at, float by)
{
    return boxes->whole ? truncf(at * by) : at * by;
}

void st_boxes_resize(struct st_boxes *boxes, const int32_t from[2], const int32_t to[2])
{
    const float across = (float)((double)to[0] / from[0]), down = (float)((double)to[1] / from[1]);
    for (uint64_t k = 0; k < boxes->count; k++)
        for (int side = 0; side < 4; side++)
            boxes->box[k][side] = scaled(boxes, boxes->box[k][side], side % 2 ? down : across);
    for (uint64_t k = 0; k < boxes->points; k++) {
        boxes->point[k * boxes->each] *= across;
        boxes->point[k * boxes->each + 1] *= down;
    }
}

void st_boxes_mirror(struct st_boxes *boxes, bool across, int32_t length)
{
    const int first = across ? 0 : 1;
    for (uint64_t k = 0; k < boxes->count; k++) {
        float *box = boxes->box[k];
        const float begin = box[first];
        box[first] = -(box[first + 2] - (float)length);
        box[first + 2] = -(begin - (float)length);
    }
    for (uint64_t k = 0; k < boxes->points; k++) {
        float *at = &boxes->point[k * boxes->each + (uint64_t)first];
        *at = -(*at - (float)(length - 1));
    }
}

static void swap(float *a, float *b)
{
    const float kept = *a;
    *a = *b;
    *b = kept;
}

void st_boxes_transpose(struct st_boxes *boxes)
{
    for (uint64_t k = 0; k < boxes->count; k++) {
        swap(&boxes->box[k][0], &boxes->box[k][1]);
        swap(&boxes->box[k][2], &boxes->box[k][3]);
    }
    for (uint64_t k = 0; k < boxes->points; k++)
        swap(&boxes->point[k * boxes->each], &boxes->point[k * boxes->each + 1]);
}

/* Like torch's aminmax, NaN if one is NaN. */
static float lesser(float a, float b) { return isnan(a) || a < b ? a : b; }
static float greater(float a, float b) { return isnan(a) || a > b ? a : b; }

void st_boxes_map(struct st_boxes *boxes, void (*move)(const void *by, const float from[2], float to[2]),
                  const void *by)
{
    for (uint64_t k = 0; k < boxes->count; k++) {
        float *box = boxes->box[k], point[4][2];
        const float corner[4][2] = {
            {box[0], box[1]}, {box[2], box[1]}, {box[2], box[3]}, {box[0], box[3]}};
        for (int i = 0; i < 4; i++)
            move(by, corner[i], point[i]);
        for (int side = 0; side < 2; side++) {
            box[side] = box[side + 2] = point[0][side];
            for (int i = 1; i < 4; i++) {
                box[side] = lesser(box[side], point[i][side]);
                box[side + 2] = greater(box[side + 2], point[i][side]);
            }
        }
    }
}

void st_points_map(struct st_boxes *boxes,
                   void (*move)(const void *by, const float from[2], float to[2]), const void *by)
{
    for (uint64_t k = 0; k < boxes->points; k++) {
        float *point = boxes->point + k * boxes->each;
        const float from[2] = {point[0], point[1]};
        move(by, from, point);
    }
}

void st_boxes_keep(struct st_boxes *boxes, uint64_t place, uint64_t k)
{
    memmove(boxes->box[place], boxes->box[k], sizeof *boxes->box);
    boxes->which[place] = boxes->which[k];
}

void st_points_keep(struct st_boxes *boxes, uint64_t place, uint64_t k)
{
    memmove(boxes->point + place * boxes->each, boxes->point + k * boxes->each,
            boxes->each * sizeof *boxes->point);
    boxes->which[place] = boxes->which[k];
}

void st_points_filter(struct st_boxes *boxes, int32_t width, int32_t height)
{
    uint64_t kept = 0;
    for (uint64_t k = 0; k < boxes->points; k++) {
        const float *at = boxes->point + k * boxes->each;
        if (at[0] >= 0 && at[0] < (float)width && at[1] >= 0 && at[1] < (float)height)
            st_points_keep(boxes, kept++, k);
    }
    boxes->points = kept;
}

static bool is_sane(const float *box, float side_least, float area_least, float width, float height)
{
    const float across = box[2] - box[0], down = box[3] - box[1];
    return across >= side_least && down >= side_least && across * down >= area_least && box[0] >= 0 &&
           box[1] >= 0 && box[2] >= 0 && box[3] >= 0 && box[0] <= width && box[2] <= width &&
           box[1] <= height && box[3] <= height;
}

void st_boxes_sanitize(struct st_boxes *boxes, float side_least, float area_least, int32_t width,
                       int32_t height)
{
    uint64_t kept = 0;
    for (uint64_t k = 0; k < boxes->count; k++)
        if (is_sane(boxes->box[k], side_least, area_least, (float)width, (float)height))
            st_boxes_keep(boxes, kept++, k);
    boxes->count = kept;
}

/* Albumentations' comparisons, with its tolerance. */
static bool is_enough(const struct st_box_limits *limits, double had, double width, double height)
{
    static const double close = 1e-7;
    const double area = width * height;
    const double ratio = fmax(width / (height + close), height / (width + close));
    if (limits->ratio > 0 && !(ratio <= limits->ratio))
        return false;
    return had >= close && area >= limits->area - close && area / (had + close) >= limits->visibility &&
           width >= limits->width - close && height >= limits->height - close;
}

static double area_of(const float *box)
{
    return ((double)box[2] - (double)box[0]) * ((double)box[3] - (double)box[1]);
}

void st_boxes_filter(struct st_boxes *boxes, const struct st_box_limits *limits, int32_t width,
                     int32_t height)
{
    uint64_t kept = 0;
    for (uint64_t k = 0; k < boxes->count; k++) {
        float *box = boxes->box[k];
        const double had = area_of(box);
        clamp(box, width, height);
        if (is_enough(limits, had, (double)box[2] - (double)box[0], (double)box[3] - (double)box[1]))
            st_boxes_keep(boxes, kept++, k);
    }
    boxes->count = kept;
}
