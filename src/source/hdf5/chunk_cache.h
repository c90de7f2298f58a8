/* chunk_cache.h - decoded chunks that several samples lie in, bounded in bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_CHUNK_CACHE_H
#define ST_SOURCE_HDF5_CHUNK_CACHE_H

#include "base/err.h"
#include "base/mem.h"

struct st_chunk_cache;
struct st_cached; /* a chunk in use */

/* Decodes the chunk to `out`, which has the size that was asked for. Called without a lock. */
typedef int st_chunk_load(const void *context, uint64_t chunk, uint8_t *out, struct stoker_error *err);

/* NULL when out of memory. More than `budget` bytes are held only while that many are in use. */
struct st_chunk_cache *st_chunk_cache_open(uint64_t budget);
void st_chunk_cache_close(struct st_chunk_cache *cache); /* NULL is fine; nothing may be in use */

/* The chunk's bytes, until it is put back. Two threads that want the same chunk load it once. After a
 * fork the child goes on with what was loaded. */
int st_chunk_cache_get(struct st_chunk_cache *cache, uint64_t chunk, uint64_t size, st_chunk_load *load,
                       const void *context, struct st_cached **out, struct stoker_error *err);
const uint8_t *st_cached_bytes(const struct st_cached *cached);
void st_chunk_cache_put(struct st_chunk_cache *cache, struct st_cached *cached);
/* The budget is no more than this from now on. */
void st_chunk_cache_keep(struct st_chunk_cache *cache, uint64_t bytes);
uint64_t st_chunk_cache_bytes(struct st_chunk_cache *cache); /* held now */

#endif
