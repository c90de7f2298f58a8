/* held.h - a file that a source keeps open for its lifetime
 *
 * The source keeps reading the same bytes even if another file replaces this one under the same name. If
 * the file is truncated meanwhile, the result is an error, never a signal: bytes are read rather than
 * mapped, and for mapped bytes the file's size is checked first.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HELD_H
#define ST_SOURCE_HELD_H

#include "source/remote/remote.h"
#include "source/source.h"

/* A file, or an object on a server that is read over the network. */
struct st_held {
    int fd; /* at least 3; 0: not open */
    struct st_remote *remote; /* not NULL: instead of fd */
    char *copy; /* the path of the local copy of an object that fd refers to; NULL: none */
    uint64_t size;
    char *path;   /* as given by the user */
    uint8_t *map; /* NULL: not mapped */
};

/* Regular files only. The path must fit into st_extent.path. */
int st_held_open(struct st_held *file, const char *path, struct stoker_error *err);
/* The same, but also takes a URL, which is read through `store`; if that is NULL, a store is opened with
 * these options (NULL: the defaults). */
int st_held_open_any(struct st_held *file, const char *path, struct st_remote_store *store,
                     const struct stoker_dataset_options *opt, struct stoker_error *err);
/* The same, but copies a remote object to a file in opt->cache_dir or TMPDIR, for readers that need a
 * local file. */
int st_held_open_copy(struct st_held *file, const char *path, const struct stoker_dataset_options *opt,
                      struct stoker_error *err);
/* Unlinks the local copy: it is deleted with its last descriptor, even if the process is killed. */
void st_held_unlink(struct st_held *file);
/* Reads exactly `size` bytes at `offset`. Any thread. */
int st_held_read(const struct st_held *file, uint64_t offset, void *into, uint64_t size,
                 struct stoker_error *err);
/* Maps the whole file, which must not be empty; a remote object is loaded into memory if it is small
 * enough. */
int st_held_map(struct st_held *file, struct stoker_error *err);
/* Fails if the file was truncated below `end` since it was mapped. Any thread. */
int st_held_check(const struct st_held *file, uint64_t end, struct stoker_error *err);
void st_held_extent(const struct st_held *file, uint64_t offset, uint64_t length, struct st_extent *out);
void st_held_close(struct st_held *file); /* safe after a failed open, and twice */

#endif
