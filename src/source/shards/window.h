/* window.h - looks into a file here and there, from its beginning to its end
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_WINDOW_H
#define ST_SOURCE_SHARDS_WINDOW_H

#include "source/held.h"

/* What requests to a server cost, and how far apart the places are that are looked at: by that a window
 * either reads everything or only what is asked for. */
struct st_window_pace {
    uint64_t hop_ns; /* a short request; 0: not known */
    uint64_t mib_ns; /* each further mebibyte; 0: not known */
    uint64_t stride; /* between places too far apart for one short request, on average; 0: not known */
    uint64_t hop_at; /* where the last of these requests would have begun */
    uint32_t hops;   /* short requests that were timed */
};

/* A file, or bytes in memory that stand for a part of one: memory[0] is the file's byte `base`. */
struct st_window {
    const char *path; /* for messages */
    const struct st_held *file;
    const uint8_t *memory; /* not NULL: instead of the file */
    uint64_t base;
    uint64_t end;   /* where file or memory end, as an offset in the file */
    uint64_t reach; /* nothing behind it is read before it is asked for; 0: no such place */
    struct st_buffer buffer;
    uint64_t at; /* where the buffer's bytes lie */
    uint64_t span;
    int failed; /* the status of the last read that failed */
    struct st_window_pace pace; /* of a file on a server */
};

/* The `size` bytes at `offset`, which must end at or before w->end; valid until the next call. NULL:
 * they could not be read, w->failed and err say why. Reads more at once the nearer the places are to each other.
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
