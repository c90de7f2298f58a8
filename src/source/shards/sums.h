/* sums.h - checksums of an archive's members, computed as they are first read
 *
 * Indexing a tar file reads only its headers, which is fast, so the checksums of the payloads are not
 * known at first. They are computed when a member is first read, during the first epoch, and saved with
 * the index as soon as all are known, or when the archives are closed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_SUMS_H
#define ST_SOURCE_SHARDS_SUMS_H

#include "source/shards/index.h"

struct st_shard_sums;

/* Starts with the checksums in the index. NULL if out of memory: then nothing is verified. */
struct st_shard_sums *st_shard_sums_new(const struct st_shard_index *index);
/* How many are still unknown; 0 for NULL. */
uint64_t st_shard_sums_unknown(const struct st_shard_sums *sums);
/* Copies the index with the newly learned checksums; false: there are none, or out of memory. */
bool st_shard_sums_join(const struct st_shard_sums *sums, const struct st_shard_index *index,
                        struct st_shard_index *out);
/* The checksum of a part; 0: not known. Any thread. */
uint32_t st_shard_sums_at(const struct st_shard_sums *sums, uint64_t part);
/* Records the checksum of a part that had none; false: it has one by now. Any thread. Afterwards, the
 * thread that recorded it calls st_shard_sums_learned, which saves the checksums to the index's file and
 * returns true if that one was the last. */
bool st_shard_sums_learn(struct st_shard_sums *sums, uint64_t part, uint32_t sum);
bool st_shard_sums_learned(struct st_shard_sums *sums, const struct st_shard_index *index,
                           const char *file);
/* Saves newly learned checksums to the index's file, if this process opened it, and frees everything.
 * NULL is allowed. */
void st_shard_sums_close(struct st_shard_sums *sums, const struct st_shard_index *index,
                         const char *file);

#endif
