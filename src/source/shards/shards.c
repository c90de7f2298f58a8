/* shards.c - archives one after another: what the tar and the TFRecord source share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/shards.h"
#include "source/shards/expand.h"
#include "source/shards/keep.h"
#include "source/shards/sums.h"

#include "base/cpu.h"
#include "base/threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Archives packed as a whole are unpacked into memory, all together into no more than this part of it.
 */
enum { MEMORY_PART = 4, HEAD = 512 };
/* Who indexes waits for the disk or the server, not for the CPU. */
enum { LOCAL_THREADS = 8, REMOTE_THREADS = 16 };

struct opening {
    struct st_shards *shards;
    const struct stoker_dataset_options *opt;
    uint32_t threads; /* for one archive */
    bool hold;        /* the files, for as long as the data set lives */
    bool alone;       /* one thread is left, for archives that did not fit beside what the others had */
    const struct st_paths *paths;
    atomic_ullong next;
    pthread_mutex_t lock;
    int failed;
    uint64_t failed_at; /* the first archive of those that failed, whichever thread was faster */
    struct stoker_error err;
};

/* ---- one archive ----------------------------------------------------------------------------- */

static int scan_window(const struct opening *o, struct st_shard *shard, struct st_window *window,
                       const struct st_shard_stamp *stamp, struct stoker_error *err)
{
    const struct st_shard_kind *kind = o->shards->kind;
    struct st_shard_builder builder = {.named = kind->named};
    int rc = 0;
    if (kind->inside && !window->memory && kind->inside(window, &shard->index)) {
        st_shard_index_stamp(&shard->index, stamp);
        return 0;
    }
    if (window->memory || !st_shard_import(kind, window, &builder)) {
        st_shard_builder_free(&builder);
        builder.named = kind->named;
        rc = kind->scan(window, o->threads, &builder, err);
    }
    if (!rc)
        rc = st_shard_build(&shard->index, &builder, kind->number, stamp, err);
    st_shard_builder_free(&builder);
    return rc;
}

static int too_large(const struct st_shard *shard, enum st_packing packing, uint64_t memory,
                     struct stoker_error *err)
{
    return st_fail(
        err, STOKER_ELIMIT,
        "%.600s: packed as a whole with %s, so that its samples cannot be reached one by one, and too "
        "large to be unpacked into memory (%llu MiB for all such archives). Unpack it, or pack each "
        "member instead",
        shard->file.path, st_packing_name(packing), (unsigned long long)(memory >> 20));
}

/* Samples of a stream cannot be reached one by one: it is unpacked into memory, if it fits. */
static int unpack_shard(struct opening *o, struct st_shard *shard, enum st_packing packing,
                        struct stoker_error *err)
{
    struct st_allowance *memory = &o->shards->memory;
    const uint64_t size = shard->file.size;
    if (!st_allowance_take(memory, size))
        return too_large(shard, packing, memory->limit, err);
    uint8_t *packed = st_alloc_aligned(size);
    int rc = packed ? st_held_read(&shard->file, 0, packed, size, err)
                    : st_fail(err, STOKER_ENOMEM, "%s: out of memory", shard->file.path);
    if (!rc)
        rc = st_unpack_allowed(packing, (struct st_bytes){packed, size}, memory, &shard->unpacked,
                               shard->file.path, err);
    if (rc == STOKER_ELIMIT)
        rc = too_large(shard, packing, memory->limit, err);
    free(packed);
    st_allowance_give(memory, size);
    return rc;
}

static int index_unpacked(const struct opening *o, struct st_shard *shard, struct stoker_error *err)
{
    static const uint8_t nothing[1];
    const struct st_shard_stamp stamp = {.size = shard->unpacked.size};
    struct st_window window = {.path = shard->file.path,
                               .memory = shard->unpacked.size ? shard->unpacked.data : nothing,
                               .end = shard->unpacked.size};
    return scan_window(o, shard, &window, &stamp, err);
}

static int scan_file(const struct opening *o, struct st_shard *shard, const struct st_shard_stamp *stamp,
                     struct stoker_error *err)
{
    struct st_window window = {.path = shard->file.path, .file = &shard->file, .end = shard->file.size};
    const int rc = scan_window(o, shard, &window, stamp, err);
    st_window_free(&window);
    return rc;
}

