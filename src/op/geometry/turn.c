/* turn.c - the eight orientations of an image: EXIF orientation, mirroring, flipping
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/turn.h"

#include <string.h>

struct st_turn st_turn_upright(uint32_t orientation)
{
    static const struct st_turn turns[9] = {
        [2] = {.mirror = true},
        [3] = {.mirror = true, .flip = true},
        [4] = {.flip = true},
        [5] = {.transpose = true},
        [6] = {.transpose = true, .mirror = true},
        [7] = {.transpose = true, .mirror = true, .flip = true},
        [8] = {.transpose = true, .flip = true},
    };
    return turns[orientation <= 8 ? orientation : 1];
}

struct st_region st_turn_back(struct st_turn turn, struct st_region region, uint32_t width,
                              uint32_t height)
{
    if (turn.mirror)
        region.x = width - region.x - region.width;
    if (turn.flip)
        region.y = height - region.y - region.height;
    if (turn.transpose)
        region = (struct st_region){region.y, region.x, region.height, region.width};
    return region;
}

bool st_view_take(struct st_view *view, struct st_arena *arena, int32_t width, int32_t height,
                  int32_t channels)
{
    const uint64_t row = (uint64_t)width * (uint64_t)channels;
    uint64_t bytes;
    if (!st_mul(row, (uint64_t)height, &bytes))
        return false;
    *view = (struct st_view){st_arena_take(arena, bytes), (ptrdiff_t)row, width, height, channels};
    return view->data != NULL;
}

/* Copies pixels `step` bytes apart to adjacent ones. */
static void gather_row(uint8_t *to, const uint8_t *from, ptrdiff_t step, int32_t count, int32_t channels)
{
    if (channels == 3) {
        for (int32_t i = 0; i < count; i++, from += step, to += 3) {
            to[0] = from[0];
            to[1] = from[1];
            to[2] = from[2];
        }
        return;
    }
    for (int32_t i = 0; i < count; i++, from += step, to += channels)
        memcpy(to, from, (size_t)channels);
}

bool st_turn_view(struct st_turn turn, const struct st_view *in, struct st_arena *arena,
                  struct st_view *out)
{
    const int32_t width = turn.transpose ? in->height : in->width;
    const int32_t height = turn.transpose ? in->width : in->height;
    if (!st_view_take(out, arena, width, height, in->channels))
        return false;
    const ptrdiff_t across = turn.transpose ? in->stride : in->channels; /* one pixel right, turned */
    const ptrdiff_t down = turn.transpose ? in->channels : in->stride;   /* one pixel down, turned */
    const uint8_t *first = in->data + (turn.mirror ? (width - 1) * across : 0);
    for (int32_t y = 0; y < height; y++) {
        const uint8_t *from = first + (turn.flip ? height - 1 - y : y) * down;
        if (turn.transpose || turn.mirror)
            gather_row(st_row(out, y), from, turn.mirror ? -across : across, width, in->channels);
        else
            memcpy(st_row(out, y), from, (size_t)out->stride);
    }
    return true;
}
