/* partners.h - the files of a folder, found by name, and those that are missing
 *
 * A folder is listed once instead of asking for each file, which a server's file system would answer
 * slowly.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PAIRS_PARTNERS_H
#define ST_SOURCE_PAIRS_PARTNERS_H

#include "base/err.h"

#include <stddef.h>

/* Files below a folder that are looked for. Zeroed, there are none. */
struct st_partners {
    char *folder;          /* ending in '/' */
    char *text;            /* of each file its key, and behind that its path in the folder */
    uint64_t *keys, count; /* in order */
    /* Those that were not found: */
    char examples[200];
    uint64_t missing;
};

/* The size of a path without its extension: the last dot of its last part, unless that begins with it,
 * and what follows. */
size_t st_partners_stem(const char *path);

/* Lists the files below `folder` with one of the extensions (NULL: any). A file's key is its path in the
 * folder; `stems`: without the extension. */
int st_partners_open(struct st_partners *out, const char *folder, const char *const *extensions,
                     bool stems, const struct stoker_dataset_options *opt, struct stoker_error *err);
/* The path in the folder of the file with this key; NULL: there is none. *more: there are several. */
const char *st_partners_find(const struct st_partners *partners, const char *key, bool *more);
/* Whether there is a file at this path, which may also lead out of the folder; otherwise it is missing.
 */
bool st_partners_has(struct st_partners *partners, const char *path);
/* Notes that a file is missing: `name` says which. */
void st_partners_miss(struct st_partners *partners, const char *name);
/* An error if files are missing: "FOLDER: 12 WHAT are missing: a, b, c and 9 more. HINT". `one` is WHAT
 * for a single file. */
int st_partners_check(const struct st_partners *partners, const char *one, const char *what,
                      const char *hint, struct stoker_error *err);
void st_partners_close(struct st_partners *partners); /* safe after a failed open, and twice */

#endif