static int index_file(const struct opening *o, struct st_shard *shard, struct stoker_error *err)
{
    char file[PATH_MAX];
    struct st_shard_stamp stamp;
    int rc = st_shard_keep_path(file, o->shards->kind, shard->file.path, o->opt, err);
    if (!rc)
        rc = st_shard_stamp_of(&shard->file, &stamp, err);
    if (rc)
        return rc;
    /* Headers lie far apart, and samples are read in any order: what is between is not to be read ahead.
     */
    if (shard->file.fd)
        posix_fadvise(shard->file.fd, 0, 0, POSIX_FADV_RANDOM);
    bool kept = st_shard_keep_load(&shard->index, file, o->shards->kind->number, &stamp);
    if (!kept) {
        rc = scan_file(o, shard, &stamp, err);
        kept = !rc && st_shard_keep_store(&shard->index, file);
    }
    if (!rc && o->shards->kind->named) {
        shard->kept = kept ? strdup(file) : NULL;
        shard->sums = st_shard_sums_new(&shard->index);
    }
    return rc;
}

static int open_shard(struct opening *o, struct st_shard *shard, const char *path,
                      struct stoker_error *err)
{
    uint8_t head[HEAD];
    int rc = st_held_open_any(&shard->file, path, o->shards->store, o->opt, err);
    const uint64_t size = shard->file.size < HEAD ? shard->file.size : HEAD;
    if (!rc)
        rc = st_held_read(&shard->file, 0, head, size, err);
    if (rc)
        return rc;
    const enum st_packing packing = o->shards->kind->packing(head, size);
    if (packing != ST_PACKED_NOT)
        rc = unpack_shard(o, shard, packing, err);
    if (!rc)
        rc = packing != ST_PACKED_NOT ? index_unpacked(o, shard, err) : index_file(o, shard, err);
    if (shard->file.fd && (!o->hold || packing != ST_PACKED_NOT)) {
        close(shard->file.fd);
        shard->file.fd = 0;
    }
    return rc;
}

