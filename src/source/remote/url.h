/* url.h - splits and joins URLs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_URL_H
#define ST_SOURCE_REMOTE_URL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The URL without parts that may be secret: user name, password and query. */
const char *st_url_public(const char *url, char out[PATH_MAX]);
/* The URL up to its last '/', without query; the caller frees it. NULL: out of memory. */
char *st_url_folder(const char *url);
/* Builds the URL of a file from its path relative to a folder's URL, or relative to the server's (or
 * bucket's) root if it begins with '/'. "." and ".." never lead above the root. The path is a plain file
 * name: characters with a meaning in URLs are escaped. False: the result exceeds `room`. */
bool st_url_join(char *out, size_t room, const char *folder, const char *path);
/* Percent-encodes everything but letters, digits, "-._~" and "/", as signatures require it too, and adds
 * a NUL byte. The result is up to three times as long. Returns the address of the NUL byte. */
char *st_url_escape(char *out, const char *text, size_t size);

#endif
