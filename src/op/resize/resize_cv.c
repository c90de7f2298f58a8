/* resize_cv.c - resizes pixels with OpenCV's arithmetic
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/resize/resize_cv.h"

int st_cv_resize_view(enum st_filter filter, double factor, const struct st_cv_parts *parts,
                      const struct st_view *in, const struct st_view *out, struct st_arena *arena,
                      struct stoker_error *err)
{
    const struct st_cv_call call = {.in = *in,
                                    .out = *out,
                                    .factor = factor,
                                    .parts = parts,
                                    .arena = arena,
                                    .level = st_cpu_level()};
    const bool shrinks = out->width < in->width || out->height < in->height;
    const char *name = "resize_linear";
    if (filter == ST_FILTER_CV_NEAREST)
        name = "resize_nearest";
    else if (filter == ST_FILTER_CV_AREA || (filter == ST_FILTER_CV_LINEAR_AREA && shrinks))
        name = "resize_area";
    return st_cv_run(st_cv_find(name), &call, err);
}
