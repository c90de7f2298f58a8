/* fill.c - fills a shape whose columns are given by the rows at which they enter and leave it
 *
 * A row of the mask is the row above it, inverted where columns turn. Thus the time depends on the size
 * of the box alone, and runs of columns, which would be written with a stride, are processed row by row.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/mask/fill.h"

int st_turns_begin(struct st_turns *turns, struct st_region box, struct st_arena *arena,
                   struct stoker_error *err)
{
    const uint64_t size = (uint64_t)box.width * box.height;
    if (size > turns->room) {
        turns->room = size > 2 * turns->room ? size : 2 * turns->room;
        turns->bytes = st_arena_take(arena, turns->room);
    }
    if (!turns->bytes) {
        turns->room = 0;
        return st_fail(err, STOKER_ENOMEM, "out of memory for a mask of %u x %u pixels", box.width,
                       box.height);
    }
    turns->box = box;
    memset(turns->bytes, 0, size);
    return 0;
}

/* Also the mask's row: `turns`, by the row above it. */
static void fill_row(uint8_t *restrict out, uint8_t *restrict turns, const uint8_t *restrict above,
                     uint32_t width, struct st_brush brush)
{
    for (uint32_t x = 0; x < width; x++) {
        const uint8_t inside = turns[x] ^ above[x];
        turns[x] = inside;
        out[x] = (uint8_t)((out[x] & (brush.keep | ~inside)) | (brush.value & inside));
    }
}

static void fill_first_row(uint8_t *restrict out, const uint8_t *restrict inside, uint32_t width,
                           struct st_brush brush)
{
    for (uint32_t x = 0; x < width; x++)
        out[x] = (uint8_t)((out[x] & (brush.keep | ~inside[x])) | (brush.value & inside[x]));
}

void st_turns_fill(struct st_turns *turns, const struct st_view *plane, struct st_brush brush)
{
    const struct st_region *box = &turns->box;
    uint8_t *row = turns->bytes;
    fill_first_row(st_row(plane, (int32_t)box->y) + box->x, row, box->width, brush);
    for (uint32_t y = 1; y < box->height; y++) {
        row += box->width;
        fill_row(st_row(plane, (int32_t)(box->y + y)) + box->x, row, row - box->width, box->width,
                 brush);
    }
}
