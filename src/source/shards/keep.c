/* keep.c - an archive's index saved to a file, and reused as long as the archive has not changed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/keep.h"
#include "source/checksum/crc32c.h"
#include "source/index/keep.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* The stamp covers this many pieces of the archive's content, evenly spaced and including both ends. */
enum { PIECES = 8, PIECE = 4096 };
/* Larger indexes of other programs are ignored. */
#define IMPORT_MAX (1ull << 30)

int st_shard_keep_path(char out[PATH_MAX], const struct st_shard_kind *kind, const char *archive,
                       const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    const bool remote = st_remote_is_url(archive);
    const char *folder = opt->index_dir ? opt->index_dir : remote ? opt->cache_dir : NULL;
    out[0] = '\0';
    if (folder) {
        char key[PATH_MAX + 32], place[PATH_MAX];
        if (!remote && !realpath(archive, place))
            return st_fail_errno(err, errno, "%s", archive);
        const int size = snprintf(key, sizeof key, "%s:%s", kind->name, remote ? archive : place);
        return st_keep_path(out, folder, key, (uint64_t)size, err);
    }
    if (remote)
        return 0; /* there is no folder next to it */
    if (snprintf(out, PATH_MAX, "%s.stoker-index", archive) >= PATH_MAX)
        out[0] = '\0'; /* the path is too long: the index is not saved */
    return 0;
}

/* Uses the object's version on the server. If the server reports nothing that would change with the
 * object, the time is one that never settles, so that the index is not saved. */
static int stamp_remote(const struct st_held *archive, struct st_shard_stamp *out)
{
    uint32_t sum;
    int64_t modified_ns;
    const bool known = st_remote_version(archive->remote, &sum, &modified_ns);
    *out = (struct st_shard_stamp){
        .size = archive->size, .sampled = sum, .modified_ns = known ? modified_ns : INT64_MAX};
    return 0;
}

int st_shard_stamp_of(const struct st_held *archive, struct st_shard_stamp *out,
                      struct stoker_error *err)
{
    struct stat info;
    uint8_t piece[PIECE];
    uint32_t crc = 0;
    if (archive->remote)
        return stamp_remote(archive, out);
    if (fstat(archive->fd, &info))
        return st_fail_errno(err, errno, "%s", archive->path);
    const uint64_t size = archive->size, last = size > PIECE ? size - PIECE : 0;
    for (uint64_t i = 0, before = UINT64_MAX; i < PIECES; i++) {
        const uint64_t at = last / (PIECES - 1) * i + (i == PIECES - 1 ? last % (PIECES - 1) : 0);
        if (at == before)
            continue;
        before = at;
        const uint64_t here = size - at < PIECE ? size - at : PIECE;
        const int rc = st_held_read(archive, at, piece, here, err);
        if (rc)
            return rc;
        crc = st_crc32c_more(crc, piece, here);
    }
    *out = (struct st_shard_stamp){.size = size,
                                   .sampled = crc,
                                   .modified_ns =
                                       (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec};
    return 0;
}

bool st_shard_keep_load(struct st_shard_index *out, const char *file, uint64_t kind,
                        const struct st_shard_stamp *stamp)
{
    struct st_shard_index index;
    uint64_t size;
    uint8_t *bytes = st_keep_read(file, &size);
    if (!bytes)
        return false;
    if (!st_shard_index_load(&index, bytes, size, kind) || memcmp(&index.stamp, stamp, sizeof *stamp)) {
        free(bytes);
        return false;
    }
    *out = index;
    return true;
}

bool st_shard_keep_store(struct st_shard_index *index, const char *file)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (index->stamp.modified_ns > now_ns - ST_KEEP_SETTLED_NS || !file[0])
        return false;
    uint8_t *bytes = (uint8_t *)(uintptr_t)index->bytes; /* just built, and not shared yet */
    st_index_seal(bytes, index->size);
    return st_keep_replace(file, bytes, index->size, false); /* a torn write is caught by the checksum */
}

/* ---- other programs' indexes ----------------------------------------------------------------- */

/* Reads PATH.idx, or PATH with its extension replaced by .idx; not if it is older than the archive. */
static bool read_import(const struct st_shard_kind *kind, const char *archive, struct st_buffer *into)
{
    char path[PATH_MAX];
    struct stat info, own;
    struct st_held file = {0};
    const size_t size = strlen(archive), tail = strlen(kind->extension);
    const bool extended = size > tail && !strcmp(archive + size - tail, kind->extension);
    if (stat(archive, &own) || size + 5 > sizeof path)
        return false;
    snprintf(path, sizeof path, "%s.idx", archive);
    if (stat(path, &info) && extended)
        snprintf(path + size - tail, sizeof path - (size - tail), ".idx");
    bool good = !stat(path, &info) && info.st_mtime >= own.st_mtime &&
                !st_held_open(&file, path, NULL) && file.size <= IMPORT_MAX &&
                st_buffer_reserve(into, file.size) &&
                !st_held_read(&file, 0, into->data, file.size, NULL);
    into->size = good ? file.size : 0;
    st_held_close(&file);
    return good;
}

bool st_shard_import(const struct st_shard_kind *kind, struct st_window *window,
                     struct st_shard_builder *into)
{
    struct st_buffer text = {0};
    const bool taken = read_import(kind, window->path, &text) &&
                       kind->import(window, (struct st_bytes){text.data, text.size}, into);
    st_buffer_free(&text);
    return taken;
}
