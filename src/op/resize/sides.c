/* sides.c - the size of a resized image of which one side is given
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/resize/sides.h"

/* The products are exact, the quotients are truncated. */
bool st_resize_side(int32_t side, int32_t longest, int32_t width, int32_t height, int32_t *out_width,
                    int32_t *out_height)
{
    const int64_t shorter = width <= height ? width : height, longer = width <= height ? height : width;
    int64_t short_side = side;
    int64_t long_side = (int64_t)((double)(short_side * longer) / (double)shorter);
    if (longest && long_side > longest) {
        short_side = (int64_t)((double)(longest * short_side) / (double)long_side);
        long_side = longest;
    }
    if (long_side > INT32_MAX)
        return false;
    *out_width = (int32_t)(width <= height ? short_side : long_side);
    *out_height = (int32_t)(width <= height ? long_side : short_side);
    return true;
}
