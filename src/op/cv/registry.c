/* registry.c - the operations with OpenCV's arithmetic, and what they check alike
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/cv/cv.h"

#include <math.h>
#include <string.h>

extern const struct st_cv_op st_cv_remap, st_cv_remap_nearest, st_cv_resize_area, st_cv_resize_linear,
    st_cv_resize_nearest, st_cv_warp_affine, st_cv_warp_affine_nearest, st_cv_warp_perspective,
    st_cv_warp_perspective_nearest;

const struct st_cv_op *const st_cv_ops[] = {
    &st_cv_remap,
    &st_cv_remap_nearest,
    &st_cv_resize_area,
    &st_cv_resize_linear,
    &st_cv_resize_nearest,
    &st_cv_warp_affine,
    &st_cv_warp_affine_nearest,
    &st_cv_warp_perspective,
    &st_cv_warp_perspective_nearest,
    NULL,
};

const struct st_cv_op *st_cv_find(const char *name)
{
    for (const struct st_cv_op *const *op = st_cv_ops; *op; op++)
        if (strcmp((*op)->name, name) == 0)
            return *op;
    return NULL;
}

int st_cv_no_memory(const char *op, struct stoker_error *err)
{
    return st_fail(err, STOKER_ENOMEM, "%s: out of memory", op);
}

bool st_cv_whole(const struct st_cv_call *call, uint32_t at, double low, double high)
{
    const double number = call->numbers[at];
    return number >= low && number <= high && number == floor(number);
}

static bool has_pixels(const struct st_view *view)
{
    return view->data && view->width >= 1 && view->height >= 1 && view->width <= ST_CV_SIDE &&
           view->height <= ST_CV_SIDE && view->channels >= 1 && view->channels <= ST_CV_CHANNELS;
}

int st_cv_run(const struct st_cv_op *op, const struct st_cv_call *call, struct stoker_error *err)
{
    if (!has_pixels(&call->in) || !has_pixels(&call->out))
        return st_fail(
            err, STOKER_EINVAL,
            "%s: images have 1 to %d pixels on each side and 1 to %d channels, not %d x %d x %d to "
            "%d x %d x %d",
            op->name, ST_CV_SIDE, ST_CV_CHANNELS, call->in.height, call->in.width, call->in.channels,
            call->out.height, call->out.width, call->out.channels);
    if (call->count < op->least || call->count > op->most)
        return st_fail(err, STOKER_EINVAL, "%s has %u to %u numbers, not %u", op->name, op->least,
                       op->most, call->count);
    for (uint32_t k = 0; k < call->count; k++)
        if (!isfinite(call->numbers[k]))
            return st_fail(err, STOKER_EINVAL, "%s: number %u is %g", op->name, k, call->numbers[k]);
    if (call->tables < op->least_tables || call->tables > op->most_tables)
        return st_fail(err, STOKER_EINVAL, "%s has %u to %u tables, not %u", op->name, op->least_tables,
                       op->most_tables, call->tables);
    return op->run(call, err);
}
