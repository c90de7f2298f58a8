/* blocks.c - the files of the cache: a header with checksums, then the bytes of a block
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/checksum/crc32c.h"
#include "source/remote/cache_inside.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC  0x6b6c62656863746bull
#define PIECE  65536u
#define PIECES (ST_CACHE_BLOCK / PIECE)

struct block_head {
    uint64_t magic, object, number;
    uint32_t size, crc; /* crc is that of this header with crc = 0 */
    uint32_t pieces[PIECES];
};

static uint32_t block_size(const struct st_cached *object, uint64_t block)
{
    const uint64_t left = object->size - block * ST_CACHE_BLOCK;
    return left < ST_CACHE_BLOCK ? (uint32_t)left : ST_CACHE_BLOCK;
}

static uint32_t sum_head(const struct block_head *head)
{
    struct block_head bare = *head;
    bare.crc = 0;
    return st_crc32c(&bare, sizeof bare);
}

/* Reads and verifies the pieces that contain the range, and copies the range out. */
static bool read_pieces(int fd, const char *path, const struct block_head *head, uint32_t from,
                        uint32_t size, void *into)
{
    const uint32_t first = from / PIECE, begin = first * PIECE, last = (from + size - 1) / PIECE;
    const uint32_t end = (last + 1) * PIECE < head->size ? (last + 1) * PIECE : head->size;
    uint8_t *bytes = st_alloc_aligned(end - begin);
    bool good = bytes && !st_file_read(fd, path, ST_BLOCK_HEAD + begin, bytes, end - begin, NULL);
    for (uint32_t i = first; good && i <= last; i++) {
        const uint32_t at = i * PIECE, length = end - at < PIECE ? end - at : PIECE;
        good = st_crc32c(bytes + (at - begin), length) == head->pieces[i];
    }
    if (good)
        memcpy(into, bytes + (from - begin), size);
    free(bytes);
    return good;
}

static void block_path(const struct st_cached *object, uint64_t block, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.*s/%llu", PATH_MAX - 32, object->folder,
             (unsigned long long)(object->first + block));
}

bool st_cached_get(struct st_cached *object, uint64_t block, uint32_t from, uint32_t size, void *into)
{
    char path[PATH_MAX];
    struct block_head head;
    struct stat info;
    block_path(object, block, path);
    const int fd = st_file_open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return false;
    const bool good = !st_file_read(fd, path, 0, &head, sizeof head, NULL) && head.magic == MAGIC &&
                      head.object == object->number && head.number == object->first + block &&
                      head.size == block_size(object, block) && head.crc == sum_head(&head) &&
                      from + size <= head.size && read_pieces(fd, path, &head, from, size, into);
    if (!good && !fstat(fd, &info) && !unlink(path))
        st_cache_give_back(object->cache, (uint64_t)info.st_size);
    close(fd);
    return good;
}

static bool write_block(const struct st_cached *object, const char *path, uint64_t block,
                        const void *bytes, uint32_t size)
{
    union {
        struct block_head head;
        uint8_t bytes[ST_BLOCK_HEAD];
    } front = {
        .head = {
            .magic = MAGIC, .object = object->number, .number = object->first + block, .size = size}};
    for (uint32_t at = 0; at < size; at += PIECE)
        front.head.pieces[at / PIECE] =
            st_crc32c((const uint8_t *)bytes + at, size - at < PIECE ? size - at : PIECE);
    front.head.crc = sum_head(&front.head);
    const int fd = st_file_open(path, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0)
        return false;
    const bool written = st_file_write(fd, 0, front.bytes, ST_BLOCK_HEAD) &&
                         st_file_write(fd, ST_BLOCK_HEAD, bytes, size);
    const int errnum = errno;
    const bool closed = !close(fd);
    if (!written)
        errno = errnum;
    return written && closed;
}

/* Gives the whole block its name. Not every file system has links (vfat, many of FUSE, SMB); there the
 * file is renamed. If another process has done so since, its block is replaced by an equal one, which is
 * whole as well. Returns whether the block is there, and `*mine` whether it is this one. */
static bool publish(const char *temporary, const char *path, bool *mine)
{
    *mine = !link(temporary, path);
    if (*mine || errno == EEXIST)
        return true;
    if (!access(path, F_OK))
        return true;
    *mine = !rename(temporary, path);
    return *mine;
}

void st_cached_put(struct st_cached *object, uint64_t block, const void *bytes, uint32_t size)
{
    struct st_cache *cache = object->cache;
    char path[PATH_MAX], temporary[PATH_MAX];
    bool kept = false;
    block_path(object, block, path);
    snprintf(temporary, sizeof temporary, "%.*s/t%ld.%llu.%llu", PATH_MAX - 100, object->folder,
             (long)getpid(), (unsigned long long)(object->first + block),
             (unsigned long long)st_now_ns());
    if (bytes &&
        !(write_block(object, temporary, block, bytes, size) && publish(temporary, path, &kept))) {
        atomic_store(&cache->note,
                     errno == ENOSPC || errno == EDQUOT
                         ? "the disk of cache_dir is full: nothing more is cached"
                         : "cache_dir cannot be written: nothing more is cached");
        atomic_store(&cache->broken, true);
    }
    if (bytes)
        unlink(temporary);
    if (!kept)
        st_cache_give_back(cache, size + ST_BLOCK_HEAD);
}
