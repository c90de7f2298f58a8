/* params.c - checks of parameters and shapes, and random boxes, used by several ops
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/op.h"

#include "base/functions.h"

#include <math.h>

const char *const st_filter_words[] = {"nearest",    "box",       "bilinear", "hamming",
                                       "bicubic",    "lanczos",   "cv_nearest", "cv_linear",
                                       "cv_area",    "cv_linear_area", NULL};

enum { SIDE_MAX = 1 << 20 };

int st_param_size(const struct st_list *list, const char *op, const char *name, int32_t *height,
                  int32_t *width, struct stoker_error *err)
{
    if (list->count != 1 && list->count != 2)
        return st_fail(err, STOKER_EINVAL, "%s: %s must be one number or two (height, width), not %u",
                       op, name, list->count);
    for (uint32_t i = 0; i < list->count; i++)
        if (!(list->value[i] >= 1 && list->value[i] <= SIDE_MAX) ||
            list->value[i] != floor(list->value[i]))
            return st_fail(err, STOKER_EINVAL, "%s: %s must be integers from 1 to %d, not %g", op,
                           name, SIDE_MAX, list->value[i]);
    *height = (int32_t)list->value[0];
    *width = (int32_t)list->value[list->count - 1];
    return STOKER_OK;
}

int st_param_range(struct st_list *list, const char *op, const char *name, double low, double high,
                   struct stoker_error *err)
{
    if (list->count == 0)
        *list = (struct st_list){.count = 2, .value = {low, high}};
    if (list->count != 2)
        return st_fail(err, STOKER_EINVAL, "%s: %s must be two numbers (low, high), not %u", op, name,
                       list->count);
    if (!(list->value[0] <= list->value[1]))
        return st_fail(err, STOKER_EINVAL,
                       "%s: %s must be in ascending order, but %g is greater than %g", op, name,
                       list->value[0], list->value[1]);
    return STOKER_OK;
}

int st_plan_movable(const struct st_shape *shape, const char *op, struct stoker_error *err)
{
    if (shape->erased)
        return st_fail(err, STOKER_EINVAL,
                       "%s: pixels cannot be moved after random_erasing; move %s before it", op, op);
    return STOKER_OK;
}

int st_plan_bytes(const struct st_shape *shape, const struct st_finish_spec *finish, const char *op,
                  struct stoker_error *err)
{
    if (finish->dtype != STOKER_DTYPE_U8 || finish->steps)
        return st_fail(err, STOKER_EINVAL,
                       "%s: works on bytes, but the image consists of floats here; "
                       "move it before to_tensor (or convert_image_dtype)",
                       op);
    return st_plan_movable(shape, op, err);
}

int st_plan_picture(const struct st_shape *shape, const char *op, struct stoker_error *err)
{
    if (shape->tensor)
        return st_fail(err, STOKER_EINVAL,
                       "%s: works on images, not on tensors; move it before to_tensor "
                       "(or pil_to_tensor)",
                       op);
    return STOKER_OK;
}

void st_draw_box(struct st_rng *rng, double area, const double scale[2], const double ratio[2],
                 double *a, double *b)
{
    const double target = area * st_rng_range(rng, scale[0], scale[1]);
    const double aspect = st_exp(st_rng_range(rng, st_ln(ratio[0]), st_ln(ratio[1])));
    *a = rint(sqrt(target * aspect)); /* rounds halves to even, like Python */
    *b = rint(sqrt(target / aspect));
}
