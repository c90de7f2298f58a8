/* png_rows.c - the rows of a sound PNG that is not interlaced: inflated at once, and unfiltered here
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/png_rows.h"
#include "codec/png_filters.h"
#include "source/deflate/inflate.h"

#include <string.h>

enum {
    MOST = 16 << 20,  /* bytes of rows: larger images are left to the library, which needs less memory */
    ZLIB_HEAD = 0x78, /* deflate with the largest window: with another, zlib may refuse distances */
    ZLIB_LEAST = 2 + 4, /* bytes around the stream */
};

static uint64_t stride_of(uint64_t row) { return (row + ST_PNG_SPARE + 15) & ~(uint64_t)15; }

uint64_t st_png_rows_needs(const struct st_png *png, uint64_t file_size)
{
    static const uint8_t channels[] = {1, 0, 3, 1, 2, 0, 4};
    const uint64_t row = ((uint64_t)png->width * png->depth * channels[png->colour] + 7) / 8;
    uint64_t all;
    if (png->interlaced || !st_mul(row + 1, png->height, &all) || all > MOST)
        return 0;
    return all + ST_PNG_GROUP * stride_of(row) + file_size;
}

bool st_png_rows_open(struct st_png_rows *r, const struct st_png *png,
                      const struct st_png_stream *stream, uint32_t bits, uint64_t row, uint32_t bottom,
                      struct st_arena *arena)
{
    struct st_bytes data;
    uint64_t all;
    const uint32_t height = png->frame.height;
    if (png->interlaced || !png->ends || !st_mul(row + 1, height, &all) || all > MOST ||
        !st_png_stream_data(stream, arena, &data) || data.size < ZLIB_LEAST ||
        data.data[0] != ZLIB_HEAD || !st_inflate_possible(data.size, all))
        return false;
    *r = (struct st_png_rows){.row = (size_t)row,
                              .stride = (size_t)stride_of(row),
                              .pixel = bits < 8 ? 1 : bits / 8,
                              .rows_needed = bottom < height ? bottom : height};
    uint8_t *rows = st_arena_take(arena, all + ST_PNG_SPARE);
    r->group = st_arena_take(arena, ST_PNG_GROUP * (uint64_t)r->stride);
    if (!rows || !r->group || !st_inflate(ST_WRAPPING_ZLIB, data, rows, all))
        return false;
    memset(r->group + (ST_PNG_GROUP - 1) * r->stride, 0, r->stride);
    r->next = rows;
    return true;
}

static const char *next_group(struct st_png_rows *r)
{
    r->count = r->rows_needed < ST_PNG_GROUP ? r->rows_needed : ST_PNG_GROUP;
    r->rows_needed -= r->count;
    r->used = 0;
    if (r->count == 0)
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
