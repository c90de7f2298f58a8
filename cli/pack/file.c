/* file.c - files that are either complete or do not exist
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/pack/pack.h"

#include "base/file.h"
#include "source/checksum/crc32c.h"
#include "source/shards/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 1 << 20 };

int pack_path(char out[PATH_MAX], const char *folder, const char *name, struct stoker_error *err)
{
    const int size = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    if (size < 0 || size >= PATH_MAX)
        return st_fail(err, STOKER_EINVAL, "%.200s...: the path is too long", folder);
    return STOKER_OK;
}

bool pack_append(struct st_buffer *buffer, const void *bytes, uint64_t size)
{
    uint64_t wanted;
    if (!st_add(buffer->size, size, &wanted))
        return false;
    if (wanted > buffer->capacity && !st_buffer_keep(buffer, wanted + wanted / 2))
        return false;
    if (size)
        memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size = wanted;
    return true;
}

int pack_cannot_write(const char *path, int why, struct stoker_error *err)
{
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        return st_fail_errno(
            err, why,
            "cannot write %.600s: finished parts are kept; make room and run the same command again",
            path);
    return st_fail_errno(err, why, "%s", path);
}

int pack_was_changed(const char *path, struct stoker_error *err)
{
    return st_fail(
        err, STOKER_ECORRUPT,
        "%.600s: has changed since an earlier run, so this pack cannot be resumed: remove the folder "
        "and run the same command again",
        path);
}

bool pack_truncate(int fd, uint64_t size)
{
    int failed;
    do
        failed = ftruncate(fd, (off_t)size);
    while (failed && errno == EINTR);
    return !failed;
}

int pack_temporary(char out[PATH_MAX], const char *folder, const char *name, struct stoker_error *err)
{
    char hidden[NAME_MAX];
    snprintf(hidden, sizeof hidden, ".partial-%.200s", name);
    return pack_path(out, folder, hidden, err);
}

int pack_take_up(const char *temporary, const char *path, struct stoker_error *err)
{
    struct stat status;
    if (lstat(temporary, &status) && (errno != ENOENT || rename(path, temporary)))
        return pack_was_changed(path, err);
    if (lstat(temporary, &status) || !S_ISREG(status.st_mode))
        return pack_was_changed(temporary, err);
    return STOKER_OK;
}

int pack_rename(const char *temporary, const char *path, struct stoker_error *err)
{
    char folder[PATH_MAX];
    if (rename(temporary, path))
        return pack_cannot_write(path, errno, err);
    /* The name must be on the disk before the manifest mentions it. Some file systems cannot do that. */
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    const int fd = st_file_open(folder, O_RDONLY | O_DIRECTORY);
    if (fd >= 0) {
        (void)st_file_sync(fd);
        close(fd);
    }
    return STOKER_OK;
}

/* Sets the names and allocates the buffer. */
static int prepare(struct pack_file *file, const char *folder, const char *name,
                   struct stoker_error *err)
{
    *file = (struct pack_file){.fd = -1};
    int rc = pack_path(file->path, folder, name, err);
    if (!rc)
        rc = pack_temporary(file->temporary, folder, name, err);
    if (rc)
        return rc;
    file->buffer = malloc(BUFFER);
    return file->buffer ? STOKER_OK : st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
}

int pack_file_open(struct pack_file *file, const char *folder, const char *name,
                   struct stoker_error *err)
{
    const int rc = prepare(file, folder, name, err);
    if (rc)
        return rc;
    /* Do not follow a link: nothing must be written outside the folder. */
    if (unlink(file->temporary) && errno != ENOENT)
        return st_fail_errno(err, errno, "%s", file->temporary);
    file->fd = st_file_open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
    return file->fd < 0 ? pack_cannot_write(file->path, errno, err) : STOKER_OK;
}

