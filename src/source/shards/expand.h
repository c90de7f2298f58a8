/* expand.h - expands a pattern into the files that it matches
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_EXPAND_H
#define ST_SOURCE_SHARDS_EXPAND_H

#include "base/err.h"

#include <stdint.h>

/* More files than this are a mistake, not a dataset. */
#define ST_SHARDS_MAX 1000000u

struct st_paths {
    char **items;
    uint64_t count, room;
};

/* Expands "a-{000..003}.tar::b/{x,y}/[0-9]*.tar": the parts separated by "::" in order, each with its
 * braces expanded as by the Python package braceexpand ("\{" is a literal brace). A result that is not
 * an existing file is then matched as a glob(7) pattern, sorted by name. A part that names an existing
 * file is that file. */
int st_expand(struct st_paths *out, const char *pattern, struct stoker_error *err);
/* Expands the braces only. */
int st_expand_braces(struct st_paths *out, const char *pattern, struct stoker_error *err);
int st_paths_add(struct st_paths *out, const char *path, size_t size, struct stoker_error *err);
void st_paths_sort(struct st_paths *paths); /* by name, in Python's order */
void st_paths_free(struct st_paths *paths);

#endif
