/* boxes.h - the boxes and key points of objects in an image, which follow what moves its pixels
 *
 * The arithmetic is that of torchvision's transforms of boxes and key points in float32. Key points are
 * not clamped: they may lie outside of the image.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_BOXES_H
#define ST_OP_BOXES_H

#include "base/shapes.h"

struct st_boxes {
    float (*box)[4]; /* left, top, right, bottom, in pixels */
    uint32_t *which; /* the number that each had at first: some may be removed. Of key points, if there
                        are no boxes; NULL: key points stay */
    uint64_t count;
    enum st_box_format format; /* that they get at the end */
    bool relative; /* they get it as fractions of the image's sides */
    bool loose; /* they are not clamped: filter_boxes removes what is outside */
    bool whole; /* of whole numbers: a resize leaves fractions out, as that of integers in torch */
    /* Key points: x and y of each, with `each` numbers from one to the next. */
    float *point;
    uint64_t points;
    uint32_t each;
    bool seen; /* key points that are outside of the image, or covered, are removed */
};

extern const char *const st_box_format_words[]; /* xyxy, xywh, cxcywh; ends with NULL */

/* Makes boxes of another format left, top, right and bottom. */
void st_boxes_to_corners(struct st_boxes *boxes, enum st_box_format format);
/* The end: gives them their format, in an image of this size. */
void st_boxes_to_format(struct st_boxes *boxes, int32_t width, int32_t height);

void st_boxes_shift(struct st_boxes *boxes, float right, float down);
/* Cuts off what lies outside of an image of this size, unless boxes are loose. */
void st_boxes_clamp(struct st_boxes *boxes, int32_t width, int32_t height);
/* From an image of one size to one of another. */
void st_boxes_resize(struct st_boxes *boxes, const int32_t from[2], const int32_t to[2]);
/* `across`: left and right change places, in an image of this length; otherwise top and bottom. A point
 * is the middle of a pixel, so that it has the number of one from 0 to length - 1. */
void st_boxes_mirror(struct st_boxes *boxes, bool across, int32_t length);
/* Across and down change places. */
void st_boxes_transpose(struct st_boxes *boxes);
/* Each becomes the box around its corners, moved by `move`; NaN if one of their coordinates is NaN. */
void st_boxes_map(struct st_boxes *boxes, void (*move)(const void *by, const float from[2], float to[2]),
                  const void *by);
/* Each key point is moved by `move`. */
void st_points_map(struct st_boxes *boxes,
                   void (*move)(const void *by, const float from[2], float to[2]), const void *by);
/* Removes key points that are outside of an image of this size, and NaN. */
void st_points_filter(struct st_boxes *boxes, int32_t width, int32_t height);
/* Key point `k` takes place `place`, up to which all are kept. */
void st_points_keep(struct st_boxes *boxes, uint64_t place, uint64_t k);
/* Box `k` takes place `place`, up to which all are kept. */
void st_boxes_keep(struct st_boxes *boxes, uint64_t place, uint64_t k);
/* What boxes need in order to stay, in pixels; see filter_boxes. */
struct st_box_limits {
    double area, visibility, width, height, ratio;
};
/* Cuts off what is outside, and removes boxes that are beyond the limits, as Albumentations does. */
void st_boxes_filter(struct st_boxes *boxes, const struct st_box_limits *limits, int32_t width,
                     int32_t height);
/* Removes boxes with sides or areas that are too small, or that reach out of the image. */
void st_boxes_sanitize(struct st_boxes *boxes, float side_least, float area_least, int32_t width,
                       int32_t height);

#endif
