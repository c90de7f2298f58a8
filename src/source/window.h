/* window.h - looks into a file here and there, from its beginning to its end
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_WINDOW_H
#define ST_SOURCE_WINDOW_H

#include "source/held.h"

/* A file, or bytes in memory that stand for a part of one: memory[0] is the file's byte `base`. */
struct st_window {
    const char *path; /* for messages */
    const struct st_held *file;
    const uint8_t *memory; /* not NULL: instead of the file */
    uint64_t base;
    uint64_t end; /* where file or memory end, as an offset in the file */
    struct st_buffer buffer;
    uint64_t at; /* where the buffer's bytes lie */
    uint64_t span;
};

/* The `size` bytes at `offset`, which must end at or before w->end; valid until the next call. NULL:
 * they could not be read, and err says why. Reads more at once the nearer the places are to each other.
 */
const uint8_t *st_window_at(struct st_window *w, uint64_t offset, uint64_t size,
                            struct stoker_error *err);
/* Whether so many bytes are there. */
static inline bool st_window_has(const struct st_window *w, uint64_t offset, uint64_t size)
{
    return offset >= w->base && offset <= w->end && size <= w->end - offset;
}
void st_window_free(struct st_window *w);

#endif
