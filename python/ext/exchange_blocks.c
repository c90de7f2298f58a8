/* exchange_blocks.c - allocates memory of an exchange to batches
 *
 * There are as many blocks as slots. A worker takes a block when it begins to make a batch, not when it
 * is sent the task: waiting tasks take no memory, and blocks that have pages are reused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "exchange_blocks.h"

#include <fcntl.h>

long ext_block_of(const struct exchange *self, uint32_t k)
{
    const uint32_t named = atomic_load(&slot_of(self, k)->block);
    if (!named || named > self->slots || atomic_load(&block_at(self, named - 1)->owner) != k + 1)
        return -1;
    return (long)named - 1;
}

/* The slot names the block before it owns it: if this process dies in between, the block is not lost. */
static bool take(const struct exchange *self, uint32_t k, uint32_t b)
{
    uint32_t nobody = 0;
    if (atomic_load(&block_at(self, b)->owner))
        return false;
    atomic_store(&slot_of(self, k)->block, b + 1);
    return atomic_compare_exchange_strong(&block_at(self, b)->owner, &nobody, k + 1);
}

/* What a worker looks for, in this order: blocks that it has already mapped; new ones, until it has one
 * to fill while the other is in use; those of other workers, which it would have to map; any. */
enum wanted { MINE, NEW, WRITTEN, ANY, WANTED_COUNT };
enum { OWN_LEAST = 2, ROUNDS_MOST = 1 << 16 };

static uint32_t maker_of(const struct exchange *self, uint32_t b)
{
    return atomic_load_explicit(&block_at(self, b)->maker, memory_order_relaxed);
}

static bool is_wanted(uint32_t maker, uint32_t me, uint32_t own, enum wanted wanted)
{
    switch (wanted) {
    case MINE:
        return maker == me;
    case NEW:
        return !maker && own < OWN_LEAST;
    case WRITTEN:
        return maker != 0;
    default:
        return true;
    }
}

long ext_block_take(const struct exchange *self, uint32_t k, uint32_t worker)
{
    const uint32_t me = worker + 1;
    long found = ext_block_of(self, k);
    uint32_t own = 0;
    for (uint32_t b = 0; b < self->slots; b++)
        own += maker_of(self, b) == me;
    /* If a slot has no block, then a block is free; if others take it first, another one is. */
    for (uint32_t round = 0; found < 0 && round < ROUNDS_MOST; round++)
        for (enum wanted wanted = MINE; found < 0 && wanted < WANTED_COUNT; wanted++)
            for (uint32_t b = 0; found < 0 && b < self->slots; b++)
                if (is_wanted(maker_of(self, b), me, own, wanted) && take(self, k, b))
                    found = (long)b;
    if (found >= 0)
        atomic_store_explicit(&block_at(self, (uint32_t)found)->maker, me, memory_order_relaxed);
    return found;
}

void ext_block_free(const struct exchange *self, uint32_t k)
{
    const long b = ext_block_of(self, k);
    if (b >= 0) {
        struct block *block = block_at(self, (uint32_t)b);
        if (b >=
            (long)self->regular) { /* used because a consumer kept many batches: return its memory */
            (void)fallocate(self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            (off_t)(self->control + (uint64_t)b * self->stride), (off_t)self->stride);
            atomic_store_explicit(&block->maker, 0, memory_order_relaxed);
        }
        atomic_store(&block->owner, 0);
    }
    atomic_store(&slot_of(self, k)->block, 0);
}

void ext_slot_free(const struct exchange *self, uint32_t k)
{
    ext_block_free(self, k);
    atomic_store(&slot_of(self, k)->state, SLOT_FREE);
}
