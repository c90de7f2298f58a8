/* edges.c - images whose rows and columns come from lists: borders, and crops that reach into them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/geometry/edges.h"

#include "op/geometry/turn.h"

/* ---- lists --------------------------------------------------------------------------------------- */

struct st_edge_span st_edge_span(const int32_t *from, int32_t count)
{
    struct st_edge_span span = {.low = INT32_MAX, .high = -1};
    int32_t end = 0;
    for (int32_t i = 0; i < count; i++) {
        if (from[i] == ST_EDGE_FILL)
            continue;
        if (span.high < 0)
            span.begin = i;
        end = i + 1;
        span.low = from[i] < span.low ? from[i] : span.low;
        span.high = from[i] > span.high ? from[i] : span.high;
    }
    span.count = end - span.begin;
    return span;
}

int32_t st_edge_run(const int32_t *from, int32_t count, int32_t *start)
{
    int32_t best = 0, best_start = 0;
    for (int32_t i = 0; i < count;) {
        int32_t end = i + 1;
        while (end < count && from[i] != ST_EDGE_FILL && from[end] == from[end - 1] + 1)
            end++;
        if (from[i] != ST_EDGE_FILL && end - i > best) {
            best = end - i;
            best_start = i;
        }
        i = end;
    }
    *start = best_start;
    return best;
}

const int32_t *st_edge_part(const int32_t *from, int32_t begin, int32_t count, struct st_arena *arena,
                            int32_t low, int32_t side, bool backwards)
{
    int32_t *part = st_arena_take(arena, (uint64_t)count * sizeof *part);
    for (int32_t i = 0; part && i < count; i++) {
        const int32_t place = from[begin + i];
        part[backwards ? count - 1 - i : i] =
            place == ST_EDGE_FILL ? place : (backwards ? side - 1 - place : place) - low;
    }
    return part;
}

/* ---- pixels -------------------------------------------------------------------------------------- */

/* Of three channels, a word at a time: its fourth byte is the next pixel's, which follows. Nothing
 * behind the row's last pixel is read. */
static void put_three(uint8_t *to, const uint8_t *row, const int32_t *columns, int32_t begin,
                      int32_t end, int32_t last, const uint8_t *fill)
{
    for (int32_t x = begin; x < end; x++) {
        const int32_t from = columns[x];
        const uint8_t *pixel = from == ST_EDGE_FILL ? fill : row + (ptrdiff_t)from * 3;
        if (x < end - 1 && from != last)
            memcpy(to + (ptrdiff_t)x * 3, pixel, 4);
        else
            memcpy(to + (ptrdiff_t)x * 3, pixel, 3);
    }
}

static void put_pixels(uint8_t *to, const uint8_t *row, const struct st_view *in,
                       const int32_t *columns, int32_t begin, int32_t end, const uint8_t *fill)
{
    const size_t channels = (size_t)in->channels;
    if (channels == 3) {
        put_three(to, row, columns, begin, end, in->width - 1, fill);
        return;
    }
    for (int32_t x = begin; x < end; x++) {
        const uint8_t *pixel = columns[x] == ST_EDGE_FILL ? fill : row + (size_t)columns[x] * channels;
        memcpy(to + (size_t)x * channels, pixel, channels);
    }
}

/* Copies what is filled already behind it, twice as much each time. */
static void fill_row(uint8_t *row, int32_t width, const uint8_t *fill, size_t channels)
{
    const size_t bytes = (size_t)width * channels;
    memcpy(row, fill, channels);
    for (size_t done = channels, more; done < bytes; done += more) {
        more = done < bytes - done ? done : bytes - done;
        memcpy(row + done, row, more);
    }
}

bool st_edges_view(const struct st_edges *edges, const struct st_view *in, struct st_arena *arena,
                   struct st_view *out)
{
    const size_t channels = (size_t)in->channels;
    struct st_view made;
    int32_t start;
    const int32_t run = st_edge_run(edges->column, edges->width, &start);
    if (!st_view_take(&made, arena, edges->width, edges->height, in->channels))
        return false;
    for (int32_t y = 0; y < made.height; y++) {
        uint8_t *to = st_row(&made, y);
        if (edges->row[y] == ST_EDGE_FILL || !run) {
            fill_row(to, made.width, edges->fill, channels);
            continue;
        }
        const uint8_t *row = st_row(in, edges->row[y]);
        st_view_ahead(in, edges->row[y]);
        put_pixels(to, row, in, edges->column, 0, start, edges->fill);
        memcpy(to + (size_t)start * channels, row + (size_t)edges->column[start] * channels,
               (size_t)run * channels);
        put_pixels(to, row, in, edges->column, start + run, made.width, edges->fill);
    }
    *out = made;
    return true;
}
