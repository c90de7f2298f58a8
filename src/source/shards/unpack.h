/* unpack.h - decompresses whole buffers: gzip, zlib and zstd
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

/* Judged by the first bytes. Never returns zlib: its two leading bytes can begin any file. */
enum st_packing st_packing_of(const uint8_t *head, size_t size);
const char *st_packing_name(enum st_packing packing);

/* Decompresses all of `in`, including several concatenated members or frames, and appends it to the
 * buffer, which grows. Fails if the output exceeds `limit` bytes. `name` is for messages. */
int st_unpack(enum st_packing packing, struct st_bytes in, uint64_t limit, struct st_buffer *out,
              const char *name, struct stoker_error *err);

/* A memory budget shared by several threads: memory is counted before it is allocated. */
struct st_allowance {
    uint64_t limit;
    atomic_ullong used;
};
bool st_allowance_take(struct st_allowance *allowance, uint64_t bytes); /* false: not enough left */
void st_allowance_give(struct st_allowance *allowance, uint64_t bytes);
/* The same into an empty buffer, whose capacity is counted as it grows and stays counted on success; the
 * caller gives it back. STOKER_ELIMIT if the allowance is used up; then the buffer is empty. */
int st_unpack_allowed(enum st_packing packing, struct st_bytes in, struct st_allowance *allowance,
                      struct st_buffer *out, const char *name, struct stoker_error *err);

/* The most that a member of `packed` bytes may decompress to: 100 times its size, but at least 64 MiB
 * and at most 4 GiB. Text and masks compress 10 to 100 times; something large that compresses a thousand
 * times was made to exhaust memory. */
uint64_t st_unpack_limit(uint64_t packed);

#endif
