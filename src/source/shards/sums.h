/* sums.h - the checksums of an archive's members, learned as they are read
 *
 * To index a tar file only its headers are read, which takes no time; so the sums of what lies between
 * them are not known at first. They are taken when a member is first read, that is while the first epoch
 * streams, and kept with the index as soon as all are known, or else at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_SHARDS_SUMS_H
#define ST_SOURCE_SHARDS_SUMS_H

#include "source/shards/shards.h"

/* Begins with what the index knows. NULL when out of memory: then nothing is verified. */
struct st_shard_sums *st_shard_sums_new(const struct st_shard_index *index);
/* How many are not known yet; 0 for NULL. */
uint64_t st_shard_sums_unknown(const struct st_shard_sums *sums);
/* The index with what was learned beyond it, as a new block; false: nothing, or out of memory. */
bool st_shard_sums_join(const struct st_shard_sums *sums, const struct st_shard_index *index,
                        struct st_shard_index *out);
/* Puts what was learned into the index's file, in the process that opened it; frees it all. NULL is
 * fine. */
void st_shard_sums_close(struct st_shard_sums *sums, const struct st_shard_index *index,
                         const char *file);

#endif
