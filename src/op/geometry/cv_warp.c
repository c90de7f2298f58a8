/* cv_warp.c - affine and perspective maps of images with OpenCV's arithmetic, for Albumentations' steps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/cv_warp.h"

#include "base/text.h"
#include "op/cv/cv.h"

#include <math.h>

enum { MAP = 9, NUMBERS = MAP + 1 + ST_CV_BORDER_NUMBERS };

const char *const st_cv_border_words[] = {"constant", "replicate",   "reflect",
                                          "wrap",     "reflect_101", NULL};

int st_cv_warp_plan(const struct st_cv_warp_params *params, const struct st_shape *shape,
                    const struct st_finish_spec *finish, const char *op, struct stoker_error *err)
{
    const int rc = st_plan_bytes(shape, finish, op, err);
    if (rc >= 0 && params->fill.count > 1 && params->fill.count != (uint32_t)shape->channels)
        return st_fail(err, STOKER_EINVAL, "%s: fill has %u values, but the image has %d channel%s", op,
                       params->fill.count, shape->channels, st_s((uint64_t)shape->channels));
    return rc;
}

/* Within numpy's tolerances of allclose: such images stay as they are. */
static bool is_identity(const double map[MAP])
{
    for (int k = 0; k < MAP; k++)
        if (!(fabs(map[k] - (k % 4 == 0)) <= 1e-8 + (k % 4 ? 0 : 1e-5)))
            return false;
    return true;
}

static void move(const void *by, const float from[2], float to[2])
{
    const double *m = by, x = (double)from[0], y = (double)from[1];
    const double divisor = m[6] * x + m[7] * y + m[8];
    to[0] = (float)((m[0] * x + m[1] * y + m[2]) / divisor);
    to[1] = (float)((m[3] * x + m[4] * y + m[5]) / divisor);
}

void st_cv_border_numbers(const struct st_image *image, const struct st_cv_warp_params *params,
                          double out[ST_CV_BORDER_NUMBERS])
{
    const struct st_list *fill = &params->fill;
    uint8_t number[ST_CV_CHANNELS] = {0};
    if (image->numbers)
        st_image_number(image, (uint8_t)params->mask_fill, number);
    *out++ = params->border;
    for (uint32_t c = 0; c < ST_CV_CHANNELS; c++) {
        const double given = fill->count == 0 ? 0 : fill->value[c < fill->count ? c : 0];
        *out++ = image->numbers ? number[c] : given;
    }
}

static int warp_boxes(struct st_image *image, const struct st_cv_map *map,
                      const struct st_cv_warp_params *params, const char *op, struct stoker_error *err)
{
    if (params->border == ST_CV_BORDER_REFLECT || params->border == ST_CV_BORDER_REFLECT_101)
        return st_fail(err, STOKER_EINVAL,
                       "%s: boxes and key points cannot follow border=%s, which repeats them: use "
                       "constant",
                       op, st_cv_border_words[params->border]);
    st_boxes_map(image->boxes, move, map->boxes);
    st_points_map(image->boxes, move, map->pixels);
    st_boxes_clamp(image->boxes, map->width, map->height);
    st_image_of_boxes(image, image->work, map->width, map->height, image->boxes);
    return STOKER_OK;
}

/* The numbers of OpenCV's call; returns how many. */
static uint32_t numbers_of(const struct st_image *image, const struct st_cv_map *map,
                           const struct st_cv_warp_params *params, double out[NUMBERS])
{
    uint32_t count = map->perspective ? MAP : MAP - 3;
    memcpy(out, map->pixels, count * sizeof *out);
    out[count++] = 0; /* not yet inverted */
    st_cv_border_numbers(image, params, out + count);
    return count + ST_CV_BORDER_NUMBERS;
}

static const char *name_of(bool perspective, bool nearest)
{
    if (perspective)
        return nearest ? "warp_perspective_nearest" : "warp_perspective";
    return nearest ? "warp_affine_nearest" : "warp_affine";
}

struct cv_warp {
    struct st_late late;
    struct st_cv_map map;
    struct st_cv_warp_params params;
};

/* The pixels from `low` to `high`, and some more; all, if there may be others beyond the ends that are
 * no constants. */
