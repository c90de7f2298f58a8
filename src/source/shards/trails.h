/* trails.h - the members of a large archive, found by several threads at once
 *
 * Each thread begins somewhere in the file, at the first place that looks like a header, and follows the
 * members from there. That place may be a lie: a header in the payload of a member that is an archive
 * itself, or the second of the two headers of a member. So what a thread has found are notes, no more.
 * Whoever walks the archive from its first byte takes a note where it stands at the very byte where the
 * note's member begins, and looks for itself where there is none: what follows a header does not depend
 * on what was before it, and the outcome is that of walking alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_TRAILS_H
#define ST_SOURCE_SHARDS_TRAILS_H

#include "source/shards/window.h"

/* A member, as far as an index needs to know it. */
struct st_trail_note {
    uint64_t start, end; /* of its first header, and of its payload */
    struct st_bytes name;
    bool regular; /* for the index; else `end` is only where the next begins */
};

struct st_trail_kind {
    uint32_t head;    /* bytes of a header */
    uint32_t step;    /* headers begin at multiples of it */
    size_t walk_size; /* the state of a walk, zeroed before `begin` */
    bool (*looks_like)(const uint8_t *head);
    void (*begin)(void *walk, struct st_window *window);
    /* The member at `at`; its name is valid until the next call. Not 0: there is none. */
    int (*next)(void *walk, uint64_t at, struct st_trail_note *out);
    void (*end)(void *walk);
};

struct st_trails;

/* Whether it is time to think of threads, after so many members: some are needed to know how large they
 * are, fewer on a server, where each may take a request; and those that follow may be smaller. */
static inline bool st_trails_due(const struct st_window *window, uint64_t count)
{
    const uint64_t least = window->file && window->file->remote ? 16 : 64;
    return count >= least && (count & (count - 1)) == 0;
}

/* Looks for members from `from` on, in up to so many threads; `count` members lay before. NULL where
 * that is not worth it, or there is no memory. */
struct st_trails *st_trails_find(const struct st_trail_kind *kind, const struct st_window *window,
                                 uint64_t from, uint64_t count, uint32_t threads);
/* The member at *at, if it was found; *at is then behind it. To be asked front to back; the name is
 * valid until the next is asked for. NULL has none. */
bool st_trails_take(struct st_trails *trails, uint64_t *at, struct st_trail_note *out);
void st_trails_free(struct st_trails *trails); /* NULL is fine */

/* Where the header behind a payload that ends here must be. */
static inline uint64_t st_trail_behind(const struct st_window *window, uint64_t end, uint32_t step)
{
    const uint64_t at = st_align(end, step);
    /* Some programs leave out the last padding. */
    return at > window->end && end <= window->end ? window->end : at;
}

#endif
