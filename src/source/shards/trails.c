/* trails.c - finds the members of a large archive with several threads
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/trails.h"

#include "base/threads.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Fewer members than WORTH are found before threads would even start. */
enum { WORTH = 2048, WORTH_REMOTE = 64, TRAILS_EACH = 4, TRAIL_WORTH = 32, STRIDES_SEARCHED = 16 };
/* Larger members are few, and finding one from the middle takes longer than stepping from header to
 * header. */
#define STRIDE_MAX (16ull << 20)
#define SEARCH_MIN (64ull << 10)
/* Shorter trails would end within their first request. */
#define REMOTE_LEAST (8ull << 20)

/* A note as it is stored: names are concatenated. */
struct stored {
    uint64_t start, end, name;
    uint32_t name_size;
    bool regular;
};

struct trail {
    uint64_t from, to; /* the range in which its members begin */
    struct stored *notes;
    char *names;
    uint64_t count, room, names_size, names_room;
};

struct st_trails {
    const struct st_trail_kind *kind;
    const struct st_window *window;
    uint64_t search;      /* how far to search for a header */
    atomic_ullong next;   /* the next trail to follow */
    uint64_t trail, note; /* the next note to take */
    uint64_t count;
    struct trail trails[];
};

/* ---- finding --------------------------------------------------------------------------------- */

static bool grow(void **table, uint64_t *room, uint64_t wanted, uint64_t size)
{
    if (wanted <= *room)
        return true;
    const uint64_t more = wanted > *room * 2 ? wanted : *room * 2;
    void *grown = st_grow(*table, more, size);
    if (grown) {
        *table = grown;
        *room = more;
    }
    return grown != NULL;
}

static bool put_note(struct trail *trail, const struct st_trail_note *note)
{
    void *notes = trail->notes, *names = trail->names;
    const bool room = note->name.size <= UINT32_MAX &&
                      grow(&notes, &trail->room, trail->count + 1, sizeof *trail->notes) &&
                      grow(&names, &trail->names_room, trail->names_size + note->name.size, 1);
    trail->notes = notes;
    trail->names = names;
    if (!room)
        return false;
    trail->notes[trail->count++] = (struct stored){.start = note->start,
                                                   .end = note->end,
                                                   .name = trail->names_size,
                                                   .name_size = (uint32_t)note->name.size,
                                                   .regular = note->regular};
    if (note->name.size)
        memcpy(trail->names + trail->names_size, note->name.data, note->name.size);
    trail->names_size += note->name.size;
    return true;
}

/* Moves *at to the first place that looks like a header; false: there is none within the search range or
 * before the end of the trail. */
static bool find_header(const struct st_trail_kind *kind, struct st_window *w, const struct trail *trail,
                        uint64_t *search, uint64_t *at)
{
    for (; *at < trail->to && *search >= kind->step && st_window_has(w, *at, kind->head);
         *at += kind->step, *search -= kind->step) {
        const uint8_t *head = st_window_at(w, *at, kind->head, NULL);
        if (!head)
            return false;
        if (kind->looks_like(head))
            return true;
    }
    return false;
}

/* Records the members one after another. If there is no next one, the starting point was wrong or the
 * archive ends: the walker finds out which, and a header further on may be a real one. */
static void follow(const struct st_trails *trails, struct st_window *w, void *walk, struct trail *trail)
{
    const struct st_trail_kind *kind = trails->kind;
    uint64_t search = trails->search, at = trail->from;
    while (find_header(kind, w, trail, &search, &at)) {
        struct st_trail_note note;
        int rc = 0;
        while (at < trail->to && !(rc = kind->next(walk, at, &note))) {
            if (!put_note(trail, &note))
                return;
            at = st_trail_behind(w, note.end, kind->step);
        }
        at += rc ? kind->step : 0;
    }
}

static void follow_trails(void *context)
{
    struct st_trails *trails = context;
    const struct st_window *whole = trails->window;
    struct st_window w = {
        .path = whole->path, .file = whole->file, .end = whole->end, .pace = whole->pace};
    void *walk = st_calloc(1, trails->kind->walk_size);
    if (!walk)
        return; /* the other threads or the walker do the work */
    trails->kind->begin(walk, &w);
    uint64_t i;
    while ((i = atomic_fetch_add(&trails->next, 1)) < trails->count) {
        w.reach = trails->trails[i].to;
        follow(trails, &w, walk, &trails->trails[i]);
    }
    trails->kind->end(walk);
    free(walk);
    st_window_free(&w);
}

struct st_trails *st_trails_find(const struct st_trail_kind *kind, const struct st_window *window,
                                 uint64_t from, uint64_t count, uint32_t threads)
{
    const uint64_t rest = from < window->end ? window->end - from : 0, stride = from / count + 1;
    const bool remote = window->file && window->file->remote;
    if (window->memory || threads < 2 || stride > STRIDE_MAX ||
        rest / stride < (remote ? WORTH_REMOTE : WORTH))
        return NULL;
    const uint64_t least =
        remote && stride * TRAIL_WORTH < REMOTE_LEAST ? REMOTE_LEAST : stride * TRAIL_WORTH;
    const uint64_t most = (uint64_t)threads * TRAILS_EACH;
    const uint64_t pieces = rest / least < most ? rest / least : most;
    if (pieces < 2)
        return NULL;
    struct st_trails *trails = st_calloc(1, sizeof *trails + pieces * sizeof *trails->trails);
    if (!trails)
        return NULL;
    trails->kind = kind;
    trails->window = window;
    trails->search = SEARCH_MIN + stride * STRIDES_SEARCHED;
    trails->count = pieces;
    for (uint64_t i = 0; i < pieces; i++) {
        const uint64_t step = rest / pieces / kind->step * kind->step;
        trails->trails[i].from = from + step * i;
        trails->trails[i].to = i + 1 < pieces ? from + step * (i + 1) : window->end;
    }
    st_threads_run(threads, follow_trails, trails);
    return trails;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static void forget(struct trail *trail)
{
    free(trail->notes);
    free(trail->names);
    *trail = (struct trail){0};
}

/* The first note at or after this offset; NULL: there is none. */
static const struct stored *next_note(struct st_trails *trails, uint64_t at)
{
    for (; trails->trail < trails->count; trails->trail++, trails->note = 0) {
        struct trail *trail = &trails->trails[trails->trail];
        while (trails->note < trail->count && trail->notes[trails->note].start < at)
            trails->note++;
        if (trails->note < trail->count)
            return &trail->notes[trails->note];
        forget(trail);
    }
    return NULL;
}

bool st_trails_take(struct st_trails *trails, uint64_t *at, struct st_trail_note *out)
{
    const struct stored *note = trails ? next_note(trails, *at) : NULL;
    if (!note || note->start != *at)
        return false;
    const char *names = trails->trails[trails->trail].names;
    *out = (struct st_trail_note){.start = note->start, .end = note->end, .regular = note->regular};
    if (note->name_size)
        out->name = (struct st_bytes){(const uint8_t *)names + note->name, note->name_size};
    *at = st_trail_behind(trails->window, note->end, trails->kind->step);
    return true;
}

void st_trails_free(struct st_trails *trails)
{
    for (uint64_t i = 0; trails && i < trails->count; i++)
        forget(&trails->trails[i]);
    free(trails);
}
