/* cache.h - caches blocks of remote objects in a local folder of limited size
 *
 * The folder has one subfolder per version of an object, with one file per block: a header with the
 * checksum of each piece, then the bytes. A block is written under a temporary name and then linked to
 * its own, so that there are only complete ones even if a process is killed. Processes share the folder:
 * a file holds the number of bytes used, and a process that has an object open holds a lock for it.
 *
 * What an open dataset has read into the cache is not evicted while it is open, because a shuffled
 * epoch needs all of it again. Only objects that no process has open are evicted, least recently used
 * first. What still does not fit is read from the server each time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_REMOTE_CACHE_H
#define ST_SOURCE_REMOTE_CACHE_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ST_CACHE_BLOCK (4u << 20)

struct st_cache;
struct st_cached; /* one object in the cache */

int st_cache_open(struct st_cache **out, const char *folder, uint64_t limit, struct stoker_error *err);
void st_cache_close(struct st_cache *cache);             /* NULL is allowed */
const char *st_cache_note(const struct st_cache *cache); /* NULL: no problem */

/* `version` distinguishes versions of the object. NULL: this object cannot be cached. */
struct st_cached *st_cached_open(struct st_cache *cache, const char *name, const char *version,
                                 uint64_t size);
/* One of many small objects in the folder of a group, which was opened as an object of size 0 and whose
 * lock covers them all. NULL: out of memory. */
struct st_cached *st_cached_member(const struct st_cached *group, const char *name, const char *version,
                                   uint64_t size);
void st_cached_close(struct st_cached *object); /* NULL is allowed */

/* Copies [from, from + size) of the block from the cache; false: it is not cached, or was damaged and
 * removed. */
bool st_cached_get(struct st_cached *object, uint64_t block, uint32_t from, uint32_t size, void *into);
/* Reserves `size` bytes for a block; false: there is no room, so the whole block need not be fetched. */
bool st_cached_reserve(struct st_cached *object, uint32_t size);
/* Stores the block for which room was reserved; NULL bytes: releases the room. */
void st_cached_put(struct st_cached *object, uint64_t block, const void *bytes, uint32_t size);
/* Waits while another thread fetches the block, or until `cancel` (NULL: never) is true. True: this
 * thread must fetch it and then call st_cached_end. False: it may be cached now. */
bool st_cached_begin(struct st_cached *object, uint64_t block, const atomic_bool *cancel);
void st_cached_end(struct st_cached *object, uint64_t block);

#endif
