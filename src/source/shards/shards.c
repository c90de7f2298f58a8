/* shards.c - a sequence of archives: shared by the tar and TFRecord sources
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/shards.h"
#include "source/shards/expand.h"
#include "source/shards/keep.h"
#include "source/shards/list.h"
#include "source/shards/sums.h"

#include "base/cpu.h"
#include "base/text.h"
#include "base/threads.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Archives that are compressed as a whole are decompressed into memory, all together into at most this
 * fraction of it. */
enum { MEMORY_PART = 4, HEAD = 512 };
/* Indexing waits for the disk or the server, not for the CPU. */
enum { LOCAL_THREADS = 8, REMOTE_THREADS = 16 };
/* If there are many archives, at most this many are kept open. */
enum { FILES_MAX = 4096 };

struct opening {
    struct st_shards *shards;
    const struct stoker_dataset_options *opt;
    uint32_t threads; /* per archive */
    bool hold;        /* keep the files open for the lifetime of the dataset */
    bool alone; /* second pass, one thread: archives that did not fit while others were in memory */
    const struct st_paths *paths;
    bool many;                        /* their indexes are joined in a list */
    const struct st_shard_list *list; /* from an earlier process; NULL: none */
    atomic_ullong next, listed;
    pthread_mutex_t lock;
    int failed;
    uint64_t failed_at; /* the lowest number that failed, so that the error does not depend on timing */
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
        "%.600s: compressed as a whole with %s, which does not allow random access, and too large to "
        "decompress into memory (limit: %llu MiB for all such archives). Decompress it, or compress "
        "each member instead",
        shard->file.path, st_packing_name(packing), (unsigned long long)(memory >> 20));
}

/* A compressed stream does not allow random access: it is decompressed into memory, if it fits. */
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
    /* Headers are far apart and samples are read in any order, so readahead would waste bandwidth. */
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

