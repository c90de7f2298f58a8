/* url.h - URLs taken apart and put together
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_URL_H
#define ST_SOURCE_REMOTE_URL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The URL without what may be secret: name, password and query. */
const char *st_url_public(const char *url, char out[PATH_MAX]);
/* The URL up to its last '/', without query; the caller frees it. NULL: out of memory. */
char *st_url_folder(const char *url);
/* The URL of a file, by its path relative to a folder's URL, or from its server's (or bucket's) root
 * where it begins with '/'. "." and ".." lead not above the root. It is the name of a file, as it is
 * written on a disk: signs that mean something in URLs are escaped. False: longer than `room`. */
bool st_url_join(char *out, size_t room, const char *folder, const char *path);
/* Writes text with all but letters, digits, "-._~" and "/" by their numbers, as signatures want it too,
 * and a zero byte; up to three times as long. Returns where that stands. */
char *st_url_escape(char *out, const char *text, size_t size);

#endif
