/* shard_sums.c - the checksums of an archive's members, learned as they are read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shard_sums.h"
#include "source/crc32c.h"
#include "source/index.h"
#include "source/keep.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct st_shard_sums {
    pid_t owner;
    atomic_bool learned;
    uint64_t count;
    _Atomic uint32_t values[]; /* 0: not known */
};

struct st_shard_sums *st_shard_sums_new(const struct st_shard_index *index)
{
    struct st_shard_sums *sums = st_calloc(1, sizeof *sums + index->part_count * sizeof *sums->values);
    if (!sums)
        return NULL;
    sums->owner = getpid();
    sums->count = index->part_count;
    for (uint64_t i = 0; i < sums->count; i++)
        atomic_init(&sums->values[i], index->crcs ? index->crcs[i] : 0);
    return sums;
}

bool st_shard_verify(const struct st_shard *shard, uint64_t part, struct st_bytes payload)
{
    struct st_shard_sums *sums = shard->sums;
    if (!sums)
        return true;
    const uint32_t is = st_crc32c(payload.data, payload.size);
    const uint32_t was = atomic_load_explicit(&sums->values[part], memory_order_relaxed);
    if (!was && is) {
        atomic_store_explicit(&sums->values[part], is, memory_order_relaxed);
        atomic_store_explicit(&sums->learned, true, memory_order_relaxed);
    }
    return !was || was == is;
}

static void keep(const struct st_shard_sums *sums, const struct st_shard_index *index, const char *file)
{
    struct st_shard_index summed;
    uint32_t *crcs = st_calloc(sums->count, sizeof *crcs);
    for (uint64_t i = 0; crcs && i < sums->count; i++)
        crcs[i] = atomic_load_explicit(&sums->values[i], memory_order_relaxed);
    if (crcs && !st_shard_index_sum(&summed, index, crcs, NULL)) {
        uint8_t *bytes = (uint8_t *)(uintptr_t)summed.bytes;
        st_index_seal(bytes, summed.size);
        st_keep_replace(file, bytes, summed.size, false);
        st_shard_index_free(&summed);
    }
    free(crcs);
}

void st_shard_sums_close(struct st_shard_sums *sums, const struct st_shard_index *index,
                         const char *file)
{
    if (sums && file && atomic_load(&sums->learned) && sums->owner == getpid())
        keep(sums, index, file);
    free(sums);
}
