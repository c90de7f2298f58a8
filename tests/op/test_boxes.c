/* Boxes: each primitive, and whole pipelines on an image without pixels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/elastic/elastic.h"
#include "op/geometry/border.h"
#include "op/geometry/maps.h"
#include "op/op.h"
#include "op_line.h"
#include "tap.h"

#include <math.h>

static struct st_work work;

static struct st_image image_with(struct st_boxes *boxes, int32_t width, int32_t height)
{
    struct st_image image;
    st_image_of_boxes(&image, &work, width, height, boxes);
    return image;
}

static bool is_box(const float *box, float left, float top, float right, float bottom)
{
    return box[0] == left && box[1] == top && box[2] == right && box[3] == bottom;
}

static void primitives(void)
{
    float box[2][4] = {{1, 2, 5, 8}, {-3, 0.5f, 30, 40}};
    uint32_t which[2] = {0, 1};
    struct st_boxes boxes = {box, which, 2};
    struct st_image image = image_with(&boxes, 20, 10);
    struct stoker_error err = {0};
    st_image_mirror(&image);
    ok(is_box(box[0], 15, 2, 19, 8), "a mirrored box");
    st_image_flip(&image);
    ok(is_box(box[0], 15, 2, 19, 8) && is_box(box[1], -10, -30, 23, 9.5f), "a flipped one");
    ok(!st_image_crop(&image, (struct st_region){2, 1, 15, 8}, &err) && is_box(box[0], 13, 1, 15, 7) &&
           is_box(box[1], 0, 0, 15, 8) && st_image_width(&image) == 15 && st_image_height(&image) == 8,
       "a crop cuts off what is outside");
    ok(!st_image_resize(&image, 30, 4, ST_FILTER_BILINEAR, &err) && is_box(box[0], 26, 0.5f, 30, 3.5f),
       "a resize scales");
    const struct st_border border = {.mode = ST_PAD_CONSTANT}, edge = {.mode = ST_PAD_EDGE};
    const struct st_sides sides = {1, 2, 3, 4}, none = {0}, less = {-100, 0, 0, 0};
    ok(!st_image_pad(&image, &border, &sides, 1, NULL, "pad", &err) && is_box(box[0], 27, 2.5f, 31, 5.5f) &&
           st_image_width(&image) == 34 && st_image_height(&image) == 10,
       "a border moves");
    ok(st_image_pad(&image, &edge, &sides, 1, NULL, "pad", &err) == STOKER_EINVAL, "%s", err.message);
    ok(st_image_pad(&image, &border, &less, 1, NULL, "pad", &err) == STOKER_EINVAL, "%s", err.message);
    ok(!st_image_pad(&image, &edge, &none, 1, NULL, "pad", &err), "no border of any kind is none");
    ok(st_image_crop(&image, (struct st_region){30, 0, 5, 5}, &err) == STOKER_EINVAL, "%s", err.message);
    struct st_view view;
    ok(st_image_pixels(&image, false, false, &view, &err) == STOKER_EINVAL, "there are no pixels: %s", err.message);
    ok(!st_image_do(&image, (struct st_pending){.kind = ST_PENDING_GREY}, &err) && !image.pending_count,
       "and no colours");
}

static void whole_numbers(void)
{
    float box[2][4] = {{3, 4, 9, 10}, {-3, -4, 9, 10}};
    uint32_t which[2] = {0, 1};
    struct st_boxes boxes = {.box = box, .which = which, .count = 2, .whole = true};
    st_boxes_resize(&boxes, (const int32_t[]){10, 10}, (const int32_t[]){5, 15});
    ok(is_box(box[0], 1, 6, 4, 15) && is_box(box[1], -1, -6, 4, 15), "a resize leaves fractions out");
}

static void sanitizes(void)
{
    float box[7][4] = {{0, 0, 9, 9}, {NAN, 0, 1, 1}, {3, 3, 3.5f, 9}, {0, 0, INFINITY, 9}, {1, 1, 3, 3}, {-1, 0, 4, 4}, {4, 4, 1, 1}};
    uint32_t which[7] = {10, 11, 12, 13, 14, 15, 16};
    struct st_boxes boxes = {box, which, 7}, empty = {box, which, 0};
    st_boxes_sanitize(&boxes, 1, 1, 9, 9);
    ok(boxes.count == 2 && which[0] == 10 && which[1] == 14 && is_box(box[1], 1, 1, 3, 3),
       "small boxes, and those that are none, are removed: %d left", (int)boxes.count);
    st_boxes_sanitize(&boxes, 1, 5, 9, 9);
    ok(boxes.count == 1 && which[0] == 10, "by their area, too");
    st_boxes_sanitize(&empty, 1, 1, 9, 9);
    st_boxes_mirror(&empty, true, 3);
    st_boxes_resize(&empty, (int32_t[]){1, 1}, (int32_t[]){2, 2});
    ok(empty.count == 0, "no boxes stay none");
}

static void transposed(void)
{
    float box[1][4] = {{1, 2, 5, 8}}, point[3] = {3, 7, 1};
    uint32_t which[1] = {0};
    struct st_boxes boxes = {box, which, 1, .point = point, .points = 1, .each = 3};
    st_boxes_transpose(&boxes);
    ok(is_box(box[0], 2, 1, 8, 5) && point[0] == 7 && point[1] == 3 && point[2] == 1, "rows become columns");
}

static void filters(void)
{
    float box[5][4] = {{0, 0, 10, 10}, {-5, 0, 5, 10}, {-20, 0, -10, 10}, {2, 2, 4, 4}, {3, 3, 3, 9}};
    uint32_t which[5] = {0, 1, 2, 3, 4};
    struct st_boxes boxes = {box, which, 5, .loose = true};
    st_boxes_clamp(&boxes, 10, 10);
    ok(is_box(box[1], -5, 0, 5, 10), "loose boxes are not clamped");
    st_boxes_filter(&boxes, &(struct st_box_limits){.visibility = 0.49}, 10, 10);
    ok(boxes.count == 3 && which[1] == 1 && which[2] == 3 && is_box(box[1], 0, 0, 5, 10),
       "half of a box is outside, all of another one, and one has no area: %d left", (int)boxes.count);
    st_boxes_filter(&boxes, &(struct st_box_limits){.ratio = 1.5}, 10, 10);
    ok(boxes.count == 2 && which[1] == 3, "by the ratio of their sides");
    st_boxes_filter(&boxes, &(struct st_box_limits){.area = 4, .width = 2, .height = 2}, 10, 10);
    ok(boxes.count == 2, "limits may be reached");
    st_boxes_filter(&boxes, &(struct st_box_limits){.area = 4.001}, 10, 10);
    ok(boxes.count == 1 && which[0] == 0, "by their area");
    st_boxes_filter(&boxes, &(struct st_box_limits){.height = 11}, 10, 10);
    ok(boxes.count == 0, "by their height");
}

static void maps(void)
{
    float box[3][4] = {{1, 2, 5, 8}, {NAN, 0, 4, 4}, {0, 0, 20, 10}};
    uint32_t which[3] = {0, 1, 2};
    struct st_boxes boxes = {box, which, 3};
    struct st_image image = image_with(&boxes, 20, 10);
    struct stoker_error err = {0};
    struct st_warp warp;
    ok(!st_warp_rotation(&warp, 90, true, NULL, 20, 10, "turn", &err) && !st_image_warp(&image, &warp, "turn", &err) &&
           st_image_width(&image) == 10 && st_image_height(&image) == 20,
       "a turned image: %s", err.message);
    ok(is_box(box[0], 2, 15, 8, 19) && is_box(box[2], 0, 0, 10, 20), "boxes are turned");
    ok(isnan(box[1][0]) && isnan(box[1][1]) && isnan(box[1][2]), "what is NaN stays NaN");
    const struct st_affine affine = {.scale = 2, .move = {3, -1}};
    st_warp_affine(&warp, &affine, (const double[]){0, 0}, 10, 20);
    ok(!st_image_warp(&image, &warp, "affine", &err) && is_box(box[0], 7, 20, 10, 20) && is_box(box[2], 3, 0, 10, 20),
       "twice the size, moved, and cut off");
    ok(!st_warp_rotation(&warp, 30, true, (const double[]){1, 1}, 10, 20, "turn", &err) &&
           st_image_warp(&image, &warp, "turn", &err) == STOKER_EINVAL,
       "%s", err.message);
    warp.kind = ST_WARP_PERSPECTIVE;
    memcpy(warp.map, (const double[]){1, 2, 0, 2, 4, 0, 0, 0}, sizeof warp.map);
    warp.expand = false;
    ok(st_image_warp(&image, &warp, "perspective", &err) == STOKER_EINVAL, "%s", err.message);
    warp.map[0] = NAN;
    ok(st_image_warp(&image, &warp, "perspective", &err) == STOKER_OK && isnan(box[0][0]), "a map of NaN gives NaN");
}

/* Beyond the image, the nearest pixel of it says how far. */
static void displacements(void)
{
    float right[12], down[12];
    for (int k = 0; k < 12; k++)
        right[k] = (float)(k % 4) / 4, down[k] = -(float)(k / 4);
    struct st_displacement by = {right, down, 4, 3};
    float box[2][4] = {{0.5f, 1, 3, 1.5f}, {-INFINITY, NAN, 1e30f, INFINITY}};
    uint32_t which[2] = {0, 1};
    struct st_boxes boxes = {box, which, 2};
    struct st_image image = image_with(&boxes, 4, 3);
    struct stoker_error err = {0};
    ok(!st_image_displace(&image, &by, (struct st_displaced){.filter = ST_FILTER_BILINEAR}, "elastic", &err) &&
           is_box(box[0], 0.75f, 2, 2.25f, 3),
       "displaced");
    ok(box[1][0] == 0 && box[1][2] == 2.25f && isnan(box[1][1]) && isnan(box[1][3]), "and what is no number");
}

