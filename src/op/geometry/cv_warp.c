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

int st_image_cv_warp(struct st_image *image, const struct st_cv_map *map,
                     const struct st_cv_warp_params *params, const char *op, struct stoker_error *err)
{
    struct st_arena *arena = &image->work->arena;
    struct st_cv_call call = {.arena = arena, .level = st_cpu_level()};
    double numbers[NUMBERS];
    if (is_identity(map->pixels) && !map->perspective)
        return STOKER_OK;
    if (image->boxes)
        return warp_boxes(image, map, params, op, err);
    const int rc = st_image_pixels(image, false, false, &call.in, err);
    if (rc < 0)
        return rc;
    if (!st_view_take(&call.out, arena, map->width, map->height, call.in.channels))
        return st_fail(err, STOKER_ENOMEM, "%s: no memory for an image of %d x %d pixels", op,
                       map->width, map->height);
    call.numbers = numbers;
    call.count = numbers_of(image, map, params, numbers);
    const int made =
        st_cv_run(st_cv_find(name_of(map->perspective, image->numbers != NULL)), &call, err);
    if (made >= 0)
        st_image_set(image, call.out, false);
    return made;
}