static void span(double low, double high, int32_t size, bool constant, uint32_t *from, uint32_t *count)
{
    enum { MORE = 2 };
    const double begin = floor(low) - MORE, end = ceil(high) + MORE + 1;
    const bool beyond = !(begin >= 0 && end <= size);
    *from = 0;
    *count = (uint32_t)size;
    if (beyond && !constant)
        return;
    if (!(begin < size && end > 0)) {
        *count = 1;
        return;
    }
    *from = begin > 0 ? (uint32_t)begin : 0;
    *count = (uint32_t)(end < size ? end : size) - *from;
}

/* The part of the image from which an affine map takes the part of the result. */
static struct st_region needs(const struct cv_warp *warp, struct st_region part)
{
    const int32_t width = st_image_width(&warp->late.from), height = st_image_height(&warp->late.from);
    const bool constant = warp->params.border == ST_CV_BORDER_CONSTANT;
    const double *m = warp->map.pixels, d = m[0] * m[4] - m[1] * m[3], most = 1e5;
    const double inverse[2][3] = {{m[4] / d, -m[1] / d, (m[1] * m[5] - m[4] * m[2]) / d},
                                  {-m[3] / d, m[0] / d, (m[3] * m[2] - m[0] * m[5]) / d}};
    const double xs[2] = {part.x, (double)part.x + part.width - 1},
                 ys[2] = {part.y, (double)part.y + part.height - 1};
    struct st_region in = {0, 0, (uint32_t)width, (uint32_t)height};
    double low[2], high[2];
    for (int k = 0; k < 2; k++) {
        const double a = inverse[k][0], b = inverse[k][1], c = inverse[k][2];
        /* OpenCV calculates in float32: of large numbers little is left behind the point. */
        if (warp->map.perspective || !(fabs(a) * xs[1] + fabs(b) * ys[1] + fabs(c) < most))
            return in;
        low[k] = c + a * xs[a < 0] + b * ys[b < 0];
        high[k] = c + a * xs[a >= 0] + b * ys[b >= 0];
    }
    span(low[0], high[0], width, constant, &in.x, &in.width);
    span(low[1], high[1], height, constant, &in.y, &in.height);
    return in;
}

static int make(const struct st_late *late, struct st_region part, struct st_view *out,
                struct stoker_error *err)
{
    const struct cv_warp *warp = (const struct cv_warp *)(const void *)late;
    const struct st_cv_parts parts = {.in_width = st_image_width(&late->from),
                                      .in_height = st_image_height(&late->from),
                                      .out_width = late->width,
                                      .out_height = late->height,
                                      .in = needs(warp, part),
                                      .out = part};
    struct st_cv_call call = {
        .arena = &late->from.work->arena, .level = st_cpu_level(), .parts = &parts};
    double numbers[NUMBERS];
    int rc = st_late_input(late, parts.in, &call.in, err);
    if (rc >= 0)
        rc = st_late_output(late, part, out, err);
    if (rc < 0)
        return rc;
    /* As if all of the image was there. */
    call.in.data -= (ptrdiff_t)parts.in.y * call.in.stride + (ptrdiff_t)parts.in.x * call.in.channels;
    call.in.width = parts.in_width;
    call.in.height = parts.in_height;
    call.out = *out;
    call.numbers = numbers;
    call.count = numbers_of(&late->from, &warp->map, &warp->params, numbers);
    return st_cv_run(st_cv_find(name_of(warp->map.perspective, late->from.numbers != NULL)), &call, err);
}

int st_image_cv_warp(struct st_image *image, const struct st_cv_map *map,
                     const struct st_cv_warp_params *params, const char *op, struct stoker_error *err)
{
    if (is_identity(map->pixels) && !map->perspective)
        return STOKER_OK;
    if (image->boxes)
        return warp_boxes(image, map, params, op, err);
    struct cv_warp *warp = st_arena_take(&image->work->arena, sizeof *warp);
    if (!warp)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", op);
    *warp = (struct cv_warp){{.width = map->width, .height = map->height, .make = make}, *map, *params};
    st_image_set_late(image, &warp->late);
    return STOKER_OK;
}
