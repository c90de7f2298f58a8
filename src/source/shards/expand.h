/* expand.h - the files that a pattern stands for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_EXPAND_H
#define ST_SOURCE_SHARDS_EXPAND_H

#include "base/err.h"

#include <stdint.h>

/* More than this is a slip of the hand, not a data set. */
#define ST_SHARDS_MAX 1000000u

struct st_paths {
    char **items;
    uint64_t count, room;
};

/* What "a-{000..003}.tar::b/{x,y}/[0-9]*.tar" stands for: parts at "::" one after another, each with its
 * braces expanded as the Python package braceexpand does it ("\{" is a brace as such), and then, where
 * no such file is there, as a pattern of glob(7), sorted by name. A part that is the name of a file is
 * that file. */
int st_expand(struct st_paths *out, const char *pattern, struct stoker_error *err);
/* The braces alone. */
int st_expand_braces(struct st_paths *out, const char *pattern, struct stoker_error *err);
int st_paths_add(struct st_paths *out, const char *path, size_t size, struct stoker_error *err);
void st_paths_sort(struct st_paths *paths); /* by name, as Python sorts */
void st_paths_free(struct st_paths *paths);

#endif