static void forget_shard(struct st_shards *shards, struct st_shard *shard)
{
    st_held_close(&shard->file);
    st_allowance_give(&shards->memory, shard->unpacked.capacity);
    st_buffer_free(&shard->unpacked);
    st_shard_sums_close(shard->sums, &shard->index, shard->kept);
    shard->sums = NULL;
    st_shard_index_free(&shard->index);
    free(shard->kept);
    shard->kept = NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void open_worker(void *context)
{
    struct opening *o = context;
    uint64_t i;
    while ((i = atomic_fetch_add(&o->next, 1)) < o->shards->count) {
        struct stoker_error err;
        struct st_shard *shard = &o->shards->items[i];
        if (o->alone && !shard->late)
            continue;
        const int rc = open_shard(o, shard, o->paths->items[i], &err);
        shard->late = rc == STOKER_ELIMIT && !o->alone;
        if (shard->late) {
            forget_shard(o->shards, shard);
            continue;
        }
        pthread_mutex_lock(&o->lock);
        if (rc && (!o->failed || i < o->failed_at)) {
            o->failed = rc;
            o->failed_at = i;
            o->err = err;
            atomic_store(&o->next, o->shards->count); /* what comes later does not matter any more */
        }
        pthread_mutex_unlock(&o->lock);
    }
}

/* The reader takes a data set to be in memory or in files, not in both. */
static int check_mixture(const struct st_shards *shards, struct stoker_error *err)
{
    for (uint64_t i = 1; i < shards->count; i++)
        if (!shards->items[i].unpacked.data != !shards->items[0].unpacked.data)
            return st_fail(
                err, STOKER_EUNSUPPORTED,
                "%.400s and %.400s: one is packed as a whole and the other is not; open them as two "
                "data sets, or unpack the one",
                shards->items[0].file.path, shards->items[i].file.path);
    return 0;
}

static bool may_hold(uint64_t count)
{
    struct rlimit files;
    return !getrlimit(RLIMIT_NOFILE, &files) && count <= files.rlim_cur / 4;
}

static int open_all(struct st_shards *shards, const struct st_paths *paths,
                    const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct opening o = {.shards = shards,
                        .opt = opt,
                        .paths = paths,
                        .hold = may_hold(paths->count),
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    const uint64_t least = shards->store ? REMOTE_THREADS : LOCAL_THREADS;
    uint64_t threads = opt->threads ? opt->threads : st_cpu_count();
    if (!opt->threads && threads < least)
        threads = least;
    o.threads = (uint32_t)((threads + paths->count - 1) / paths->count);
    if (threads > paths->count)
        threads = paths->count;
    shards->count = paths->count;
    shards->memory.limit = opt->max_memory ? opt->max_memory : st_memory_limit() / MEMORY_PART;
    st_threads_run((uint32_t)threads, open_worker, &o);
    if (!o.failed) {
        o.alone = true;
        atomic_store(&o.next, 0);
        open_worker(&o);
    }
    pthread_mutex_destroy(&o.lock);
    if (o.failed && err)
        *err = o.err;
    return o.failed;
}

int st_shards_open(struct st_shards *shards, const struct st_shard_kind *kind, const char *pattern,
                   const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct st_paths paths = {0};
    shards->kind = kind;
    int rc = st_expand(&paths, pattern, err);
    for (uint64_t i = 0; !rc && i < paths.count && !shards->store; i++)
        if (st_remote_is_url(paths.items[i]))
            rc = st_remote_store_open(&shards->store, opt, err);
    if (!rc) {
        shards->items = st_calloc(paths.count, sizeof *shards->items);
        rc = shards->items ? open_all(shards, &paths, opt, err)
                           : st_fail(err, STOKER_ENOMEM, "out of memory");
    }
    st_paths_free(&paths);
    if (!rc)
        rc = check_mixture(shards, err);
    if (rc)
        return rc;
    for (uint64_t i = 0; i < shards->count; i++) {
        shards->items[i].first = shards->sample_count;
        shards->sample_count += shards->items[i].index.sample_count;
    }
    if (!shards->sample_count && !opt->allow_empty)
        return st_fail(err, STOKER_EINVAL, "%.700s: no sample in it", pattern);
    return 0;
}

void st_shards_close(struct st_shards *shards)
{
    for (uint64_t i = 0; shards->items && i < shards->count; i++)
        forget_shard(shards, &shards->items[i]);
    st_remote_store_drop(shards->store);
    free(shards->items);
    *shards = (struct st_shards){0};
}

const char *st_shards_note(const struct st_shards *shards)
{
    return shards->store ? st_remote_store_note(shards->store) : NULL;
}

uint64_t st_shards_memory(const struct st_shards *shards) { return atomic_load(&shards->memory.used); }

bool st_shard_is_folder(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

const struct st_shard *st_shards_find(const struct st_shards *shards, uint64_t sample, uint64_t *local)
{
    uint64_t low = 0, high = shards->count; /* the last that begins at or before the sample */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (shards->items[middle].first <= sample)
            low = middle;
        else
            high = middle;
    }
    *local = sample - shards->items[low].first;
    return &shards->items[low];
}

int st_shard_locate(const struct st_shards *shards, const struct st_shard *shard, uint64_t start,
                    uint64_t end, struct st_extent *out, struct stoker_error *err)
{
    const uint64_t size = shard->index.stamp.size;
    if (end == ST_SHARD_LOST)
        return st_fail(err, STOKER_ECORRUPT,
                       "%s: byte %llu: the %s is damaged here, and what follows cannot be found",
                       shard->file.path, (unsigned long long)start, shards->kind->name);
    if (end > size)
        return st_fail(
            err, STOKER_ECORRUPT,
            "%s: byte %llu: a sample of %llu bytes, of which the %s has only %llu: it was cut off, or "
            "states a wrong size",
            shard->file.path, (unsigned long long)start, (unsigned long long)(end - start),
            shards->kind->name, (unsigned long long)(size - start));
    st_held_extent(&shard->file, start, end - start, out);
    if (shard->unpacked.data)
        out->memory = shard->unpacked.data + start;
    return 0;
}
