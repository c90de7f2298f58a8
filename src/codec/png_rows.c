/* png_rows.c - the rows of a sound PNG that is not interlaced: our own inflating and unfiltering
 *
 * The stream is inflated through a window that stays in the cache, only as far as rows are needed. Its
 * Adler-32 is checked if the last row is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/png_rows.h"
#include "codec/png_filters.h"
#include "source/deflate/inflater.h"

#include <string.h>

enum {
    ROW_MAX = 1 << 20,     /* bytes: a group of larger ones would not stay in the cache */
    AT_ONCE_MAX = 1 << 16, /* bytes of rows that are inflated at once */
    PIECE = 128 << 10,     /* bytes inflated between two moves of the window */
    ZLIB_HEAD = 0x78,      /* deflate with the largest window: with another, zlib may refuse distances */
    ZLIB_LEAST = 2 + 4,    /* bytes around the stream */
};

static uint64_t stride_of(uint64_t row) { return (row + ST_PNG_SPARE + 15) & ~(uint64_t)15; }

/* Room for the distances, a group, and a piece. */
static uint64_t window_for(uint64_t row, uint64_t all)
{
    const uint64_t most = ST_INFLATE_WINDOW + ST_PNG_GROUP * (row + 1) + PIECE;
    return all + ST_INFLATE_OUT_SPARE < most ? all + ST_INFLATE_OUT_SPARE : most;
}

uint64_t st_png_rows_needs(const struct st_png *png, uint64_t file_size)
{
    static const uint8_t channels[] = {1, 0, 3, 1, 2, 0, 4};
    const uint64_t row = ((uint64_t)png->width * png->depth * channels[png->colour] + 7) / 8;
    uint64_t all;
    if (png->interlaced || row > ROW_MAX || !st_mul(row + 1, png->height, &all))
        return 0;
    return window_for(row, all) + ST_PNG_GROUP * stride_of(row) + sizeof(struct st_inflater) + file_size;
}

/* All at once, where a window would be no smaller. */
static bool open_at_once(struct st_png_rows *r, struct st_bytes data, uint64_t all)
{
    if (!st_inflate(ST_WRAPPING_ZLIB, data, r->window, all))
        return false;
    r->end = r->window + all;
    r->left = r->left_needed = 0;
    return true;
}

static bool open_window(struct st_png_rows *r, struct st_bytes data, struct st_arena *arena)
{
    r->inflater = st_arena_take(arena, sizeof *r->inflater);
    if (!r->inflater || !st_inflater_begin(r->inflater, ST_WRAPPING_ZLIB, data))
        return false;
    r->inflater->out = r->inflater->out_begin = r->end = r->window;
    r->adler = 1;
    return true;
}

bool st_png_rows_open(struct st_png_rows *r, const struct st_png *png,
                      const struct st_png_stream *stream, uint32_t bits, uint64_t row, uint32_t bottom,
                      struct st_arena *arena)
{
    struct st_bytes data;
    uint64_t all;
    const uint32_t height = png->frame.height;
    if (png->interlaced || !png->ends || row > ROW_MAX || !st_mul(row + 1, height, &all) ||
        !st_png_stream_data(stream, arena, &data) || data.size < ZLIB_LEAST ||
        data.data[0] != ZLIB_HEAD || !st_inflate_possible(data.size, all))
        return false;
    *r = (struct st_png_rows){.row = (size_t)row,
                              .stride = (size_t)stride_of(row),
                              .pixel = bits < 8 ? 1 : bits / 8,
                              .rows_needed = bottom < height ? bottom : height,
                              .room = window_for(row, all),
                              .left = all};
    r->left_needed = (row + 1) * r->rows_needed;
    r->window = r->next = st_arena_take(arena, r->room + ST_PNG_SPARE);
    r->group = st_arena_take(arena, ST_PNG_GROUP * (uint64_t)r->stride);
    if (!r->window || !r->group)
        return false;
    memset(r->group + (ST_PNG_GROUP - 1) * r->stride, 0, r->stride);
    return all <= AT_ONCE_MAX ? open_at_once(r, data, all) : open_window(r, data, arena);
}

/* Moves what is still needed, by rows or by distances, to the window's beginning. */
static void move_window(struct st_png_rows *r)
{
    const uint8_t *keep = r->next;
    if (r->end - keep < ST_INFLATE_WINDOW)
        keep = r->end - r->window < ST_INFLATE_WINDOW ? r->window : r->end - ST_INFLATE_WINDOW;
    const size_t by = (size_t)(keep - r->window);
    memmove(r->window, keep, (size_t)(r->end - keep));
    r->next -= by;
    r->end -= by;
}

/* Inflates as much as the window holds; false if the stream is not what it should be. */
static bool inflate_piece(struct st_png_rows *r)
{
    struct st_inflater *s = r->inflater;
    const uint64_t room = (uint64_t)(r->window + r->room - r->end);
    const bool to_the_end = r->left_needed == r->left;
    const uint64_t wanted = to_the_end ? r->left : r->left_needed + ST_INFLATE_OUT_SPARE;
    s->out = r->end;
    s->out_begin = r->window;
    s->out_end = r->end + (wanted < room ? wanted : room);
    s->whole = to_the_end && wanted <= room;
    const enum st_inflated result = st_inflater_run(s);
    const uint64_t made = (uint64_t)(s->out - r->end);
    if (result == ST_INFLATE_FAILED || made > r->left)
        return false;
    if (to_the_end)
        r->adler = st_adler32(r->adler, r->end, made);
    r->end = s->out;
    r->left -= made;
    r->left_needed -= made < r->left_needed ? made : r->left_needed;
    if (result == ST_INFLATE_FINISHED)
        return s->whole ? st_inflater_sum_is(s, r->adler) : !to_the_end && made > 0;
    return made > 0;
}

/* So that `bytes` can be read from `next`. */
static bool have(struct st_png_rows *r, size_t bytes)
{
    while ((size_t)(r->end - r->next) < bytes) {
        if (!r->inflater)
            return false;
        if (r->window + r->room - r->end < PIECE / 2)
            move_window(r);
        if (!inflate_piece(r))
            return false;
    }
    return true;
}

static const char *next_group(struct st_png_rows *r)
{
    r->count = r->rows_needed < ST_PNG_GROUP ? r->rows_needed : ST_PNG_GROUP;
    r->rows_needed -= r->count;
    r->used = 0;
    if (r->count == 0 || !have(r, r->count * (r->row + 1)))
        return "the image data ends";
    const struct st_png_lines lines = {.from = r->next,
                                       .to = r->group,
                                       .stride = r->stride,
                                       .above = r->group + (ST_PNG_GROUP - 1) * r->stride,
                                       .row = r->row,
                                       .pixel = r->pixel,
                                       .count = r->count};
    r->next += r->count * (r->row + 1);
    return st_png_unfilter(&lines) ? NULL : "an unknown filter";
}

static const char *next_row(void *reader, uint8_t **row, size_t bytes)
{
    struct st_png_rows *r = reader;
    (void)bytes;
    if (r->used == r->count) {
        const char *wrong = next_group(r);
        if (wrong)
            return wrong;
    }
    *row = r->group + r->used++ * r->stride;
    return NULL;
}

const struct st_png_library st_png_rows_library = {.row = next_row};
