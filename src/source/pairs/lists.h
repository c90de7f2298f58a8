/* lists.h - text files that list the samples of a dataset, a line each
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_PAIRS_LISTS_H
#define ST_SOURCE_PAIRS_LISTS_H

#include "base/err.h"
#include "base/mem.h"

/* A line without the white space around it, NUL-terminated; it may be changed. Empty lines are left out.
 */
typedef int st_list_line(void *context, char *line, unsigned long long number, struct stoker_error *err);

/* Calls `each` for the lines of the file folder + name + ".txt", until one returns an error. */
int st_list_read(const char *folder, const char *name, st_list_line *each, void *context,
                 struct stoker_error *err);

#endif
