/* cache.c - caches blocks of remote objects in a local folder of limited size
 *
 * The file "usage" holds the number of bytes in the folder, shared by all processes that use it; it is
 * read and written, never mapped, so that truncating it kills no process. Locks on its bytes show who
 * uses the cache (byte 0), who changes the number (byte 1), and which objects are open (one byte per
 * object, chosen by its number).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/remote/cache_inside.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FULL_NS   5000000000ull /* how long to wait before searching for something to evict again */
#define NAME_SIZE 33            /* 32 digits and a NUL byte */

/* ---- locks and counts -------------------------------------------------------------------------- */

static bool lock_byte(int fd, uint64_t byte, short type, bool wait)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
    int rc;
    do
        rc = fcntl(fd, wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
    while (rc && errno == EINTR);
    return rc == 0;
}

static uint64_t byte_of(uint64_t number) { return 16 + (number >> 2); }

static int open_usage(const char *folder)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/usage", folder) >= (int)sizeof path)
        return -1;
    return st_file_open(path, O_RDWR | O_CREAT);
}

/* An object's folder is named by 32 digits; the first 16 are its number. */
static bool is_object(const char *name, uint64_t *number)
{
    char digits[17];
    if (strlen(name) != NAME_SIZE - 1 || strspn(name, "0123456789abcdef") != NAME_SIZE - 1)
        return false;
    memcpy(digits, name, 16);
    digits[16] = '\0';
    *number = strtoull(digits, NULL, 16);
    return true;
}

/* Calls `counts` for each file of an object's folder; adds up the sizes of those for which it returns
 * true. */
static uint64_t sum_files(const char *folder, bool (*counts)(int at, const char *name))
{
    uint64_t sum = 0;
    struct stat info;
    DIR *dir = st_folder_open(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const bool file = entry->d_name[0] != '.' && !fstatat(dirfd(dir), entry->d_name, &info, 0) &&
                          S_ISREG(info.st_mode);
        if (file && counts(dirfd(dir), entry->d_name))
            sum += (uint64_t)info.st_size;
    }
    if (dir)
        closedir(dir);
    return sum;
}

static bool is_whole(int at, const char *name)
{
    (void)at;
    return name[0] != 't';
}

/* An incomplete file was left by a killed process; only called when no other process uses the cache. */
static bool remove_incomplete(int at, const char *name)
{
    if (name[0] == 't')
        unlinkat(at, name, 0);
    return name[0] != 't';
}

static bool remove_file(int at, const char *name) { return !unlinkat(at, name, 0); }

static uint64_t count_all(const char *folder, bool (*counts)(int at, const char *name))
{
    uint64_t sum = 0, number;
    char path[PATH_MAX + 300];
    DIR *dir = st_folder_open(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_object(entry->d_name, &number)) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            sum += sum_files(path, counts);
        }
    if (dir)
        closedir(dir);
    return sum;
}

/* ---- opening ----------------------------------------------------------------------------------- */

/* Changes the number of bytes used by all processes and threads, and returns the new value; if it was
 * lost, it is counted again. Each change opens its own descriptor, because locks belong to descriptors.
 */
static uint64_t change_used(const struct st_cache *cache, int64_t change)
{
    uint64_t used = 0;
    const int fd = open_usage(cache->folder);
    if (fd < 0 || !lock_byte(fd, 1, F_WRLCK, true)) {
        if (fd >= 0)
            close(fd);
        return UINT64_MAX; /* unknown: nothing is cached */
    }
    if (st_file_read(fd, cache->folder, 0, &used, sizeof used, NULL))
        used = count_all(cache->folder, is_whole);
    const uint64_t less = change < 0 ? (uint64_t)-change : 0;
    used = less > used ? 0 : used - less + (change > 0 ? (uint64_t)change : 0);
    const bool put = st_file_write(fd, 0, &used, sizeof used);
    close(fd); /* releases the lock too */
    return put ? used : UINT64_MAX;
}

