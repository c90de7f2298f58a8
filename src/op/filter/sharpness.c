/* sharpness.c - sharper or softer, with the same results as Pillow
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/filter/sharpness.h"

#include "op/geometry/turn.h"

#include <string.h>

int st_sharpness(const struct st_colour_rows *rows, float factor, struct st_arena *arena,
                 struct st_view *pixels)
{
    const struct st_view in = *pixels;
    const size_t count = (size_t)in.width * (size_t)in.channels, pixel = (size_t)in.channels;
    if (in.width < 3 || in.height < 3)
        return STOKER_OK;
    if (!st_view_take(pixels, arena, in.width, in.height, in.channels))
        return STOKER_ENOMEM;
    memcpy(st_row(pixels, 0), st_row(&in, 0), count);
    for (int32_t y = 1; y < in.height - 1; y++) {
        const uint8_t *row = st_row(&in, y);
        uint8_t *out = st_row(pixels, y);
        memcpy(out, row, pixel);
        rows->sharpen(out, st_row(&in, y - 1), row, st_row(&in, y + 1), count, in.channels, factor);
        memcpy(out + count - pixel, row + count - pixel, pixel);
    }
    memcpy(st_row(pixels, in.height - 1), st_row(&in, in.height - 1), count);
    return STOKER_OK;
}
