/* source.h - where the bytes of samples come from
 *
 * One kind of source is one file that ends in its `const struct st_source`, named in registry.c. A
 * source says where a sample's bytes lie, and the reader fetches them; one that cannot say so (a data
 * base, a callback) reads them itself.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SOURCE_H
#define ST_SOURCE_SOURCE_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

#include <limits.h>
#include <stdatomic.h>

#define ST_WHOLE_FILE UINT64_MAX

/* Where a sample's bytes lie: in memory, or in a file. */
struct st_extent {
    const uint8_t *memory; /* not NULL: here, `length` bytes */
    uint64_t offset, length; /* in the file; ST_WHOLE_FILE: from offset to its end */
    char path[PATH_MAX];
};

struct st_source {
    const char *scheme;   /* "folder" in folder:/data/train */
    size_t self_size;     /* the caller zeroes it and frees it */
    int (*open)(void *self, const char *path, const struct stoker_dataset_options *opt,
                struct stoker_error *err);
    uint64_t (*count)(const void *self);
    int64_t (*label)(const void *self, uint64_t sample);
    size_t (*name)(const void *self, uint64_t sample, char *buffer, size_t size);
    /* One of the two: */
    int (*locate)(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err);
    int (*read)(void *self, uint64_t sample, struct st_buffer *into, struct stoker_error *err);
    uint32_t (*class_count)(const void *self);                   /* NULL: no classes */
    const char *(*class_name)(const void *self, uint32_t index); /* NULL: no classes */
    void (*close)(void *self);                                   /* safe after a failed open */
};

/* A source with its state, counted by those who hold it. Immutable, so that threads may share it. */
struct stoker_dataset {
    const struct st_source *source;
    void *self;
    atomic_uint holders;
};

/* Opens "scheme:path" or a plain path (a folder). */
int st_dataset_open(struct stoker_dataset **out, const char *uri,
                    const struct stoker_dataset_options *opt, struct stoker_error *err);
int st_dataset_from_memory(struct stoker_dataset **out, const struct stoker_item *items, uint64_t count,
                           struct stoker_error *err);
int st_dataset_from_files(struct stoker_dataset **out, const char *const *paths, const int64_t *labels,
                          uint64_t count, struct stoker_error *err);
int st_dataset_from_callbacks(struct stoker_dataset **out, const struct stoker_callbacks *callbacks,
                              void *cookie, struct stoker_error *err);
struct stoker_dataset *st_dataset_hold(struct stoker_dataset *data);
void st_dataset_drop(struct stoker_dataset *data); /* NULL is fine */
uint64_t st_dataset_count(const struct stoker_dataset *data);
int64_t st_dataset_label(const struct stoker_dataset *data, uint64_t sample);
size_t st_dataset_name(const struct stoker_dataset *data, uint64_t sample, char *buffer, size_t size);

/* The kinds of this build, NULL at the end. */
extern const struct st_source *const st_sources[];

#endif
