/* source.h - where the bytes of samples come from
 *
 * Each kind of source is one file that ends in its `const struct st_source`, listed in registry.c. A
 * source reports where a sample's bytes are and the reader fetches them; one that cannot (a database, a
 * callback) reads them itself.
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

/* A sample is a tuple of fields; most datasets have two, an encoded image and a label. */
enum st_field_kind {
    ST_FIELD_IMAGE, /* an encoded image, or pixels: uint8 [H, W, C] or [H, W] */
    ST_FIELD_AUDIO, /* encoded audio */
    ST_FIELD_INT, ST_FIELD_FLOAT,
    ST_FIELD_ARRAY, /* numbers of one dtype */
    ST_FIELD_TEXT, ST_FIELD_JSON, ST_FIELD_BYTES,
};
enum { ST_FIELDS_MAX = 64, ST_DIMS_MAX = 15 };

struct st_field {
    const char *name; /* owned by the source */
    enum st_field_kind kind;
    /* For ARRAY, and for IMAGE that holds pixels: */
    enum stoker_dtype dtype;
    int32_t ndim; /* -1: unknown until a sample is read */
    int64_t shape[ST_DIMS_MAX]; /* -1: varies between samples */
    bool drawn; /* masks made of shapes when needed: an ARRAY of one for each box, or an IMAGE */
};

struct st_annotated; /* source/annotated/annotated.h */

/* One field of one sample. The bytes are in the sample's raw bytes, in the scratch buffer or in the
 * source. */
struct st_piece {
    struct st_bytes bytes;      /* IMAGE, AUDIO, ARRAY (C order, native endian), TEXT, JSON, BYTES */
    int64_t whole;              /* INT; `drawn`: which image of the table */
    const struct st_annotated *table; /* `drawn`: has the shapes */
    double real;                /* FLOAT */
    enum stoker_dtype dtype;    /* ARRAY, IMAGE that holds pixels */
    int32_t ndim;               /* ARRAY; IMAGE: 0 if encoded, else 2 or 3 */
    int64_t shape[ST_DIMS_MAX];
    bool followed; /* IMAGE that holds pixels: 64 more bytes behind them may be read, and they stay where
                      they are and as they are until the sample is done */
};

/* Where a sample's bytes are: in memory, in a file, or on a server. */
struct st_extent {
    const uint8_t *memory; /* not NULL: `length` bytes at this address */
    int fd; /* not 0: this file, kept open by the source; `path` is then for messages only */
    struct st_remote *remote; /* not NULL: this object on a server; `path` as with fd */
    struct st_remote_set *objects; /* not NULL: all of this set's object number `offset`, URL `path` */
    const atomic_bool *cancel; /* set by the reader: NULL, or a flag; once true, reads must not block */
    uint64_t offset, length; /* in the file; ST_WHOLE_FILE: from offset to the end */
    char path[PATH_MAX];
};

struct st_source {
    const char *scheme;   /* "folder" in folder:/data/train */
    size_t self_size;     /* the caller allocates it zeroed, and frees it */
    /* Whether a path without a scheme looks like this kind, judged by its name or by the first bytes of
     * the file (no bytes for a folder, a pattern, or a path that does not exist). NULL: never. */
    bool (*matches)(const char *path, const uint8_t *head, size_t size);
    bool lists; /* `open` also takes lists and patterns, not just a single file */
    int (*open)(void *self, const char *path, const struct stoker_dataset_options *opt,
                struct stoker_error *err);
    uint64_t (*count)(const void *self);
    int64_t (*label)(const void *self, uint64_t sample);
    size_t (*name)(const void *self, uint64_t sample, char *buffer, size_t size);
    /* Exactly one of these two: */
    int (*locate)(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err);
    int (*read)(void *self, uint64_t sample, struct st_buffer *into, struct stoker_error *err);
    /* NULL: the sample's bytes are an encoded image and `label` is its label. Otherwise the fields;
     * `split` finds each field's piece in the bytes that were located or read. Called from any thread.
     * The caller owns `scratch` and reuses it for every sample. */
    const struct st_field *(*fields)(const void *self, uint32_t *count);
    int (*split)(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                 struct st_piece *pieces, struct stoker_error *err);
    uint32_t (*class_count)(const void *self);                   /* NULL: no classes */
    const char *(*class_name)(const void *self, uint32_t index); /* NULL: no classes */
    int64_t (*class_label)(const void *self, uint32_t index);    /* NULL: its index */
    uint64_t (*memory)(const void *self);  /* NULL: the source holds no sample bytes in memory */
    void (*keep)(void *self, uint64_t bytes); /* NULL, or limits its caches to `bytes`. Any thread */
    const char *(*note)(const void *self); /* NULL, or a remark for stats(): what is slow, and why */
    void (*close)(void *self);                                   /* safe after a failed open */
};

