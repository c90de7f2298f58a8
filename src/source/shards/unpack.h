/* unpack.h - whole buffers of gzip, zlib and zstd
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_UNPACK_H
#define ST_SOURCE_SHARDS_UNPACK_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

#include <stdatomic.h>

enum st_packing {
    ST_PACKED_NOT,
    ST_PACKED_GZIP,
    ST_PACKED_ZLIB,
    ST_PACKED_ZSTD,
    ST_PACKED_XZ,
    ST_PACKED_BZIP2
};

/* By the first bytes. A zlib stream begins with two bytes that anything may begin with, so it is not
 * among the answers. */
enum st_packing st_packing_of(const uint8_t *head, size_t size);
const char *st_packing_name(enum st_packing packing);

/* Unpacks all of `in` (several members or frames one after another too) behind the `out->size` bytes
 * that are there, in a buffer that grows and keeps them. More than `limit` bytes are refused. `name`
 * stands in messages. */
int st_unpack(enum st_packing packing, struct st_bytes in, uint64_t limit, struct st_buffer *out,
              const char *name, struct stoker_error *err);

/* Memory that several threads share: what one needs is counted before it is there. */
struct st_allowance {
    uint64_t limit;
    atomic_ullong used;
};
bool st_allowance_take(struct st_allowance *allowance,
                       uint64_t bytes); /* false: there is not so much left */
void st_allowance_give(struct st_allowance *allowance, uint64_t bytes);
/* The same into an empty buffer, whose capacity is counted as it grows, and stays counted on success;
 * the caller gives it back. STOKER_ELIMIT where the allowance ends, which leaves nothing. */
int st_unpack_allowed(enum st_packing packing, struct st_bytes in, struct st_allowance *allowance,
                      struct st_buffer *out, const char *name, struct stoker_error *err);

/* What a member of `packed` bytes may unpack to: 64 MiB, or 100 times as much as it is, up to 4 GiB.
 * Text and masks pack 10 to 100 times; what packs a thousand times and is large was made to fill memory.
 */
uint64_t st_unpack_limit(uint64_t packed);

#endif
