/* held.c - a file that a source keeps open for its lifetime
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/held.h"

#include "base/cpu.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* In an extent, fd 0 means "none", so a file must not reuse the descriptor of a closed standard stream.
 * */
static int above_standard(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    const int higher = fcntl(fd, F_DUPFD_CLOEXEC, 3), errnum = errno;
    close(fd);
    errno = errnum;
    return higher;
}

static int open_above_standard(const char *path)
{
    /* O_NONBLOCK: opening a pipe would block forever */
    return above_standard(st_file_open(path, O_RDONLY | O_NONBLOCK));
}

int st_held_open(struct st_held *file, const char *path, struct stoker_error *err)
{
    struct stat info;
    *file = (struct st_held){0};
    if (st_remote_is_url(path))
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "%.700s: this kind of dataset can only be read from local files; download it first", path);
    if (strlen(path) >= PATH_MAX)
        return st_fail_errno(err, ENAMETOOLONG, "%.200s...", path);
    file->path = strdup(path);
    if (!file->path)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", path);
    const int fd = open_above_standard(path);
    if (fd < 0)
        return st_fail_errno(err, errno, "%s", path);
    file->fd = fd;
    if (fstat(fd, &info))
        return st_fail_errno(err, errno, "%s", path);
    if (S_ISDIR(info.st_mode))
        return st_fail_errno(err, EISDIR, "%s", path);
    if (!S_ISREG(info.st_mode))
        return st_fail(err, STOKER_EIO, "%s: not a regular file", path);
    file->size = (uint64_t)info.st_size;
    return 0;
}

static int open_remote(struct st_held *file, const char *url, struct st_remote_store *store,
                       struct stoker_error *err)
{
    const int rc = st_remote_open(&file->remote, store, url, err);
    if (rc)
        return rc;
    const char *name = st_remote_name(file->remote);
    if (strlen(name) >= PATH_MAX)
        return st_fail_errno(err, ENAMETOOLONG, "%.200s...", name);
    file->path = strdup(name);
    file->size = st_remote_size(file->remote);
    return file->path ? 0 : st_fail(err, STOKER_ENOMEM, "%s: out of memory", name);
}

int st_held_open_any(struct st_held *file, const char *path, struct st_remote_store *store,
                     const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    if (!st_remote_is_url(path))
        return st_held_open(file, path, err);
    struct st_remote_store *own = NULL;
    *file = (struct st_held){0};
    int rc = store ? 0 : st_remote_store_open(&own, opt, err);
    if (!rc)
        rc = open_remote(file, path, store ? store : own, err);
    st_remote_store_drop(own); /* the object has its own reference */
    return rc;
}

static int copy_all(const struct st_held *from, int fd, struct stoker_error *err)
{
    const uint64_t step = 4u << 20;
    uint8_t *bytes = st_alloc_aligned(step);
    int rc = bytes ? 0 : st_fail(err, STOKER_ENOMEM, "%s: out of memory", from->path);
    for (uint64_t at = 0, size; !rc && at < from->size; at += size) {
        size = from->size - at < step ? from->size - at : step;
        rc = st_remote_read(from->remote, at, bytes, size, NULL, err);
        if (!rc && !st_file_write(fd, at, bytes, size))
            rc = st_fail_errno(err, errno, "%s: cannot copy it to a local file", from->path);
    }
    free(bytes);
    return rc;
}

/* `path` ends in XXXXXX, which are replaced. */
static int open_temporary(char *path)
{
    int fd;
    do {
        memset(path + strlen(path) - 6, 'X', 6);
        fd = mkostemp(path, O_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    return above_standard(fd);
}

int st_held_open_copy(struct st_held *file, const char *path, const struct stoker_dataset_options *opt,
                      struct stoker_error *err)
{
    int rc = st_held_open_any(file, path, NULL, opt, err);
    if (rc || !file->remote)
        return rc;
    const char *folder = opt && opt->cache_dir ? opt->cache_dir : getenv("TMPDIR");
    if (asprintf(&file->copy, "%s/stoker-XXXXXX", folder && *folder ? folder : "/tmp") < 0) {
        file->copy = NULL;
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", file->path);
    }
    const int fd = open_temporary(file->copy);
    if (fd < 0)
        return st_fail_errno(err, errno, "%s: cannot copy it to %s", file->path, file->copy);
    file->fd = fd;
    rc = copy_all(file, fd, err);
    st_remote_close(file->remote);
    file->remote = NULL;
    return rc;
}

void st_held_unlink(struct st_held *file)
{
    if (file->copy)
        unlink(file->copy);
    free(file->copy);
    file->copy = NULL;
}

int st_held_read(const struct st_held *file, uint64_t offset, void *into, uint64_t size,
                 struct stoker_error *err)
{
    return file->remote ? st_remote_read(file->remote, offset, into, size, NULL, err)
                        : st_file_read(file->fd, file->path, offset, into, size, err);
}

static int map_remote(struct st_held *file, struct stoker_error *err)
{
    enum { MEMORY_PART = 4 };
    if (file->size > st_memory_limit() / MEMORY_PART)
        return st_fail(err, STOKER_ELIMIT,
                       "%s: at %llu bytes it is too large to load into memory; download it first",
                       file->path, (unsigned long long)file->size);
    void *map = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return st_fail_errno(err, errno, "%s: cannot load it into memory", file->path);
    file->map = map;
    return st_remote_read(file->remote, 0, map, file->size, NULL, err);
}

int st_held_map(struct st_held *file, struct stoker_error *err)
{
    if (file->remote)
        return map_remote(file, err);
    void *map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, file->fd, 0);
    if (map == MAP_FAILED)
        return st_fail_errno(err, errno, "%s: cannot map it into memory", file->path);
    file->map = map;
    return 0;
}

int st_held_check(const struct st_held *file, uint64_t end, struct stoker_error *err)
{
    struct stat info;
    if (file->remote)
        return 0;
    if (fstat(file->fd, &info))
        return st_fail_errno(err, errno, "%s", file->path);
    if ((uint64_t)info.st_size < end)
        return st_fail(err, STOKER_EIO, "%s: was truncated while open: %llu of %llu bytes are left",
                       file->path, (unsigned long long)info.st_size, (unsigned long long)file->size);
    return 0;
}

void st_held_extent(const struct st_held *file, uint64_t offset, uint64_t length, struct st_extent *out)
{
    out->memory = NULL;
    out->fd = file->fd;
    out->remote = file->remote;
    out->offset = offset;
    out->length = length;
    memcpy(out->path, file->path, strlen(file->path) + 1);
}

void st_held_close(struct st_held *file)
{
    if (file->map)
        munmap(file->map, file->size);
    if (file->fd)
        close(file->fd);
    st_remote_close(file->remote);
    st_held_unlink(file);
    free(file->path);
    *file = (struct st_held){0};
}
