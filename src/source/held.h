/* held.h - a file that a source holds open for as long as it lives
 *
 * Who holds the file goes on reading the same bytes when another takes its place under the same name.
 * One that is cut short meanwhile gives an error and never a signal: bytes are read, and where they are
 * mapped the file's size is asked for first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HELD_H
#define ST_SOURCE_HELD_H

#include "source/remote/remote.h"
#include "source/source.h"

/* A file, or an object on a server, which is read in its place. */
struct st_held {
    int fd; /* at least 3; 0: not open */
    struct st_remote *remote; /* not NULL: instead of fd */
    char *copy; /* fd is a copy of an object, and this its name; NULL: it has none */
    uint64_t size;
    char *path;   /* as the user wrote it */
    uint8_t *map; /* NULL: not mapped */
};

/* Regular files only. The path may not be longer than an extent's. */
int st_held_open(struct st_held *file, const char *path, struct stoker_error *err);
/* The same, or what a URL names: through the store, or one of its own by these options (NULL: the
 * defaults). */
int st_held_open_any(struct st_held *file, const char *path, struct st_remote_store *store,
                     const struct stoker_dataset_options *opt, struct stoker_error *err);
/* The same, but an object is copied as a whole into a file in opt->cache_dir or TMPDIR: for those who
 * need a file. */
int st_held_open_copy(struct st_held *file, const char *path, const struct stoker_dataset_options *opt,
                      struct stoker_error *err);
/* The copy needs its name no longer: it goes with the last who has it open, whatever is killed. */
void st_held_unname(struct st_held *file);
/* Exactly `size` bytes from `offset` on. Any thread. */
int st_held_read(const struct st_held *file, uint64_t offset, void *into, uint64_t size,
                 struct stoker_error *err);
/* Maps the whole file, which may not be empty; an object is brought into memory, if it is small enough.
 */
int st_held_map(struct st_held *file, struct stoker_error *err);
/* Whether the mapped bytes before `end` are still there. Any thread. */
int st_held_check(const struct st_held *file, uint64_t end, struct stoker_error *err);
void st_held_extent(const struct st_held *file, uint64_t offset, uint64_t length, struct st_extent *out);
void st_held_close(struct st_held *file); /* safe after a failed open, and twice */

#endif