/* A source and its state, reference-counted. Immutable apart from `known`, so threads may share it. */
struct stoker_dataset {
    const struct st_source *source;
    void *self;
    const char *kind;         /* as in "kind:path"; NULL: not opened by a path */
    struct st_cells *classes; /* class names, if the source itself has none; NULL: ask the source */
    int64_t *class_labels;    /* of `classes`; NULL: 0, 1, ... */
    atomic_uint holders;
    _Atomic(struct st_known *) known; /* known.h; NULL: not used so far */
    char *known_file;                 /* where it is kept; NULL: in memory only */
    uint64_t known_key;
};

/* Opens "scheme:path", or detects what kind a plain path is: see location.h. */
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
/* Made of other datasets, which they keep a reference to: concat.c, subset.c, mix.c, encoded.c. */
int st_dataset_concat(struct stoker_dataset **out, struct stoker_dataset *const *parts, uint32_t count,
                      struct stoker_error *err);
int st_dataset_subset(struct stoker_dataset **out, struct stoker_dataset *data, const uint64_t *indices,
                      uint64_t count, struct stoker_error *err);
int st_dataset_encoded(struct stoker_dataset **out, struct stoker_dataset *data,
                       struct stoker_error *err);
/* Images with masks: paired.c, and in common layouts, also with boxes, pairs/open.c. */
int st_dataset_paired(struct stoker_dataset **out, struct stoker_dataset *images,
                      struct stoker_dataset *masks, bool labelled, struct stoker_error *err);
int st_dataset_from_pairs(struct stoker_dataset **out, const struct stoker_pairs *how,
                          const struct stoker_dataset_options *opt, struct stoker_error *err);
int st_dataset_mix(struct stoker_dataset **out, struct stoker_dataset *const *parts,
                   const double *weights, uint32_t count, uint64_t samples, uint64_t seed,
                   struct stoker_error *err);
struct stoker_dataset *st_dataset_hold(struct stoker_dataset *data);
void st_dataset_drop(struct stoker_dataset *data); /* NULL is allowed */
uint64_t st_dataset_count(const struct stoker_dataset *data);
int64_t st_dataset_label(const struct stoker_dataset *data, uint64_t sample);
size_t st_dataset_name(const struct stoker_dataset *data, uint64_t sample, char *buffer, size_t size);
/* Sample bytes that the source holds in memory for its whole lifetime, such as unpacked archives. A
 * loader deducts them from its max_memory. */
uint64_t st_dataset_memory(const struct stoker_dataset *data);
/* Limits, from now on, the source's caches (such as file chunks that several samples share). */
void st_dataset_keep(struct stoker_dataset *data, uint64_t bytes);
uint32_t st_dataset_class_count(const struct stoker_dataset *data);
/* `index` is below the count. */
const char *st_dataset_class_name(const struct stoker_dataset *data, uint32_t index);
int64_t st_dataset_class_label(const struct stoker_dataset *data, uint32_t index);

/* The kinds that this build supports, ending with NULL. */
extern const struct st_source *const st_sources[];

#endif