/* The only user recounts the bytes, so that earlier errors do not persist. */
static int join_users(struct st_cache *cache, struct stoker_error *err)
{
    cache->usage_fd = open_usage(cache->folder);
    if (cache->usage_fd < 0)
        return st_fail_errno(err, errno, "cache_dir: cannot use %s", cache->folder);
    if (lock_byte(cache->usage_fd, 0, F_WRLCK, false)) {
        const uint64_t used = count_all(cache->folder, remove_incomplete);
        if (!st_file_write(cache->usage_fd, 0, &used, sizeof used))
            return st_fail_errno(err, errno, "cache_dir: cannot use %s", cache->folder);
    }
    if (!lock_byte(cache->usage_fd, 0, F_RDLCK, true))
        return st_fail_errno(err, errno, "cache_dir: cannot use %s: its file system has no locks",
                             cache->folder);
    return 0;
}

int st_cache_open(struct st_cache **out, const char *folder, uint64_t limit, struct stoker_error *err)
{
    if (mkdir(folder, 0777) && errno != EEXIST)
        return st_fail_errno(err, errno, "cache_dir: cannot create %s", folder);
    struct st_cache *cache = st_calloc(1, sizeof *cache);
    if (!cache || !(cache->folder = strdup(folder))) {
        free(cache);
        return st_fail(err, STOKER_ENOMEM, "out of memory for a cache");
    }
    cache->limit = limit;
    cache->owner = getpid();
    cache->usage_fd = -1;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->fetched, NULL);
    const int rc = join_users(cache, err);
    if (rc)
        st_cache_close(cache);
    else
        *out = cache;
    return rc;
}

void st_cache_close(struct st_cache *cache)
{
    if (!cache)
        return;
    if (cache->usage_fd >= 0)
        close(cache->usage_fd); /* releases its locks too, once no child has it open */
    if (cache->owner == getpid()) {
        pthread_cond_destroy(&cache->fetched);
        pthread_mutex_destroy(&cache->lock);
    }
    free(cache->folder);
    free(cache);
}

const char *st_cache_note(const struct st_cache *cache) { return atomic_load(&cache->note); }

static uint64_t hash_more(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    while (*text++);
    return hash;
}

/* Two 64-bit hashes of everything that identifies the object. */
static void set_numbers(struct st_cached *object, const char *name, const char *version, uint64_t *other)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)object->size);
    object->number = hash_more(hash_more(hash_more(0xcbf29ce484222325u, name), version), digits);
    *other = hash_more(hash_more(hash_more(0x9ae16a3b2f90404fu, digits), name), version);
}

struct st_cached *st_cached_open(struct st_cache *cache, const char *name, const char *version,
                                 uint64_t size)
{
    uint64_t other;
    struct st_cached *object = st_calloc(1, sizeof *object);
    if (!object)
        return NULL;
    object->cache = cache;
    object->size = size;
    set_numbers(object, name, version, &other);
    const bool named =
        snprintf(object->folder, sizeof object->folder, "%s/%016llx%016llx", cache->folder,
                 (unsigned long long)object->number, (unsigned long long)other) < PATH_MAX - 64;
    /* Waits while another process is evicting this object. */
    if (!named || !lock_byte(cache->usage_fd, byte_of(object->number), F_RDLCK, true) ||
        (mkdir(object->folder, 0777) && errno != EEXIST)) {
        free(object);
        return NULL;
    }
    utimensat(AT_FDCWD, object->folder, NULL, 0); /* marks it as used now: see make_room */
    return object;
}

struct st_cached *st_cached_member(const struct st_cached *group, const char *name, const char *version,
                                   uint64_t size)
{
    struct st_cached *object = st_calloc(1, sizeof *object);
    if (!object)
        return NULL;
    object->cache = group->cache;
    object->size = size;
    set_numbers(object, name, version, &object->first);
    memcpy(object->folder, group->folder, sizeof object->folder);
    return object;
}

void st_cached_close(struct st_cached *object) { free(object); }

/* ---- room -------------------------------------------------------------------------------------- */

struct candidate {
    struct timespec used;
    char name[NAME_SIZE];
};

static int by_age(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    const struct timespec l = left->used, r = right->used;
    return l.tv_sec != r.tv_sec ? (l.tv_sec > r.tv_sec) - (l.tv_sec < r.tv_sec)
                                : (l.tv_nsec > r.tv_nsec) - (l.tv_nsec < r.tv_nsec);
}

