/* png_rows.h - the rows of a sound PNG that is not interlaced: our own inflating and unfiltering
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_PNG_ROWS_H
#define ST_CODEC_PNG_ROWS_H

#include "codec/png_file.h"

/* Rows come from the inflated stream in groups. */
struct st_png_rows {
    const uint8_t *next; /* the next filtered row */
    uint8_t *group;      /* undone rows */
    size_t stride, row;
    uint32_t pixel, count, used; /* bytes of a pixel; rows of the group, and how many were given */
    uint32_t rows_needed;        /* that are not undone */
};

/* Begins to read the rows of `row` bytes down to and without `bottom`. False where a library has to do
 * it: what is interlaced or truncated, has unusual headers, or needs too much memory. */
bool st_png_rows_open(struct st_png_rows *rows, const struct st_png *png,
                      const struct st_png_stream *stream, uint32_t bits, uint64_t row, uint32_t bottom,
                      struct st_arena *arena);
/* Gives them; `open` and `close` are not called. At anything unusual a row is refused, and a library
 * should read the file from its beginning: what is said of damaged files is then the same as ever. */
extern const struct st_png_library st_png_rows_library;
/* The memory that it takes, estimated, for a file of this size. */
uint64_t st_png_rows_needs(const struct st_png *png, uint64_t file_size);

#endif
