/* png_memory.h - PNGs of small rows, such as masks, inflated at once
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_PNG_MEMORY_H
#define ST_CODEC_PNG_MEMORY_H

#include "codec/png_file.h"

/* Rows of a byte for each pixel, or less, one after the other. */
struct st_png_memory {
    const uint8_t *next, *end; /* filtered rows, each after its filter */
    bool begun;
};

/* Inflates all rows of `row_bytes` bytes. False where a library has to do it: if they are interlaced,
 * too many, or not exactly what the file should hold. So damaged files are reported as ever. */
bool st_png_memory_open(struct st_png_memory *memory, const struct st_png *png,
                        const struct st_png_stream *stream, uint32_t bits, uint64_t row_bytes,
                        struct st_arena *arena);
/* Gives them; `open` and `close` are not called. */
extern const struct st_png_library st_png_memory_rows;
/* The memory that it takes, estimated. */
uint64_t st_png_memory_needs(const struct st_png *png);

#endif