static struct candidate *list_candidates(const char *folder, uint64_t *count)
{
    struct candidate *list = NULL;
    uint64_t room = 0, number;
    struct stat info;
    DIR *dir = st_folder_open(folder);
    *count = 0;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (!is_object(entry->d_name, &number) || fstatat(dirfd(dir), entry->d_name, &info, 0))
            continue;
        if (*count == room) {
            struct candidate *larger = st_grow(list, room * 2 + 16, sizeof *list);
            if (!larger)
                break;
            list = larger;
            room = room * 2 + 16;
        }
        list[*count].used = info.st_mtim;
        memcpy(list[(*count)++].name, entry->d_name, NAME_SIZE);
    }
    if (dir)
        closedir(dir);
    if (*count)
        qsort(list, *count, sizeof *list, by_age);
    return list;
}

/* Returns how many bytes are used afterwards. */
static uint64_t remove_object(struct st_cache *cache, const char *name)
{
    char path[PATH_MAX + NAME_SIZE + 1];
    snprintf(path, sizeof path, "%s/%s", cache->folder, name);
    const uint64_t used = change_used(cache, -(int64_t)sum_files(path, remove_file));
    rmdir(path);
    return used;
}

/* Evicts objects that no process has open, least recently used first, until at most `wanted` bytes are
 * used; returns how many are. It opens its own descriptor, since a lock through the same one would only
 * convert the existing lock. */
static uint64_t make_room(struct st_cache *cache, uint64_t wanted)
{
    uint64_t count, number = 0, used = change_used(cache, 0);
    struct candidate *list = list_candidates(cache->folder, &count);
    const int fd = open_usage(cache->folder);
    for (uint64_t i = 0; fd >= 0 && i < count && used > wanted; i++) {
        is_object(list[i].name, &number);
        if (lock_byte(fd, byte_of(number), F_WRLCK, false)) {
            used = remove_object(cache, list[i].name);
            lock_byte(fd, byte_of(number), F_UNLCK, false);
        }
    }
    if (fd >= 0)
        close(fd);
    free(list);
    return used;
}

void st_cache_give_back(struct st_cache *cache, uint64_t bytes) { change_used(cache, -(int64_t)bytes); }

bool st_cached_reserve(struct st_cached *object, uint32_t size)
{
    struct st_cache *cache = object->cache;
    const uint64_t bytes = size + ST_BLOCK_HEAD, now = st_now_ns();
    if (atomic_load(&cache->broken) || bytes > cache->limit)
        return false;
    if (change_used(cache, (int64_t)bytes) <= cache->limit)
        return true;
    if (cache->owner == getpid() && now >= atomic_load(&cache->full_until_ns)) {
        pthread_mutex_lock(&cache->lock);
        const uint64_t used = make_room(cache, cache->limit);
        pthread_mutex_unlock(&cache->lock);
        if (used <= cache->limit)
            return true;
        atomic_store(&cache->full_until_ns, now + FULL_NS);
        atomic_store(&cache->note,
                     "the cache is full of data that this epoch needs, so the rest is read from the "
                     "server each time; increase cache_bytes");
    }
    st_cache_give_back(cache, bytes);
    return false;
}

/* ---- fetching -------------------------------------------------------------------------------- */

static struct fetching **find_fetching(struct st_cached *object, uint64_t block)
{
    struct fetching **at = &object->cache->fetching;
    while (*at && ((*at)->object != object->number || (*at)->block != block))
        at = &(*at)->next;
    return at;
}

bool st_cached_begin(struct st_cached *object, uint64_t block, const atomic_bool *cancel)
{
    struct st_cache *cache = object->cache;
    if (cache->owner != getpid())
        return true;
    struct fetching *own = st_calloc(1, sizeof *own);
    bool waited = false, ends = false;
    pthread_mutex_lock(&cache->lock);
    while (*find_fetching(object, block) && !(cancel && atomic_load(cancel)) && !ends) {
        waited = true;
        ends = st_interrupt_look(&cache->fetched, &cache->lock);
    }
    waited = waited || *find_fetching(object, block);
    if (!waited && own) {
        *own = (struct fetching){object->number, block, cache->fetching};
        cache->fetching = own;
        own = NULL;
    }
    pthread_mutex_unlock(&cache->lock);
    free(own);
    return !waited;
}

void st_cached_end(struct st_cached *object, uint64_t block)
{
    struct st_cache *cache = object->cache;
    if (cache->owner != getpid())
        return;
    pthread_mutex_lock(&cache->lock);
    struct fetching **at = find_fetching(object, block), *own = *at;
    if (own)
        *at = own->next;
    pthread_cond_broadcast(&cache->fetched);
    pthread_mutex_unlock(&cache->lock);
    free(own);
}
