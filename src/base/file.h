/* file.h - reads a range of an open file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_FILE_H
#define ST_BASE_FILE_H

#include "base/err.h"

/* Reads exactly `size` bytes at `offset`; `path` is for messages. Any thread. */
int st_file_read(int fd, const char *path, uint64_t offset, void *into, uint64_t size,
                 struct stoker_error *err);

#endif
