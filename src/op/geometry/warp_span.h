/* warp_span.h - which part of a row of a warp certainly comes from inside the image
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_WARP_SPAN_H
#define ST_OP_GEOMETRY_WARP_SPAN_H

#include "op/geometry/warp_rows.h"

struct st_warp_span {
    int32_t begin, end; /* pixels of a row */
};

/* Of the `count` pixels of row `y`: those that come from places at least `reach` inside the image, and
 * those that may come from anywhere inside; the first lie within the second. Both are found by algebra
 * with a margin for errors of rounding, so a few pixels of either kind are only in the second. */
void st_warp_spans(const double *map, bool perspective, const struct st_view *in, double reach,
                   int32_t y, int32_t count, struct st_warp_span *sure, struct st_warp_span *possible);

#endif
