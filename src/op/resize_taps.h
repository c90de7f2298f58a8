/* resize_taps.h - the weights of Pillow's resampling filters
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_RESIZE_TAPS_H
#define ST_OP_RESIZE_TAPS_H

#include "op/resize.h"

/* One side of a resize: `span` of `in` pixels becomes `out`, of which [from, from + count) are wanted. */
struct st_side {
    enum st_filter filter;
    int32_t in, out, from, count;
    struct st_span span; /* its length is not 0 here */
};

/* Every pixel stays what and where it is. */
static inline bool st_side_stays(const struct st_side *side)
{
    return side->in == side->out && side->span.begin == 0 && side->span.length == side->in;
}

/* The input pixels [*begin, *end) that the wanted ones depend on. */
void st_side_needs(const struct st_side *side, int32_t *begin, int32_t *end);

/* The taps, counted from the first pixel needed; in opposite order when `mirror`. For all filters but
 * nearest. False when out of memory. */
bool st_side_taps(const struct st_side *side, bool mirror, struct st_arena *arena, struct st_taps *taps);

/* Nearest: the one input pixel of each wanted output, likewise. */
bool st_side_nearest(const struct st_side *side, bool mirror, struct st_arena *arena, int32_t **source);

/* The sides of a resize, and which pass comes first where both are done. */
struct st_side st_resize_side_x(const struct st_resize *job);
struct st_side st_resize_side_y(const struct st_resize *job);
bool st_resize_vertical_first(const struct st_resize *job);

#endif
