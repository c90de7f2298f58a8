/* png_memory.c - PNGs of small rows, such as masks, inflated at once
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/png_memory.h"

#include "source/deflate/inflate.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST = 4 << 20,    /* bytes: more would not stay in the cache */
    ZLIB_HEAD = 0x78,  /* deflate with the largest window: with another, zlib may refuse distances */
    ZLIB_LEAST = 2 + 4 /* bytes around the stream */
};

enum filter { NONE, SUB, UP, AVERAGE, PAETH };

uint64_t st_png_memory_needs(const struct st_png *png)
{
    const uint64_t bytes = st_scratch_for(1, (uint64_t)png->width + 1, png->height);
    return bytes <= MOST ? bytes : 0;
}

bool st_png_memory_open(struct st_png_memory *memory, const struct st_png *png,
                        const struct st_png_stream *stream, uint32_t bits, uint64_t row_bytes,
                        struct st_arena *arena)
{
    struct st_bytes data;
    uint64_t bytes;
    if (png->interlaced || !png->ends || bits > 8 || !st_mul(row_bytes + 1, png->frame.height, &bytes) ||
        bytes > MOST || !st_png_stream_data(stream, arena, &data) || data.size < ZLIB_LEAST ||
        data.data[0] != ZLIB_HEAD || !st_inflate_possible(data.size, bytes))
        return false;
    uint8_t *rows = st_arena_take(arena, bytes);
    if (!rows || !st_inflate(ST_WRAPPING_ZLIB, data, rows, bytes))
        return false;
    *memory = (struct st_png_memory){.next = rows, .end = rows + bytes};
    return true;
}

/* In masks neighbours are mostly equal, which the first lines find without waiting for `left`. */
static inline int32_t paeth(int32_t left, int32_t above, int32_t before)
{
    if (above == before)
        return left;
    if (left == before)
        return above;
    const int32_t by_left = abs(above - before), by_above = abs(left - before);
    const int32_t by_before = abs(left + above - 2 * before);
    if (by_left <= by_above && by_left <= by_before)
        return left;
    return by_above <= by_before ? above : before;
}

/* `row` holds the row above, and becomes the next one. False: an unknown filter. */
static bool unfilter(enum filter filter, const uint8_t *restrict from, uint8_t *restrict row,
                     size_t bytes)
{
    uint8_t left = 0, before = 0;
    switch (filter) {
    case NONE:
        memcpy(row, from, bytes);
        return true;
    case SUB:
        for (size_t i = 0; i < bytes; i++)
            row[i] = left = (uint8_t)(left + from[i]);
        return true;
    case UP:
        for (size_t i = 0; i < bytes; i++)
            row[i] = (uint8_t)(row[i] + from[i]);
        return true;
    case AVERAGE:
        for (size_t i = 0; i < bytes; i++)
            row[i] = left = (uint8_t)(from[i] + (left + row[i]) / 2);
        return true;
    case PAETH:
        for (size_t i = 0; i < bytes; i++) {
            const uint8_t above = row[i];
            row[i] = left = (uint8_t)(from[i] + paeth(left, above, before));
            before = above;
        }
        return true;
    }
    return false;
}

static const char *next_row(void *reader, uint8_t *row, size_t bytes)
{
    struct st_png_memory *memory = reader;
    if ((size_t)(memory->end - memory->next) < bytes + 1)
        return "the image data ends";
    if (!memory->begun)
        memset(row, 0, bytes);
    memory->begun = true;
    const uint8_t *from = memory->next;
    memory->next += bytes + 1;
    return unfilter((enum filter)from[0], from + 1, row, bytes) ? NULL : "an unknown filter";
}

const struct st_png_library st_png_memory_rows = {.row = next_row};
