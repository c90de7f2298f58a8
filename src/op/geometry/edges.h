/* edges.h - images whose rows and columns come from lists: borders, and crops that reach into them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_GEOMETRY_EDGES_H
#define ST_OP_GEOMETRY_EDGES_H

#include "base/mem.h"
#include "base/pixels.h"

enum { ST_EDGE_FILL = -1 };

/* The column or row of the image that each one of the result is, or ST_EDGE_FILL. What is filled lies
 * before and behind all others. */
struct st_edges {
    const int32_t *column, *row; /* NULL: there are no edges */
    int32_t width, height;       /* of the result */
    uint8_t fill[4];
};

/* The part of an axis that is not filled; count 0: there is none. */
struct st_edge_span {
    int32_t begin, count;
    int32_t low, high; /* the least and the greatest place in the image */
};
struct st_edge_span st_edge_span(const int32_t *from, int32_t count);

/* The first longest run of positions that are also neighbours in the image: its start. */
int32_t st_edge_run(const int32_t *from, int32_t count, int32_t *start);

/* Part of an axis, from position `begin` on, less `low` in the image; backwards: both the positions and
 * the image's `side` places. NULL: out of memory. */
const int32_t *st_edge_part(const int32_t *from, int32_t begin, int32_t count, struct st_arena *arena,
                            int32_t low, int32_t side, bool backwards);

/* The result, in new pixels from the arena; false when out of memory. */
bool st_edges_view(const struct st_edges *edges, const struct st_view *in, struct st_arena *arena,
                   struct st_view *out);

#endif
