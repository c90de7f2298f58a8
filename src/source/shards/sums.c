/* sums.c - checksums of an archive's members, computed as they are first read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/sums.h"
#include "source/index/index.h"
#include "source/index/keep.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct st_shard_sums {
    pid_t owner;
    atomic_bool learned;   /* some are not saved yet */
    atomic_ullong unknown; /* how many are not known */
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
    uint64_t unknown = 0;
    for (uint64_t i = 0; i < sums->count; i++) {
        const uint32_t known = index->crcs ? index->crcs[i] : 0;
        atomic_init(&sums->values[i], known);
        unknown += !known;
    }
    atomic_init(&sums->unknown, unknown);
    return sums;
}

uint64_t st_shard_sums_unknown(const struct st_shard_sums *sums)
{
    return sums ? atomic_load(&sums->unknown) : 0;
}

bool st_shard_sums_join(const struct st_shard_sums *sums, const struct st_shard_index *index,
                        struct st_shard_index *out)
{
    bool more = false;
    uint32_t *crcs = sums ? st_calloc(sums->count, sizeof *crcs) : NULL;
    for (uint64_t i = 0; crcs && i < sums->count; i++) {
        crcs[i] = atomic_load_explicit(&sums->values[i], memory_order_relaxed);
        more = more || (crcs[i] && (!index->crcs || index->crcs[i] != crcs[i]));
    }
    more = more && !st_shard_index_sum(out, index, crcs, NULL);
    free(crcs);
    return more;
}

static void save(const struct st_shard_sums *sums, const struct st_shard_index *index, const char *file)
{
    struct st_shard_index summed;
    if (!st_shard_sums_join(sums, index, &summed))
        return;
    uint8_t *bytes = (uint8_t *)(uintptr_t)summed.bytes;
    st_index_seal(bytes, summed.size);
    st_keep_replace(file, bytes, summed.size, false);
    st_shard_index_free(&summed);
}

/* Only in the process that opened the archive: forked children learn different checksums. */
static void save_learned(struct st_shard_sums *sums, const struct st_shard_index *index,
                         const char *file)
{
    if (file && sums->owner == getpid() && atomic_exchange(&sums->learned, false))
        save(sums, index, file);
}

uint32_t st_shard_sums_at(const struct st_shard_sums *sums, uint64_t part)
{
    return atomic_load_explicit(&sums->values[part], memory_order_relaxed);
}

bool st_shard_sums_learn(struct st_shard_sums *sums, uint64_t part, uint32_t sum)
{
    uint32_t none = 0;
    if (!sum || !atomic_compare_exchange_strong(&sums->values[part], &none, sum))
        return false;
    atomic_store(&sums->learned, true);
    return true;
}

bool st_shard_sums_learned(struct st_shard_sums *sums, const struct st_shard_index *index,
                           const char *file)
{
    if (atomic_fetch_sub(&sums->unknown, 1) != 1)
        return false;
    save_learned(sums, index, file);
    return true;
}

void st_shard_sums_close(struct st_shard_sums *sums, const struct st_shard_index *index,
                         const char *file)
{
    if (sums)
        save_learned(sums, index, file);
    free(sums);
}
