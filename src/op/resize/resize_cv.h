/* resize_cv.h - resizes pixels with OpenCV's arithmetic
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_RESIZE_RESIZE_CV_H
#define ST_OP_RESIZE_RESIZE_CV_H

#include "base/err.h"
#include "op/cv/cv.h"
#include "op/resize/resize.h"

/* `filter` is one of ST_FILTER_CV_*; `out` has the new size. `factor`: 0, or what the sides were
 * multiplied by, which places pixels in another way than their quotients do. `parts`: NULL, or of which
 * images these are parts; not for areas. */
int st_cv_resize_view(enum st_filter filter, double factor, const struct st_cv_parts *parts,
                      const struct st_view *in, const struct st_view *out, struct st_arena *arena,
                      struct stoker_error *err);

#endif
