/* chunk_cache.c - a bounded cache of decoded chunks that several samples share
 *
 * It is a hash table by chunk number and an LRU list: unused chunks are evicted from its end. A thread
 * that loads a chunk holds no lock; other threads that need the chunk wait for it. A forked child may
 * find chunks whose loading thread does not exist there, and users that never return: it discards both
 * the first time it uses the cache.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/hdf5/chunk_cache.h"
#include "source/process.h"

#include <stdlib.h>

enum { BUCKETS = 4096 };

struct st_cached_chunk {
    uint64_t chunk, size;
    uint32_t users;
    bool loading;
    struct st_cached_chunk *next_in_bucket;
    struct st_cached_chunk *newer, *older;
    uint8_t *bytes;
};

struct st_chunk_cache {
    uint64_t budget, held;
    unsigned forks;
    pthread_cond_t loaded;
    struct st_cached_chunk *newest, *oldest;
    struct st_cached_chunk *buckets[BUCKETS];
};

struct st_chunk_cache *st_chunk_cache_open(uint64_t budget)
{
    struct st_chunk_cache *cache = st_calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->budget = budget;
    st_process_lock(ST_LOCK_CACHES);
    cache->forks = st_process_forks();
    st_process_unlock(ST_LOCK_CACHES);
    pthread_cond_init(&cache->loaded, NULL);
    return cache;
}

/* ---- the table and the list: with the lock held ------------------------------------------------- */

static struct st_cached_chunk **bucket_of(struct st_chunk_cache *cache, uint64_t chunk)
{
    return &cache->buckets[(chunk * 0x9e3779b97f4a7c15u) >> 52];
}

static void unlink_use(struct st_chunk_cache *cache, struct st_cached_chunk *cached)
{
    *(cached->newer ? &cached->newer->older : &cache->newest) = cached->older;
    *(cached->older ? &cached->older->newer : &cache->oldest) = cached->newer;
}

static void link_newest(struct st_chunk_cache *cache, struct st_cached_chunk *cached)
{
    cached->newer = NULL;
    cached->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = cached;
    cache->newest = cached;
}

static void forget(struct st_chunk_cache *cache, struct st_cached_chunk *cached)
{
    struct st_cached_chunk **at = bucket_of(cache, cached->chunk);
    while (*at != cached)
        at = &(*at)->next_in_bucket;
    *at = cached->next_in_bucket;
    unlink_use(cache, cached);
    cache->held -= cached->size;
    free(cached->bytes);
    free(cached);
}

static void make_room(struct st_chunk_cache *cache)
{
    struct st_cached_chunk *cached = cache->oldest;
    while (cached && cache->held > cache->budget) {
        struct st_cached_chunk *newer = cached->newer;
        if (!cached->users)
            forget(cache, cached);
        cached = newer;
    }
}

/* Once per child: it has no other threads, whatever the tables say. */
static void reset_after_fork(struct st_chunk_cache *cache)
{
    if (cache->forks == st_process_forks())
        return;
    cache->forks = st_process_forks();
    pthread_cond_init(&cache->loaded, NULL);
    for (struct st_cached_chunk *cached = cache->oldest, *newer; cached; cached = newer) {
        newer = cached->newer;
        cached->users = 0;
        if (cached->loading)
            forget(cache, cached);
    }
}

static struct st_cached_chunk *find(struct st_chunk_cache *cache, uint64_t chunk)
{
    struct st_cached_chunk *cached = *bucket_of(cache, chunk);
    while (cached && cached->chunk != chunk)
        cached = cached->next_in_bucket;
    return cached;
}

static struct st_cached_chunk *add(struct st_chunk_cache *cache, uint64_t chunk, uint64_t size)
{
    struct st_cached_chunk *cached = st_calloc(1, sizeof *cached);
    if (!cached)
        return NULL;
    *cached = (struct st_cached_chunk){.chunk = chunk, .size = size, .users = 1, .loading = true};
    cached->bytes = st_alloc_aligned(size);
    if (!cached->bytes) {
        free(cached);
        return NULL;
    }
    struct st_cached_chunk **bucket = bucket_of(cache, chunk);
    cached->next_in_bucket = *bucket;
    *bucket = cached;
    link_newest(cache, cached);
    cache->held += size;
    make_room(cache);
    return cached;
}

/* ---- use ---------------------------------------------------------------------------------------- */

/* The chunk, loaded or to be loaded by the caller; NULL if out of memory. */
static struct st_cached_chunk *take(struct st_chunk_cache *cache, uint64_t chunk, uint64_t size)
{
    struct st_cached_chunk *cached;
    st_process_lock(ST_LOCK_CACHES);
    reset_after_fork(cache);
    while ((cached = find(cache, chunk)) != NULL && cached->loading)
        pthread_cond_wait(&cache->loaded, st_process_mutex(ST_LOCK_CACHES));
    if (cached) {
        cached->users++;
        unlink_use(cache, cached);
        link_newest(cache, cached);
    } else {
        cached = add(cache, chunk, size);
    }
    st_process_unlock(ST_LOCK_CACHES);
    return cached;
}

int st_chunk_cache_get(struct st_chunk_cache *cache, uint64_t chunk, uint64_t size, st_chunk_load *load,
                       const void *context, struct st_cached_chunk **out, struct stoker_error *err)
{
    struct st_cached_chunk *cached = take(cache, chunk, size);
    if (!cached)
        return st_fail(err, STOKER_ENOMEM, "out of memory for a chunk of %llu bytes",
                       (unsigned long long)size);
    int rc = 0;
    if (cached->loading) { /* by this thread: any other would have waited in take() */
        rc = load(context, chunk, cached->bytes, err);
        st_process_lock(ST_LOCK_CACHES);
        cached->loading = false;
        if (rc)
            forget(cache, cached);
        pthread_cond_broadcast(&cache->loaded);
        st_process_unlock(ST_LOCK_CACHES);
    }
    *out = rc ? NULL : cached;
    return rc;
}

const uint8_t *st_cached_chunk_bytes(const struct st_cached_chunk *cached) { return cached->bytes; }

void st_chunk_cache_put(struct st_chunk_cache *cache, struct st_cached_chunk *cached)
{
    st_process_lock(ST_LOCK_CACHES);
    cached->users--;
    make_room(cache);
    st_process_unlock(ST_LOCK_CACHES);
}

void st_chunk_cache_keep(struct st_chunk_cache *cache, uint64_t bytes)
{
    st_process_lock(ST_LOCK_CACHES);
    reset_after_fork(cache);
    cache->budget = bytes < cache->budget ? bytes : cache->budget;
    make_room(cache);
    st_process_unlock(ST_LOCK_CACHES);
}

uint64_t st_chunk_cache_bytes(struct st_chunk_cache *cache)
{
    st_process_lock(ST_LOCK_CACHES);
    const uint64_t held = cache->held;
    st_process_unlock(ST_LOCK_CACHES);
    return held;
}

void st_chunk_cache_close(struct st_chunk_cache *cache)
{
    if (!cache)
        return;
    while (cache->newest)
        forget(cache, cache->newest);
    if (cache->forks == st_process_forks())
        pthread_cond_destroy(&cache->loaded);
    free(cache);
}
