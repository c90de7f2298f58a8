/* fill.h - fills a shape whose columns are given by the rows at which they enter and leave it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_MASK_FILL_H
#define ST_CODEC_MASK_FILL_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

/* What a shape does to its pixels: these bits of each stay, and these are set. With {number} it is drawn
 * over others; with {1 << k, ~(1 << k)} it is mask k of eight in one plane. */
struct st_brush {
    uint8_t value, keep;
};

/* A byte for each pixel of the box around a shape: all bits set where the column goes from outside to
 * inside or back, counted from the top. Initially zeroed; then it may be used for one shape after
 * another. */
struct st_turns {
    struct st_region box;
    uint8_t *bytes;
    uint64_t room;
};

/* Begins a shape without turns so far. The memory is the arena's, and used again: many shapes in turn
 * take little more than the largest. */
int st_turns_begin(struct st_turns *turns, struct st_region box, struct st_arena *arena,
                   struct stoker_error *err);
/* The pixel must be in the box. Two turns at one pixel cancel. */
static inline void st_turn(struct st_turns *turns, uint32_t x, uint32_t y)
{
    const struct st_region *box = &turns->box;
    turns->bytes[(size_t)(y - box->y) * box->width + (x - box->x)] ^= 0xff;
}
/* Draws the shape in a plane of one channel that contains the box; the turns are used up. */
void st_turns_fill(struct st_turns *turns, const struct st_view *plane, struct st_brush brush);

#endif