/* Takes the archive's index from the list, at the cost of one stat. */
static bool open_listed(struct opening *o, struct st_shard *shard, const char *path)
{
    struct stat info;
    if (stat(path, &info) || !S_ISREG(info.st_mode))
        return false;
    if (!st_shard_file_id(&shard->file_id, &info))
        shard->file_id.changed_ns = INT64_MIN;
    if (!o->list || !st_shard_list_find(o->list, &info, &shard->index))
        return false;
    shard->file = (struct st_held){.size = (uint64_t)info.st_size, .path = strdup(path)};
    if (!shard->file.path) {
        shard->index = (struct st_shard_index){0};
        return false;
    }
    if (o->shards->kind->named)
        shard->sums = st_shard_sums_new(&shard->index);
    atomic_fetch_add(&o->listed, 1);
    return true;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void open_worker(void *context)
{
    struct opening *o = context;
    uint64_t i;
    while ((i = atomic_fetch_add(&o->next, 1)) < o->shards->count) {
        struct stoker_error err;
        struct st_shard *shard = &o->shards->items[i];
        if (o->alone && !shard->deferred)
            continue;
        const char *path = o->paths->items[i];
        const int rc = o->many && open_listed(o, shard, path) ? 0 : open_shard(o, shard, path, &err);
        shard->deferred = rc == STOKER_ELIMIT && !o->alone;
        if (shard->deferred) {
            forget_shard(o->shards, shard);
            continue;
        }
        pthread_mutex_lock(&o->lock);
        if (rc && (!o->failed || i < o->failed_at)) {
            o->failed = rc;
            o->failed_at = i;
            o->err = err;
            atomic_store(&o->next, o->shards->count); /* skip the rest */
        }
        pthread_mutex_unlock(&o->lock);
    }
}

/* The reader expects a dataset to be either in memory or in files. */
static int check_mixture(const struct st_shards *shards, struct stoker_error *err)
{
    for (uint64_t i = 1; i < shards->count; i++)
        if (!shards->items[i].unpacked.data != !shards->items[0].unpacked.data)
            return st_fail(
                err, STOKER_EUNSUPPORTED,
                "%.400s and %.400s: one is compressed as a whole and the other is not; open them as two "
                "datasets, or decompress the one",
                shards->items[0].file.path, shards->items[i].file.path);
    return 0;
}

static uint64_t files_allowed(void)
{
    struct rlimit files;
    return getrlimit(RLIMIT_NOFILE, &files) ? 0 : files.rlim_cur / 4;
}

/* The open files of many archives: opened on first use, up to a limit, and kept open for the lifetime of
 * the dataset. The others are opened for each sample. */
struct st_shard_files {
    uint64_t limit;
    atomic_ullong count;
    atomic_int fds[]; /* per archive; 0: not open, -1: not kept open */
};

static struct st_shard_files *files_new(uint64_t count)
{
    struct st_shard_files *files = st_calloc(1, sizeof *files + count * sizeof *files->fds);
    if (files)
        files->limit = files_allowed() < FILES_MAX ? files_allowed() : FILES_MAX;
    return files;
}

/* The archive's descriptor, opened on first use; 0: open it by its path. */
static int file_of(const struct st_shards *shards, const struct st_shard *shard)
{
    struct st_shard_files *files = shards->files;
    struct st_held file;
    atomic_int *fd = &files->fds[shard - shards->items];
    int is = atomic_load_explicit(fd, memory_order_acquire), none = 0;
    if (is)
        return is > 0 ? is : 0;
    if (atomic_fetch_add(&files->count, 1) >= files->limit ||
        st_held_open(&file, shard->file.path, NULL)) {
        atomic_compare_exchange_strong(fd, &none, -1);
        return 0;
    }
    posix_fadvise(file.fd, 0, 0, POSIX_FADV_RANDOM);
    is = file.fd;
    if (atomic_compare_exchange_strong(fd, &none, is))
        file.fd = 0; /* now owned by fds */
    else
        is = none; /* another thread was faster */
    st_held_close(&file);
    return is > 0 ? is : 0;
}

static void files_free(struct st_shard_files *files, uint64_t count)
{
    for (uint64_t i = 0; files && i < count; i++)
        if (files->fds[i] > 0)
            close(files->fds[i]);
    free(files);
}

/* Puts all indexes into one block: the earlier process's, if that one is complete. */
static void join_indexes(struct st_shards *shards, struct st_shard_list *earlier, bool complete)
{
    if (!complete) {
        struct st_shard_list *list = st_shard_list_join(shards);
        if (!list) { /* out of memory: keep the earlier list, which some indexes point into */
            shards->list = earlier;
            return;
        }
        if (shards->list_file)
            st_shard_list_store(list, shards->list_file);
        st_shard_list_lend(list, shards);
        st_shard_list_free(earlier);
        earlier = list;
    }
    shards->list = earlier;
}

/* For many archives: loads the list saved by an earlier process, if there is one. */
static struct st_shard_list *open_list(struct st_shards *shards, const char *first,
                                       const struct stoker_dataset_options *opt)
{
    char file[PATH_MAX];
    st_shard_list_path(file, shards->kind, first, opt);
    shards->owner = getpid();
    shards->files = files_new(shards->count);
    shards->list_file = file[0] ? strdup(file) : NULL;
    return st_shard_list_load(file, shards->kind->number);
}

static int open_all(struct st_shards *shards, const struct st_paths *paths,
                    const struct stoker_dataset_options *opt, struct stoker_error *err)
{
    struct opening o = {.shards = shards,
                        .opt = opt,
                        .paths = paths,
                        .many = !shards->store && paths->count >= ST_SHARD_LIST_MIN,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    const uint64_t least = shards->store ? REMOTE_THREADS : LOCAL_THREADS;
    uint64_t threads = opt->threads ? opt->threads : st_cpu_count();
    if (!opt->threads && threads < least)
        threads = least;
    o.threads = (uint32_t)((threads + paths->count - 1) / paths->count);
    if (threads > paths->count)
        threads = paths->count;
    shards->count = paths->count;
    o.hold = !o.many && paths->count <= files_allowed();
    struct st_shard_list *earlier = o.many ? open_list(shards, paths->items[0], opt) : NULL;
    o.list = earlier;
    for (uint64_t i = 0; i < paths->count; i++)
        shards->items[i].of = shards;
    shards->memory.limit = opt->max_memory ? opt->max_memory : st_memory_limit() / MEMORY_PART;
    st_threads_run((uint32_t)threads, open_worker, &o);
    if (!o.failed) {
        o.alone = true;
        atomic_store(&o.next, 0);
        open_worker(&o);
    }
    pthread_mutex_destroy(&o.lock);
    for (uint64_t i = 0; i < paths->count; i++)
        shards->unsummed += st_shard_sums_unknown(shards->items[i].sums) > 0;
    if (!o.failed && o.many && !shards->items[0].unpacked.data)
        join_indexes(shards, earlier, atomic_load(&o.listed) == shards->count);
    else
        shards->list = earlier;
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
        return st_fail(err, STOKER_EINVAL, "%.700s: contains no samples", pattern);
    return 0;
}

void st_shards_close(struct st_shards *shards)
{
    st_shards_keep_list(shards);
    for (uint64_t i = 0; shards->items && i < shards->count; i++)
        forget_shard(shards, &shards->items[i]);
    files_free(shards->files, shards->count);
    st_shard_list_free(shards->list);
    free(shards->list_file);
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
    uint64_t low = 0,
             high = shards->count; /* finds the last archive that begins at or before the sample */
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
        return st_fail(
            err, STOKER_ECORRUPT,
            "%s: byte %llu: the %s is damaged here, so the samples that follow cannot be found",
            shard->file.path, (unsigned long long)start, shards->kind->name);
    if (end > size)
        return st_fail(
            err, STOKER_ECORRUPT,
            "%s: byte %llu: the sample has %llu byte%s, but the %s ends after %llu: it is truncated, or "
            "states a wrong size",
            shard->file.path, (unsigned long long)start, (unsigned long long)(end - start),
            st_s(end - start), shards->kind->name, (unsigned long long)(size - start));
    st_held_extent(&shard->file, start, end - start, out);
    if (shard->unpacked.data)
        out->memory = shard->unpacked.data + start;
    else if (shards->files && !out->fd)
        out->fd = file_of(shards, shard);
    return 0;
}
