/* location.h - what a path or URI stands for: the kind of dataset, and its files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LOCATION_H
#define ST_SOURCE_LOCATION_H

#include "source/packs/manifest.h"
#include "source/shards/expand.h"
#include "source/source.h"

struct st_location {
    const struct st_source *kind;
    const char *path;      /* the URI without its kind */
    bool folder;           /* the files are those of the folder `path` */
    struct st_paths paths; /* the files, in order; empty: `path` is a tree of files */
    struct st_pack pack; /* the manifest if `stoker pack` wrote the folder; otherwise has no settings */
};

/* Resolves "kind:path" or a plain path: a file, a list ("a.h5::b.h5"), braces, a pattern, a folder that
 * `stoker pack` wrote, a folder that holds archives of one kind and nothing else, or a folder of images.
 * `uri` must outlive `place`. */
int st_location_find(struct st_location *place, const char *uri,
                     const struct stoker_dataset_options *opt, struct stoker_error *err);
/* Several files of one kind must have the same fields and classes. */
int st_location_open(struct stoker_dataset **out, const struct st_location *place,
                  const struct stoker_dataset_options *opt, struct stoker_error *err);
void st_location_free(struct st_location *place); /* safe after a failed find */

/* For a folder without class folders: what it contains and what to open instead ("; it contains ..."),
 * or "". */
void st_location_hint(const char *folder, char *out, size_t size);
/* For a folder without samples: which other files it contains ("; it contains ..."), or "". `samples`:
 * the extensions of samples. (others.c) */
void st_others_hint(const char *folder, const char *const *samples, char *out, size_t size);

#endif
