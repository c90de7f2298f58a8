/* chunk_cache.h - a bounded cache of decoded chunks that several samples share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_HDF5_CHUNK_CACHE_H
#define ST_SOURCE_HDF5_CHUNK_CACHE_H

#include "base/err.h"
#include "base/mem.h"

struct st_chunk_cache;
struct st_cached_chunk; /* a chunk in use */

/* Decodes the chunk into `out`, which has the requested size. Called without a lock. */
typedef int st_chunk_load(const void *context, uint64_t chunk, uint8_t *out, struct stoker_error *err);

/* NULL if out of memory. The cache exceeds `budget` bytes only while that many are in use. */
struct st_chunk_cache *st_chunk_cache_open(uint64_t budget);
void st_chunk_cache_close(struct st_chunk_cache *cache); /* NULL is allowed; no chunk may be in use */

/* Gets a chunk, which stays in memory until it is put back. If two threads need the same chunk, it is
 * loaded once. After a fork the child keeps the chunks that were loaded. */
int st_chunk_cache_get(struct st_chunk_cache *cache, uint64_t chunk, uint64_t size, st_chunk_load *load,
                       const void *context, struct st_cached_chunk **out, struct stoker_error *err);
const uint8_t *st_cached_chunk_bytes(const struct st_cached_chunk *cached);
void st_chunk_cache_put(struct st_chunk_cache *cache, struct st_cached_chunk *cached);
/* Lowers the budget to at most this. */
void st_chunk_cache_keep(struct st_chunk_cache *cache, uint64_t bytes);
uint64_t st_chunk_cache_bytes(struct st_chunk_cache *cache); /* currently held */

#endif
