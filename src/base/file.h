/* file.h - opens, reads and writes files whatever signals come in between
 *
 * A host program's signal handlers may interrupt our calls on network and FUSE file systems, and any
 * read or write may do only a part of the work: neither is an error.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_FILE_H
#define ST_BASE_FILE_H

#include "base/err.h"

#include <dirent.h>
#include <stdbool.h>

/* open(path, flags | O_CLOEXEC, 0666). -1 on failure, with errno. Any thread, like the following. */
int st_file_open(const char *path, int flags);
/* opendir. NULL on failure, with errno. */
DIR *st_folder_open(const char *path);
/* Reads exactly `size` bytes at `offset`; `path` is for messages. */
int st_file_read(int fd, const char *path, uint64_t offset, void *into, uint64_t size,
                 struct stoker_error *err);
/* Writes all bytes at `offset`. On failure false, with errno. */
bool st_file_write(int fd, uint64_t offset, const void *bytes, uint64_t size);
/* fsync. On failure false, with errno. */
bool st_file_sync(int fd);

#endif
