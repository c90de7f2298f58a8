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

/* A sample is a tuple of fields; most data sets have two, an encoded image and a label. */
enum st_field_kind {
    ST_FIELD_IMAGE, /* an encoded image, or pixels: uint8 [H, W, C] or [H, W] */
    ST_FIELD_AUDIO, /* an encoded sound */
    ST_FIELD_INT, ST_FIELD_FLOAT,
    ST_FIELD_ARRAY, /* numbers of one type */
    ST_FIELD_TEXT, ST_FIELD_JSON, ST_FIELD_BYTES,
};
enum { ST_FIELDS_MAX = 64, ST_DIMS_MAX = 15 };

struct st_field {
    const char *name; /* the source's */
    enum st_field_kind kind;
    /* ARRAY, and IMAGE of pixels: */
    enum stoker_dtype dtype;
    int32_t ndim; /* -1: not known before a sample is read */
    int64_t shape[ST_DIMS_MAX]; /* -1: differs from sample to sample */
};

/* One field of one sample. Bytes lie in the sample's raw bytes, in the scratch buffer or in the source. */
struct st_piece {
    struct st_bytes bytes;      /* IMAGE, AUDIO, ARRAY (C order, native endian), TEXT, JSON, BYTES */
    int64_t whole;              /* INT */
    double real;                /* FLOAT */
    enum stoker_dtype dtype;    /* ARRAY, IMAGE of pixels */
    int32_t ndim;               /* ARRAY; IMAGE: 0 when encoded, else 2 or 3 */
    int64_t shape[ST_DIMS_MAX];
};

/* Where a sample's bytes lie: in memory, or in a file. */
struct st_extent {
    const uint8_t *memory; /* not NULL: here, `length` bytes */
    int fd; /* not 0: this file, which the source holds open; `path` then names it in messages */
    struct st_remote *remote; /* not NULL: this object on a server, as with fd */
    struct st_remote_set *objects; /* not NULL: the whole of number `offset` of these, whose URL is `path` */
    const atomic_bool *cancel; /* the reader's: NULL, or where it becomes true no reading is to wait */
    uint64_t offset, length; /* in the file; ST_WHOLE_FILE: from offset to its end */
    char path[PATH_MAX];
};

struct st_source {
    const char *scheme;   /* "folder" in folder:/data/train */
    size_t self_size;     /* the caller zeroes it and frees it */
    /* Whether a path that names no scheme looks like this kind's, by its name or by the first bytes of the file
     * there (none for a folder, a pattern, or where nothing is). NULL: never. */
    bool (*suits)(const char *path, const uint8_t *head, size_t size);
    bool lists; /* `open` takes lists and patterns too, and not one file alone */
    int (*open)(void *self, const char *path, const struct stoker_dataset_options *opt,
                struct stoker_error *err);
    uint64_t (*count)(const void *self);
    int64_t (*label)(const void *self, uint64_t sample);
    size_t (*name)(const void *self, uint64_t sample, char *buffer, size_t size);
    /* One of the two: */
    int (*locate)(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err);
    int (*read)(void *self, uint64_t sample, struct st_buffer *into, struct stoker_error *err);
    /* NULL: the sample's bytes are an encoded image, and `label` its label. Else the fields, whose pieces
     * `split` finds in the bytes that were located or read. Any thread. Scratch is the caller's, kept from
     * sample to sample. */
    const struct st_field *(*fields)(const void *self, uint32_t *count);
    int (*split)(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                 struct st_piece *pieces, struct stoker_error *err);
    uint32_t (*class_count)(const void *self);                   /* NULL: no classes */
    const char *(*class_name)(const void *self, uint32_t index); /* NULL: no classes */
    uint64_t (*memory)(const void *self);  /* NULL: no bytes of samples are held in memory of its own */
    void (*keep)(void *self, uint64_t bytes); /* NULL, or: of what it may forget it keeps no more. Any thread */
    const char *(*note)(const void *self); /* NULL, or what stats() should say: what is slow here, and why */
    void (*close)(void *self);                                   /* safe after a failed open */
};

/* A source with its state, counted by those who hold it. Immutable, so that threads may share it. */
struct stoker_dataset {
    const struct st_source *source;
    void *self;
    const char *kind;         /* of what was opened by a path, as in "kind:path"; NULL: no path led to it */
    struct st_cells *classes; /* their names, where the source itself has none; NULL: ask the source */
    atomic_uint holders;
};

/* Opens "scheme:path", or a plain path as what it looks like: see location.h. */
int st_dataset_open(struct stoker_dataset **out, const char *uri,
                    const struct stoker_dataset_options *opt, struct stoker_error *err);
int st_dataset_from_memory(struct stoker_dataset **out, const struct stoker_item *items, uint64_t count,
                           struct stoker_error *err);
int st_dataset_from_pixels(struct stoker_dataset **out, const struct stoker_pixels *given,
                           struct stoker_error *err);
int st_dataset_from_files(struct stoker_dataset **out, const char *const *paths, const int64_t *labels,
                          uint64_t count, struct stoker_error *err);
int st_dataset_from_callbacks(struct stoker_dataset **out, const struct stoker_callbacks *callbacks,
                              void *cookie, struct stoker_error *err);
/* Over others, which they hold: concat.c, subset.c, mix.c. */
int st_dataset_concat(struct stoker_dataset **out, struct stoker_dataset *const *parts, uint32_t count,
                      struct stoker_error *err);
int st_dataset_subset(struct stoker_dataset **out, struct stoker_dataset *data, const uint64_t *indices,
                      uint64_t count, struct stoker_error *err);
int st_dataset_mix(struct stoker_dataset **out, struct stoker_dataset *const *parts, const double *weights,
                   uint32_t count, uint64_t samples, uint64_t seed, struct stoker_error *err);
struct stoker_dataset *st_dataset_hold(struct stoker_dataset *data);
void st_dataset_drop(struct stoker_dataset *data); /* NULL is fine */
uint64_t st_dataset_count(const struct stoker_dataset *data);
int64_t st_dataset_label(const struct stoker_dataset *data, uint64_t sample);
size_t st_dataset_name(const struct stoker_dataset *data, uint64_t sample, char *buffer, size_t size);
/* Bytes of samples that the source holds in memory for as long as it lives: archives that it has unpacked. A loader
 * takes them out of its own max_memory. */
uint64_t st_dataset_memory(const struct stoker_dataset *data);
/* Of what it holds to be quicker, such as chunks of a file that several samples lie in, it keeps no more than so much from
 * now on. */
void st_dataset_keep(struct stoker_dataset *data, uint64_t bytes);
uint32_t st_dataset_class_count(const struct stoker_dataset *data);
const char *st_dataset_class_name(const struct stoker_dataset *data, uint32_t index); /* below the count */

/* The kinds of this build, NULL at the end. */
extern const struct st_source *const st_sources[];

#endif
