/* job_edges.c - edges of an image in the terms of a device: taps, and what is filled
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/job_edges.h"

#include <string.h>

enum st_job_edges_fit st_job_edge_taps(const int32_t *from, int32_t count, struct st_arena *arena,
                                       struct st_taps *taps)
{
    const struct st_edge_span span = st_edge_span(from, count);
    const struct st_taps of = *taps;
    const size_t width = of.width > 0 ? (size_t)of.width : 0;
    const int32_t last = span.begin + span.count - 1;
    int32_t *first = st_arena_take(arena, (uint64_t)count * (1 + (uint64_t)width) * sizeof *first);
    int32_t before = 0;
    if (!first)
        return ST_JOB_EDGES_NO_MEMORY;
    for (int32_t i = 0; i < count; i++) {
        const int32_t place = !span.count ? 0 : from[i < span.begin ? span.begin : i < last ? i : last];
        if (width && place < before)
            return ST_JOB_EDGES_BACKWARDS;
        before = place;
        first[i] = of.width ? of.first[place] : place;
        if (width)
            memcpy(first + count + (size_t)i * width, of.weight + (size_t)place * width,
                   width * sizeof *first);
    }
    *taps = (struct st_taps){
        .count = count, .width = width ? of.width : -1, .first = first, .weight = first + count};
    return ST_JOB_EDGES_FIT;
}

void st_job_edges_put(const struct st_edges *edges, struct st_job *job)
{
    const struct st_edge_span x = st_edge_span(edges->column, edges->width);
    const struct st_edge_span y = st_edge_span(edges->row, edges->height);
    job->bordered = x.count < edges->width || y.count < edges->height;
    job->fill = 0;
    for (int32_t c = 0; c < job->channels; c++)
        job->fill |= (uint32_t)edges->fill[c] << (8 * c);
    job->inner_x = x.begin;
    job->inner_y = y.begin;
    job->inner_width = x.count;
    job->inner_height = y.count;
}
