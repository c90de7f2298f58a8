/* cache_inside.h - internals of the cache: remote/cache.c, remote/blocks.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_CACHE_INSIDE_H
#define ST_SOURCE_REMOTE_CACHE_INSIDE_H

#include "source/remote/cache.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#define ST_BLOCK_HEAD 4096u /* size of the header of a block's file */

struct fetching {
    uint64_t object, block; /* their numbers */
    struct fetching *next;
};

struct st_cache {
    char *folder;
    uint64_t limit;
    pid_t owner;
    int usage_fd;
    _Atomic(const char *) note;
    atomic_bool broken; /* nothing more is cached */
    atomic_ullong full_until_ns;
    pthread_mutex_t
        lock; /* guards the members below; unusable in a forked child, where it may stay locked */
    pthread_cond_t fetched;
    struct fetching *fetching;
};

struct st_cached {
    struct st_cache *cache;
    uint64_t number;
    uint64_t first; /* the number of its first block: in a group each object has its own range */
    uint64_t size;
    char folder[PATH_MAX];
};

/* Records that this many bytes of the folder are no longer used. */
void st_cache_give_back(struct st_cache *cache, uint64_t bytes);

#endif
