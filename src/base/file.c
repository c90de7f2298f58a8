/* file.c - reads a range of an open file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/file.h"

#include <errno.h>
#include <unistd.h>

int st_file_read(int fd, const char *path, uint64_t offset, void *into, uint64_t size,
                 struct stoker_error *err)
{
    uint8_t *at = into;
    while (size) {
        const ssize_t got = pread(fd, at, size, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return st_fail_errno(err, errno, "%s: at byte %llu", path, (unsigned long long)offset);
        if (got == 0)
            return st_fail(err, STOKER_EIO, "%s: ends at byte %llu, but %llu more bytes were expected",
                           path, (unsigned long long)offset, (unsigned long long)size);
        at += got;
        offset += (uint64_t)got;
        size -= (uint64_t)got;
    }
    return 0;
}
