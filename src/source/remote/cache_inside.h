/* cache_inside.h - the inside of the cache: remote/cache.c, remote/blocks.c
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

#define ST_BLOCK_HEAD 4096u /* of a block's file, before its bytes */

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
    atomic_bool broken; /* nothing is put in any more */
    atomic_ullong full_until_ns;
    pthread_mutex_t lock; /* below; not in a forked child, where it may be held for ever */
    pthread_cond_t fetched;
    struct fetching *fetching;
};

struct st_cached {
    struct st_cache *cache;
    uint64_t number;
    uint64_t first; /* its blocks are numbered from here on: in a group each has its own numbers */
    uint64_t size;
    char folder[PATH_MAX];
};

/* So many bytes of the folder are not used any more. */
void st_cache_give_back(struct st_cache *cache, uint64_t bytes);

#endif