int pack_file_go_on(struct pack_file *file, const char *folder, const char *name, uint64_t size,
                    struct stoker_error *err)
{
    struct stat status;
    int rc = prepare(file, folder, name, err);
    if (!rc)
        rc = pack_take_up(file->temporary, file->path, err);
    if (rc)
        return rc;
    file->fd = st_file_open(file->temporary, O_RDWR | O_NOFOLLOW);
    if (file->fd < 0)
        return pack_cannot_write(file->path, errno, err);
    if (fstat(file->fd, &status) || (uint64_t)status.st_size < size)
        return pack_was_changed(file->temporary, err);
    if (!pack_truncate(file->fd, size) || lseek(file->fd, 0, SEEK_END) < 0)
        return pack_cannot_write(file->path, errno, err);
    file->size = size;
    return STOKER_OK;
}

static int write_out(struct pack_file *file, const uint8_t *bytes, uint64_t size,
                     struct stoker_error *err)
{
    file->crc = st_crc32c_more(file->crc, bytes, size);
    while (size) {
        const ssize_t done = write(file->fd, bytes, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return pack_cannot_write(file->path, done < 0 ? errno : ENOSPC, err);
        bytes += done;
        size -= (uint64_t)done;
    }
    return STOKER_OK;
}

static int flush(struct pack_file *file, struct stoker_error *err)
{
    const uint64_t size = file->used;
    file->used = 0;
    return write_out(file, file->buffer, size, err);
}

int pack_file_write(struct pack_file *file, const void *bytes, uint64_t size, struct stoker_error *err)
{
    if (size > BUFFER - file->used) {
        const int rc = flush(file, err);
        if (rc)
            return rc;
    }
    file->size += size;
    if (size >= BUFFER)
        return write_out(file, bytes, size, err);
    if (size)
        memcpy(file->buffer + file->used, bytes, size);
    file->used += size;
    return STOKER_OK;
}

int pack_file_zeros(struct pack_file *file, uint64_t size, struct stoker_error *err)
{
    static const uint8_t zeros[4096];
    int rc = STOKER_OK;
    while (size && !rc) {
        const uint64_t now = size < sizeof zeros ? size : sizeof zeros;
        rc = pack_file_write(file, zeros, now, err);
        size -= now;
    }
    return rc;
}

/* Computes the checksum of all bytes by reading them back from the page cache. */
static int sum_again(struct pack_file *file, struct stoker_error *err)
{
    file->crc = 0;
    for (uint64_t at = 0; at < file->size;) {
        const ssize_t got = pread(file->fd, file->buffer, BUFFER, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return st_fail_errno(err, got < 0 ? errno : EIO, "%s", file->temporary);
        file->crc = st_crc32c_more(file->crc, file->buffer, (uint64_t)got);
        at += (uint64_t)got;
    }
    return STOKER_OK;
}

int pack_file_begin_again(struct pack_file *file, const void *bytes, uint64_t size,
                          struct stoker_error *err)
{
    const int rc = flush(file, err);
    if (rc)
        return rc;
    if (!st_file_write(file->fd, 0, bytes, size))
        return pack_cannot_write(file->path, errno, err);
    return sum_again(file, err);
}

int pack_file_sync(struct pack_file *file, struct stoker_error *err)
{
    const int rc = flush(file, err);
    if (!rc && !st_file_sync(file->fd))
        return pack_cannot_write(file->path, errno, err);
    return rc;
}

int pack_file_finish(struct pack_file *file, struct stoker_error *err)
{
    int rc = pack_file_sync(file, err);
    if (rc)
        return rc;
    const int failed = close(file->fd);
    file->fd = -1;
    if (failed)
        return pack_cannot_write(file->path, errno, err);
    rc = pack_rename(file->temporary, file->path, err);
    if (!rc)
        file->temporary[0] = '\0';
    return rc;
}

void pack_file_drop(struct pack_file *file, bool leave)
{
    if (file->fd > 0)
        close(file->fd);
    if (file->temporary[0] && !leave)
        unlink(file->temporary);
    free(file->buffer);
    *file = (struct pack_file){.fd = -1};
}

int pack_file_put(const char *folder, const char *name, const void *bytes, uint64_t size,
                  struct stoker_error *err)
{
    struct pack_file file;
    int rc = pack_file_open(&file, folder, name, err);
    if (!rc)
        rc = pack_file_write(&file, bytes, size, err);
    if (!rc)
        rc = pack_file_finish(&file, err);
    pack_file_drop(&file, false);
    return rc;
}
