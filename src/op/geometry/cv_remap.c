/* cv_remap.c - images whose pixels come from given points, with OpenCV's arithmetic
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/cv_remap.h"

#include "op/cv/warp.h"

#include <math.h>

static int no_memory(const struct st_image *image, const char *op, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: no memory for an image of %d x %d pixels", op,
                   st_image_width(image), st_image_height(image));
}

int st_cv_remap_has_work(const struct st_image *image, bool points, const char *op,
                         struct stoker_error *err)
{
    const int32_t width = st_image_width(image), height = st_image_height(image);
    if (width > ST_CV_SIDE || height > ST_CV_SIDE)
        return st_fail(err, STOKER_EINVAL,
                       "%s: the image has %d x %d pixels, and OpenCV moves at most %d on each side", op,
                       width, height, ST_CV_SIDE);
    if (image->boxes && image->boxes->points && !points)
        return st_fail(err, STOKER_EINVAL,
                       "%s: key points cannot follow, since it is only known where pixels come from; "
                       "with points=true they go where pixels near them go",
                       op);
    return !image->boxes || image->boxes->count || image->boxes->points;
}

/* ---- boxes --------------------------------------------------------------------------------------- */

/* In whole pixels, both ends included. */
struct span {
    int32_t least[2], most[2];
};

static int32_t whole(double at)
{
    const double most = 1e9, near = rint(at);
    return !(near > -most) ? (int32_t)-most : near < most ? (int32_t)near : (int32_t)most;
}

/* Albumentations has the sides of boxes as parts of the image's, so that one half may be rounded to
 * either side. Boxes outside are those of the pixels at the border. */
static struct span pixels_of(const float box[4], const int32_t size[2])
{
    struct span span;
    for (int k = 0; k < 2; k++) {
        const float length = (float)size[k];
        const double end[2] = {(double)(box[k] / length) * size[k],
                               (double)(box[k + 2] / length) * size[k]};
        span.least[k] = whole(fmin(fmax(end[0], 0), size[k] - 1));
        span.most[k] = whole(fmin(fmax(end[1], 0), size[k] - 1));
    }
    return span;
}

/* Adds the pixels of row `y` that come from inside of a box. */
static void look_in_row(struct span *found, const struct span *box, const int32_t *xs, const int32_t *ys,
                        int32_t width, int32_t y)
{
    for (int32_t x = 0; x < width; x++) {
        if (xs[x] < box->least[0] || xs[x] > box->most[0] || ys[x] < box->least[1] ||
            ys[x] > box->most[1])
            continue;
        found->least[0] = x < found->least[0] ? x : found->least[0];
        found->most[0] = x > found->most[0] ? x : found->most[0];
        found->least[1] = found->least[1] < 0 ? y : found->least[1];
        found->most[1] = y;
    }
}

static int move_boxes(struct st_image *image, const struct st_cv_points_of *points, const char *op,
                      struct stoker_error *err)
{
    struct st_boxes *boxes = image->boxes;
    struct st_arena *arena = &image->work->arena;
    const int32_t size[2] = {st_image_width(image), st_image_height(image)};
    const size_t width = (size_t)size[0];
    float *xs = st_arena_take(arena, 2 * width * sizeof *xs), *ys = xs + width;
    int32_t *at_x = st_arena_take(arena, 2 * width * sizeof *at_x), *at_y = at_x + width;
    struct span *box = st_arena_take(arena, boxes->count * sizeof *box);
    struct span *found = st_arena_take(arena, boxes->count * sizeof *found);
    if (!xs || !at_x || !box || !found)
        return no_memory(image, op, err);
    for (uint64_t k = 0; k < boxes->count; k++) {
        box[k] = pixels_of(boxes->box[k], size);
        found[k] = (struct span){.least = {INT32_MAX, -1}, .most = {-1, -1}};
    }
    for (int32_t y = 0; y < size[1]; y++) {
        points->row(points->by, y, xs, ys);
        for (size_t x = 0; x < width; x++) {
            at_x[x] = whole((double)xs[x]);
            at_y[x] = whole((double)ys[x]);
        }
        for (uint64_t k = 0; k < boxes->count; k++)
            look_in_row(&found[k], &box[k], at_x, at_y, size[0], y);
    }
    for (uint64_t k = 0; k < boxes->count; k++)
        for (int side = 0; side < 2 && found[k].most[0] >= 0; side++) {
            boxes->box[k][side] = (float)found[k].least[side];
            boxes->box[k][side + 2] = (float)found[k].most[side];
        }
    return STOKER_OK;
}

