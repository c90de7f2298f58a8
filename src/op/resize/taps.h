/* taps.h - the weights of Pillow's resampling filters
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_RESIZE_TAPS_H
#define ST_OP_RESIZE_TAPS_H

#include "op/resize/resize.h"

/* One axis of a resize: `span` of `in` pixels becomes `out`, of which [from, from + count) are
 * needed. */
struct st_side {
    enum st_filter filter;
    int32_t in, out, from, count;
    struct st_span span; /* its length is never 0 here */
    bool floored;        /* see st_resize */
};

/* Whether the axis is unchanged. */
static inline bool st_side_stays(const struct st_side *side)
{
    return side->in == side->out && side->span.begin == 0 && side->span.length == side->in;
}

/* The input pixels [*begin, *end) that the needed outputs depend on. */
void st_side_needs(const struct st_side *side, int32_t *begin, int32_t *end);

/* The taps, relative to the first input pixel needed; in reverse order if `mirror`. For all filters
 * except nearest. False when out of memory. */
bool st_side_taps(const struct st_side *side, bool mirror, struct st_arena *arena, struct st_taps *taps);

/* Nearest: the input pixel of each needed output, likewise. */
bool st_side_nearest(const struct st_side *side, bool mirror, struct st_arena *arena, int32_t **source);

/* The axes of a resize, and which pass comes first if there are two. */
struct st_side st_resize_side_x(const struct st_resize *job);
struct st_side st_resize_side_y(const struct st_resize *job);
bool st_resize_vertical_first(const struct st_resize *job);

#endif
