/* cache.h - blocks of remote objects in a local folder of limited size
 *
 * The folder has one sub-folder for each version of an object, and in it one file for each block: a head
 * with the checksum of each piece, then the bytes. A block is written under another name and renamed, so
 * that there are only whole ones, whatever is killed. Processes share the folder: a file has the
 * count of its bytes, and who has an object open holds a lock on its sub-folder.
 *
 * What an open data set has read into the cache is not removed while it is open: a shuffled epoch needs
 * all of it again. Only objects that no process has open make room, the longest unused first. When that
 * is not enough, what does not fit is read from the server each time.
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
struct st_cached; /* one object in it */

int st_cache_open(struct st_cache **out, const char *folder, uint64_t limit, struct stoker_error *err);
void st_cache_close(struct st_cache *cache);             /* NULL is fine */
const char *st_cache_note(const struct st_cache *cache); /* NULL: all is well */

/* `version` tells the object's versions apart. NULL: this object cannot be cached. */
struct st_cached *st_cached_open(struct st_cache *cache, const char *name, const char *version,
                                 uint64_t size);
/* One of many small objects that lie in the folder of a group, which was opened as an object of size 0
 * and whose lock holds for them all. NULL: out of memory. */
struct st_cached *st_cached_member(const struct st_cached *group, const char *name, const char *version,
                                   uint64_t size);
void st_cached_close(struct st_cached *object); /* NULL is fine */

/* Copies [from, from + size) of the block out of the cache; false: it is not there, or damaged and
 * removed. */
bool st_cached_get(struct st_cached *object, uint64_t block, uint32_t from, uint32_t size, void *into);
/* Sets `size` bytes aside for a block; false: there is no room, and the block need not be fetched. */
bool st_cached_reserve(struct st_cached *object, uint32_t size);
/* Puts in the block for which room was set aside; NULL bytes: gives the room back. */
void st_cached_put(struct st_cached *object, uint64_t block, const void *bytes, uint32_t size);
/* Waits while another thread fetches the block, or until `cancel` (NULL: never) is true; then true if this thread is
 * to fetch it, which it ends by st_cached_end. False: it may be there now. */
bool st_cached_begin(struct st_cached *object, uint64_t block, const atomic_bool *cancel);
void st_cached_end(struct st_cached *object, uint64_t block);

#endif