/* Boxes choose a crop, which all else follows; key points alone do not. */
static void crops_by_boxes(void)
{
    struct op_line line;
    struct stoker_error err = {0};
    ok(line_open(&line, "random_iou_crop overlaps=0.5 max_scale=1 min_scale=0.3") && !line_plan(&line, -1, -1, 3, &err), "planned");
    float box[3][4] = {{10, 10, 90, 90}, {0, 0, 1, 1}, {NAN, 0, 1, 1}}, point[2] = {50, 50};
    uint32_t which[3] = {0, 1, 2};
    struct st_boxes boxes = {box, which, 3}, points = {.point = point, .points = 1, .each = 2};
    struct st_boxes no_points = {.point = point, .each = 2}, none = {box, which, 0};
    struct st_image image = image_with(&boxes, 100, 100);
    struct st_region crop = {0};
    struct st_rng rng;
    st_rng_init(&rng, 1, 0, 0, 0);
    ok(line.op[0]->run(line.self[0], &rng, &image, &err) == STOKER_EINVAL, "%s", err.message);
    image.chosen = &crop;
    ok(!line.op[0]->run(line.self[0], &rng, &image, &err) && crop.width >= 30 && crop.height >= 30 &&
           crop.x + crop.width <= 100 && crop.y + crop.height <= 100 && st_image_width(&image) == (int32_t)crop.width,
       "a crop of %u x %u", crop.width, crop.height);
    ok(box[0][2] > box[0][0] && is_box(box[1], 0, 0, 0, 0) && is_box(box[2], 0, 0, 0, 0), "boxes outside have no area");
    const struct st_region chosen = crop;
    struct st_boxes *const follow[] = {&points, &no_points};
    for (int k = 0; k < 2; k++) {
        image = image_with(follow[k], 100, 100);
        image.chosen = &crop;
        ok(!line.op[0]->run(line.self[0], &rng, &image, &err) && !memcmp(&crop, &chosen, sizeof crop) &&
               st_image_height(&image) == (int32_t)crop.height,
           "key points follow");
    }
    ok(point[0] == 50 - (float)crop.x && point[1] == 50 - (float)crop.y, "they are moved");
    image = image_with(&none, 100, 100);
    image.chosen = &crop;
    ok(line.op[0]->run(line.self[0], &rng, &image, &err) == STOKER_EINVAL, "%s", err.message);
    line_free(&line);
}

