/* file.c - opens, reads and writes files whatever signals come in between
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int st_file_open(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

DIR *st_folder_open(const char *path)
{
    const int fd = st_file_open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir) {
        const int errnum = errno;
        close(fd);
        errno = errnum;
    }
    return dir;
}

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

bool st_file_write(int fd, uint64_t offset, const void *bytes, uint64_t size)
{
    const uint8_t *at = bytes;
    while (size) {
        const ssize_t put = pwrite(fd, at, size, (off_t)offset);
        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = ENOSPC;
        if (put <= 0)
            return false;
        at += put;
        offset += (uint64_t)put;
        size -= (uint64_t)put;
    }
    return true;
}

bool st_file_sync(int fd)
{
    int failed;
    do
        failed = fsync(fd);
    while (failed && errno == EINTR);
    return !failed;
}
