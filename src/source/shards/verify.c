/* verify.c - compares members of archives with their checksums, and saves those that are new
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/checksum/crc32c.h"
#include "source/shards/list.h"
#include "source/shards/sums.h"

#include <unistd.h>

void st_shards_keep_list(struct st_shards *shards)
{
    if (!shards->list_file || shards->owner != getpid() ||
        !atomic_exchange(&shards->unsaved_sums, false))
        return;
    struct st_shard_list *list = st_shard_list_join(shards);
    if (list)
        st_shard_list_store(list, shards->list_file);
    st_shard_list_free(list);
}

/* Records the checksum of a part that had none; the last one completes the index. */
static void learn(const struct st_shard *shard, uint64_t part, uint32_t sum)
{
    if (!st_shard_sums_learn(shard->sums, part, sum))
        return;
    atomic_store(&shard->of->unsaved_sums, true);
    if (st_shard_sums_learned(shard->sums, &shard->index, shard->kept) &&
        atomic_fetch_sub(&shard->of->unsummed, 1) == 1)
        st_shards_keep_list(shard->of);
}

bool st_shard_verify(const struct st_shard *shard, uint64_t part, struct st_bytes payload)
{
    if (!shard->sums)
        return true;
    const uint32_t is = st_crc32c(payload.data, payload.size);
    const uint32_t was = st_shard_sums_at(shard->sums, part);
    if (!was)
        learn(shard, part, is);
    return !was || was == is;
}