/* ---- key points ---------------------------------------------------------------------------------- */

/* The pixel of a key point, and the one that goes there as far as is known: 0 is unknown to
 * Albumentations, too. */
struct goal {
    int32_t from[2], to[2];
};

static int32_t pixel_of(float at, int32_t length)
{
    return at > 0 ? (at < (float)(length - 1) ? (int32_t)at : length - 1) : 0;
}

/* Albumentations compares a pixel's distance with that of the numbers of the pixel before it. */
static bool is_nearer(const struct goal *goal, float x, float y)
{
    const float across = (float)goal->from[0], down = (float)goal->from[1];
    return goal->to[0] == 0 || fabsf(across - x) + fabsf(down - y) <
                                   fabsf(across - (float)goal->to[0]) + fabsf(down - (float)goal->to[1]);
}

/* Whether the pixel `at` is one of the two around a place on an axis. */
static bool is_beside(int32_t at, float place)
{
    const float low = floorf(place);
    return (float)at == low || (float)at == low + 1;
}

static void look_for_goal(struct goal *goal, const float *xs, const float *ys, const int32_t size[2],
                          int32_t y)
{
    for (int32_t x = 0; x < size[0]; x++) {
        const bool inside = xs[x] >= 0 && xs[x] < (float)size[0] && ys[x] >= 0 && ys[x] < (float)size[1];
        if (!inside || !is_beside(goal->from[0], xs[x]) || !is_beside(goal->from[1], ys[x]) ||
            !is_nearer(goal, xs[x], ys[x]))
            continue;
        goal->to[0] = x;
        goal->to[1] = y;
    }
}

static int move_points(struct st_image *image, const struct st_cv_points_of *points, const char *op,
                       struct stoker_error *err)
{
    struct st_boxes *boxes = image->boxes;
    struct st_arena *arena = &image->work->arena;
    const int32_t size[2] = {st_image_width(image), st_image_height(image)};
    const size_t width = (size_t)size[0];
    float *xs = st_arena_take(arena, 2 * width * sizeof *xs), *ys = xs + width;
    struct goal *goal = st_arena_take(arena, boxes->points * sizeof *goal);
    if (!xs || !goal)
        return no_memory(image, op, err);
    for (uint64_t k = 0; k < boxes->points; k++) {
        const float *point = &boxes->point[k * boxes->each];
        goal[k] = (struct goal){.from = {pixel_of(point[0], size[0]), pixel_of(point[1], size[1])}};
    }
    for (int32_t y = 0; y < size[1]; y++) {
        points->row(points->by, y, xs, ys);
        for (uint64_t k = 0; k < boxes->points; k++)
            look_for_goal(&goal[k], xs, ys, size, y);
    }
    for (uint64_t k = 0; k < boxes->points; k++) {
        float *point = &boxes->point[k * boxes->each];
        for (int axis = 0; axis < 2 && !isnan(point[0] + point[1]); axis++)
            point[axis] = (float)goal[k].to[axis];
    }
    return STOKER_OK;
}

/* ---- pixels -------------------------------------------------------------------------------------- */

int st_image_cv_remap(struct st_image *image, const struct st_cv_points_of *points,
                      const struct st_cv_warp_params *params, const char *op, struct stoker_error *err)
{
    double numbers[ST_CV_BORDER_NUMBERS];
    struct st_cv_call call = {.arena = &image->work->arena,
                              .level = image->work->level,
                              .numbers = numbers,
                              .count = ST_CV_BORDER_NUMBERS};
    struct st_cv_warp warp;
    if (image->boxes)
        return image->boxes->points ? move_points(image, points, op, err)
                                    : move_boxes(image, points, op, err);
    int rc = st_image_pixels(image, false, false, &call.in, err);
    if (rc < 0)
        return rc;
    if (!st_view_take(&call.out, call.arena, call.in.width, call.in.height, call.in.channels))
        return no_memory(image, op, err);
    st_cv_border_numbers(image, params, numbers);
    rc = st_cv_warp_begin(&warp, &call, 0, image->numbers != NULL, op, err);
    for (int32_t y = 0; rc >= 0 && y < call.out.height; y++) {
        points->row(points->by, y, warp.x, warp.y);
        rc = st_cv_warp_row(&warp, &call, y, op, err);
    }
    if (rc >= 0)
        st_image_set(image, call.out, false);
    return rc;
}
