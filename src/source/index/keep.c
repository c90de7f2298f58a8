/* keep.c - an index saved to a file, and reused as long as the tree has not changed
 *
 * Adding, removing or renaming an entry changes its folder's times, so checking each folder is enough.
 * Two changes go unnoticed, and do no harm: a file's bytes change (the index says nothing about them),
 * or the target of a link to a file becomes a folder (reading that sample then fails with an error).
 * Dangling links are checked too, because they may later point to a folder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/index/keep.h"
#include "base/threads.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t st_keep_hash(uint64_t hash, const void *bytes, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

int st_keep_file(char out[PATH_MAX], const char *directory, uint64_t hash, const char *ending,
                 struct stoker_error *err)
{
    struct stat info;
    if (stat(directory, &info) &&
        (errno != ENOENT || (mkdir(directory, 0777) && errno != EEXIST) || stat(directory, &info)))
        return st_fail_errno(err, errno, "index_dir: cannot save the index in %s", directory);
    if (!S_ISDIR(info.st_mode))
        return st_fail(err, STOKER_EINVAL, "index_dir: cannot save the index in %s: not a folder",
                       directory);
    const int size =
        snprintf(out, PATH_MAX, "%s/%016llx.%s", directory, (unsigned long long)hash, ending);
    if (size < 0 || size >= PATH_MAX)
        return st_fail(err, STOKER_EINVAL,
                       "index_dir: cannot save the index in %.200s...: path too long", directory);
    return 0;
}

int st_keep_path(char out[PATH_MAX], const char *directory, const void *key, uint64_t key_size,
                 struct stoker_error *err)
{
    return st_keep_file(out, directory, st_keep_hash(ST_KEEP_HASH, key, key_size), "stoker-index", err);
}

/* ---- loading ----------------------------------------------------------------------------------- */

uint8_t *st_keep_read(const char *file, uint64_t *size)
{
    struct stat info;
    struct st_index_header header;
    uint8_t *bytes = NULL;
    const int fd = st_file_open(file, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    /* The header is checked before memory of the size it states is allocated. */
    if (!fstat(fd, &info) && S_ISREG(info.st_mode) &&
        !st_file_read(fd, file, 0, &header, sizeof header, NULL) &&
        header.size == (uint64_t)info.st_size && (bytes = st_alloc_aligned(header.size)) != NULL) {
        memcpy(bytes, &header, sizeof header);
        *size = header.size;
        if (st_file_read(fd, file, sizeof header, bytes + sizeof header, header.size - sizeof header,
                         NULL)) {
            free(bytes);
            bytes = NULL;
        }
    }
    close(fd);
    return bytes;
}

struct check {
    const struct st_index *index;
    const char *prefix;
    atomic_ullong next;
    atomic_bool changed;
};

static bool is_unchanged(const char *prefix, const struct st_index *index, uint64_t dir)
{
    const struct st_stamp *was = &index->dirs[dir].stamp;
    const bool absent = !was->device && !was->inode && !was->modified_ns && !was->changed_ns;
    char path[PATH_MAX];
    struct stat info;
    if (!st_path_join(path, prefix, index->text + index->dirs[dir].path, ""))
        return absent;
    if (stat(path, &info) || !S_ISDIR(info.st_mode))
        return absent;
    const struct st_stamp is = st_stamp_of(&info);
    return is.device == was->device && is.inode == was->inode && is.modified_ns == was->modified_ns &&
           is.changed_ns == was->changed_ns;
}

enum { CHECK_STEP = 64 };

static void check_dirs(void *context)
{
    struct check *check = context;
    const uint64_t count = check->index->dir_count;
    uint64_t from;
    while (!atomic_load(&check->changed) && (from = atomic_fetch_add(&check->next, CHECK_STEP)) < count)
        for (uint64_t i = from; i < count && i < from + CHECK_STEP; i++)
            if (!is_unchanged(check->prefix, check->index, i))
                atomic_store(&check->changed, true);
}

bool st_keep_load(struct st_index *out, const char *file, const void *key, uint64_t key_size,
                  const char *prefix, uint32_t threads)
{
    struct st_index index;
    uint64_t size;
    uint8_t *bytes = st_keep_read(file, &size);
    if (!bytes)
        return false;
    if (!st_index_load(&index, bytes, size)) {
        free(bytes);
        return false;
    }
    struct check check = {.index = &index, .prefix = prefix};
    bool good = index.key_size == key_size && !memcmp(index.key, key, key_size);
    if (good) {
        const uint64_t useful = index.dir_count / CHECK_STEP + 1;
        st_threads_run(useful < threads ? (uint32_t)useful : threads, check_dirs, &check);
        good = !atomic_load(&check.changed);
    }
    if (good)
        *out = index;
    else
        free(bytes);
    return good;
}

/* ---- storing ----------------------------------------------------------------------------------- */

static bool settled(const struct st_index *index, int64_t scan_began_ns)
{
    const int64_t latest = scan_began_ns - ST_KEEP_SETTLED_NS;
    for (uint64_t i = 0; i < index->dir_count; i++)
        if (index->dirs[i].stamp.modified_ns >= latest || index->dirs[i].stamp.changed_ns >= latest)
            return false;
    return true;
}

bool st_keep_replace(const char *file, const void *bytes, uint64_t size, bool durable)
{
    char temporary[PATH_MAX + 48];
    snprintf(temporary, sizeof temporary, "%s.%ld.%llu", file, (long)getpid(),
             (unsigned long long)st_now_ns());
    const int fd = st_file_open(temporary, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return false;
    const bool written = st_file_write(fd, 0, bytes, size) && !(durable && !st_file_sync(fd));
    if (!close(fd) && written && !rename(temporary, file))
        return true;
    unlink(temporary);
    return false;
}

void st_keep_store(struct st_index *index, const char *file, int64_t scan_began_ns)
{
    if (!settled(index, scan_began_ns))
        return;
    st_index_seal(index->bytes, index->size);
    st_keep_replace(file, index->bytes, index->size, true);
}
