/* window.h - buffered reads at increasing offsets of a file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_WINDOW_H
#define ST_SOURCE_SHARDS_WINDOW_H

#include "source/held.h"

/* What requests to a server cost and how far apart the accessed places are: this decides whether a
 * window reads everything in between or only what is asked for. */
struct st_window_pace {
    uint64_t hop_ns; /* a short request; 0: not known */
    uint64_t mib_ns; /* per additional MiB; 0: not known */
    uint64_t stride; /* average distance of places too far apart for one short request; 0: not known */
    uint64_t hop_at; /* where the last short request would have begun */
    uint32_t hops;   /* number of short requests timed */
};

/* A file, or bytes in memory that represent a part of one: memory[0] is the file's byte `base`. */
struct st_window {
    const char *path; /* for messages */
    const struct st_held *file;
    const uint8_t *memory; /* not NULL: instead of the file */
    uint64_t base;
    uint64_t end;   /* end of the file or memory, as an offset in the file */
    uint64_t reach; /* nothing past this is read ahead; 0: no limit */
    struct st_buffer buffer;
    uint64_t at; /* file offset of the buffer */
    uint64_t span;
    int failed; /* the status of the last read that failed */
    struct st_window_pace pace; /* of a file on a server */
};

/* The `size` bytes at `offset`, which must end at or before w->end; valid until the next call. NULL:
 * reading failed; w->failed and err say why. The closer together the offsets are, the more is read at
 * once. */
const uint8_t *st_window_at(struct st_window *w, uint64_t offset, uint64_t size,
                            struct stoker_error *err);
/* Whether the range lies inside the file. */
static inline bool st_window_has(const struct st_window *w, uint64_t offset, uint64_t size)
{
    return offset >= w->base && offset <= w->end && size <= w->end - offset;
}
void st_window_free(struct st_window *w);

#endif
