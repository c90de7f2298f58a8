/* fetch.c - reads one sample synchronously
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/reader/reader.h"
#include "base/text.h"
#include "base/file.h"
#include "source/remote/remote.h"
#include "source/reader/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int too_large(const char *path, struct stoker_error *err)
{
    return st_fail(err, STOKER_ELIMIT, "%s: exceeds the limit of 4 GiB for a sample", path);
}

/* Reads up to `wanted` bytes at `offset`, or to the end of the file. */
static int read_range(int fd, uint64_t offset, uint64_t wanted, uint64_t size_hint, const char *path,
                      struct st_buffer *buffer, struct stoker_error *err)
{
    uint64_t used = 0, room = wanted < size_hint ? wanted : size_hint;
    while (used < wanted) {
        if (used >= room)
            room = used + used / 2 + 4096; /* the file is longer than fstat reported */
        if (room > ST_SAMPLE_MAX)
            return too_large(path, err);
        buffer->size = used;
        if (!st_buffer_keep(buffer, room))
            return st_fail(err, STOKER_ENOMEM, "%s: out of memory for %llu bytes", path,
                           (unsigned long long)room);
        const uint64_t free_room = buffer->capacity - used, left = wanted - used;
        const ssize_t got =
            pread(fd, buffer->data + used, free_room < left ? free_room : left, (off_t)(offset + used));
        if (got < 0 && errno != EINTR)
            return st_fail_errno(err, errno, "%s", path);
        if (got == 0)
            break;
        used += got > 0 ? (uint64_t)got : 0;
        if (used == size_hint && size_hint)
            break; /* the size that fstat reported: no need to check for the end */
    }
    buffer->size = used;
    return 0;
}

static int read_extent(int fd, const struct st_extent *extent, struct st_buffer *buffer,
                       struct stoker_error *err)
{
    struct stat info;
    if (fstat(fd, &info))
        return st_fail_errno(err, errno, "%s", extent->path);
    if (S_ISDIR(info.st_mode))
        return st_fail_errno(err, EISDIR, "%s", extent->path);
    if (!S_ISREG(info.st_mode))
        return st_fail(err, STOKER_EIO, "%s: not a regular file", extent->path);
    const uint64_t size = (uint64_t)info.st_size;
    const uint64_t left = extent->offset < size ? size - extent->offset : 0;
    const int rc = read_range(fd, extent->offset, extent->length, left, extent->path, buffer, err);
    if (!rc && extent->length != ST_WHOLE_FILE && buffer->size < extent->length)
        return st_fail(err, STOKER_EIO,
                       "%s: ends %llu byte%s before the end of the sample: it is truncated",
                       extent->path, (unsigned long long)(extent->length - buffer->size),
                       st_s(extent->length - buffer->size));
    return rc;
}

static int fetch_remote(const struct st_extent *extent, struct st_buffer *buffer,
                        struct stoker_error *err)
{
    const uint64_t all = st_remote_size(extent->remote);
    const uint64_t size = extent->length != ST_WHOLE_FILE ? extent->length
                          : extent->offset < all          ? all - extent->offset
                                                          : 0;
    if (size > ST_SAMPLE_MAX)
        return too_large(extent->path, err);
    if (!st_buffer_reserve(buffer, size))
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory for %llu bytes", extent->path,
                       (unsigned long long)size);
    const int rc =
        st_remote_read(extent->remote, extent->offset, buffer->data, size, extent->cancel, err);
    buffer->size = rc ? 0 : size;
    return rc;
}

int st_fetch(const struct st_extent *extent, struct st_buffer *buffer, struct stoker_error *err)
{
    buffer->size = 0;
    if (extent->objects)
        return st_remote_set_read(extent->objects, extent->offset, extent->path, ST_SAMPLE_MAX,
                                  extent->cancel, buffer, err);
    if (extent->remote)
        return fetch_remote(extent, buffer, err);
    if (extent->fd)
        return read_extent(extent->fd, extent, buffer, err);
    /* O_NONBLOCK: opening a pipe would block forever */
    const int fd = st_file_open(extent->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return st_fail_errno(err, errno, "%s", extent->path);
    const int rc = read_extent(fd, extent, buffer, err);
    close(fd);
    return rc;
}

int st_locate(const struct stoker_dataset *data, uint64_t sample, struct st_extent *out,
              struct stoker_error *err)
{
    const uint64_t count = st_dataset_count(data);
    if (sample >= count)
        return st_fail(err, STOKER_EINVAL, "sample %llu: out of range, the dataset has %llu sample%s",
                       (unsigned long long)sample, (unsigned long long)count, st_s(count));
    out->fd = 0;
    out->remote = NULL;
    out->objects = NULL;
    out->cancel = NULL;
    return data->source->locate ? data->source->locate(data->self, sample, out, err) : 0;
}

int st_read_sample(struct stoker_dataset *data, uint64_t sample, struct st_buffer *buffer,
                   struct st_bytes *out, struct stoker_error *err)
{
    return st_read_until(data, sample, NULL, buffer, out, err);
}

int st_read_until(struct stoker_dataset *data, uint64_t sample, const atomic_bool *cancel,
                  struct st_buffer *buffer, struct st_bytes *out, struct stoker_error *err)
{
    struct st_extent extent;
    int rc = st_locate(data, sample, &extent, err);
    extent.cancel = cancel;
    if (buffer)
        buffer->refused = 0;
    if (!rc && data->source->locate && extent.memory) {
        *out = (struct st_bytes){extent.memory, extent.length};
        return 0;
    }
    if (!rc)
        rc = data->source->locate ? st_fetch(&extent, buffer, err)
                                  : data->source->read(data->self, sample, buffer, err);
    if (!rc)
        *out = (struct st_bytes){buffer->data, buffer->size};
    return rc;
}
