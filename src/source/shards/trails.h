/* trails.h - finds the members of a large archive with several threads
 *
 * Each thread starts somewhere in the file, at the first place that looks like a header, and follows the
 * members from there (a trail). That place may be wrong: a header inside the payload of a member that is
 * itself an archive, or the second of the two headers of a member. So a thread's findings are only
 * notes. The walker, which goes through the archive from its first byte, uses a note if it is at exactly
 * the byte where the note's member begins, and parses the header itself otherwise. What follows a header
 * does not depend on what came before it, so the result is the same as walking alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_TRAILS_H
#define ST_SOURCE_SHARDS_TRAILS_H

#include "source/shards/window.h"

/* What an index needs to know about a member. */
struct st_trail_note {
    uint64_t start, end; /* the start of its first header, the end of its payload */
    struct st_bytes name;
    bool regular; /* belongs into the index; otherwise `end` is only where the next member begins */
};

struct st_trail_kind {
    uint32_t head;    /* size of a header */
    uint32_t step;    /* headers begin at multiples of this */
    size_t walk_size; /* size of a walk's state, which is zeroed before `begin` */
    bool (*looks_like)(const uint8_t *head);
    void (*begin)(void *walk, struct st_window *window);
    /* The member at `at`; its name is valid until the next call. Nonzero: there is none. */
    int (*next)(void *walk, uint64_t at, struct st_trail_note *out);
    void (*end)(void *walk);
};

struct st_trails;

/* Whether to consider threads after `count` members: some must be read first to know how large they are
 * (fewer on a server, where each may cost a request), and it is reconsidered later because the following
 * ones may be smaller. */
static inline bool st_trails_due(const struct st_window *window, uint64_t count)
{
    const uint64_t least = window->file && window->file->remote ? 16 : 64;
    return count >= least && (count & (count - 1)) == 0;
}

/* Looks for members from `from` on, with up to `threads` threads; `count` members come before. NULL if
 * that is not worthwhile or out of memory. */
struct st_trails *st_trails_find(const struct st_trail_kind *kind, const struct st_window *window,
                                 uint64_t from, uint64_t count, uint32_t threads);
/* The member at *at, if a thread found it; moves *at past it. Must be called front to back; the name is
 * valid until the next call. `trails` may be NULL. */
bool st_trails_take(struct st_trails *trails, uint64_t *at, struct st_trail_note *out);
void st_trails_free(struct st_trails *trails); /* NULL is allowed */

/* Where the header after a payload that ends here must be. */
static inline uint64_t st_trail_behind(const struct st_window *window, uint64_t end, uint32_t step)
{
    const uint64_t at = st_align(end, step);
    /* Some programs omit the last padding. */
    return at > window->end && end <= window->end ? window->end : at;
}

#endif