/* Key points that are not seen are removed; those of objects cannot be. */
static void seen_points(void)
{
    struct op_line line;
    struct stoker_error err = {0};
    struct st_rng rng = {0};
    float point[] = {5, 5, 1, 49.5f, 5, 2, 5, 49, 3, 0, 0, 4, NAN, 5, 5}, outside[] = {20, 50};
    uint32_t which[] = {0, 1, 2, 3, 4};
    struct st_boxes points = {.point = point, .points = 5, .each = 3, .which = which};
    struct st_boxes of_objects = {.point = outside, .points = 1, .each = 2}, far = of_objects;
    far.which = which;
    ok(line_open(&line, "begin_points;crop x=1 y=0 width=48 height=50;filter_points;drop_grid cells=1,1 ratio=0.5 shift=0,0"),
       "key points that are not seen");
    struct st_image image = image_with(&points, 50, 50);
    for (uint32_t k = 0; k < line.count; k++) {
        const int rc = line.op[k]->run(line.self[k], &rng, &image, &err);
        ok(!rc, "%s: %llu key points", line.op[k]->name, (unsigned long long)points.points);
    }
    ok(points.points == 1 && which[0] == 2 && point[0] == 4 && point[1] == 49 && point[2] == 3,
       "one is left, with its values");
    image = image_with(&of_objects, 50, 50);
    ok(line.op[0]->run(line.self[0], &rng, &image, &err) == STOKER_EINVAL, "%s", err.message);
    image = image_with(&far, 50, 50);
    ok(line.op[0]->run(line.self[0], &rng, &image, &err) == STOKER_EINVAL, "%s", err.message);
    ok(!line.op[2]->run(line.self[2], &rng, &image, &err) && far.points == 1, "without begin_points none is removed");
    line_free(&line);
    st_arena_free(&work.arena);
}

int main(void)
{
    seen_points();
    crops_by_boxes();
    whole_numbers();
    primitives();
    maps();
    displacements();
    sanitizes();
    transposed();
    filters();
    return done_testing();
}
