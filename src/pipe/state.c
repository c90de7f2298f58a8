/* state.c - the position in an epoch, in 64 bytes: independent of ranks, exact to the sample
 *
 *     0  "STKS"   4  u16 version, u16 order kind   8  u64 epoch   16  u64 cursor (all ranks together)
 *     24 u64 seed   32  u64 samples in the dataset   40  zeros   60  u32 checksum of the bytes before
 *
 * All numbers are little-endian, so that a state moves between machines.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "pipe/executor.h"
#include "pipe/loader.h"

#include <string.h>

enum {
    VERSION = 1,
    KIND_AT = 6,
    EPOCH_AT = 8,
    CURSOR_AT = 16,
    SEED_AT = 24,
    COUNT_AT = 32,
    SUM_AT = 60
};

static void put(uint8_t *at, uint64_t value, int bytes)
{
    for (int k = 0; k < bytes; k++)
        at[k] = (uint8_t)(value >> 8 * k);
}

static uint64_t get(const uint8_t *at, int bytes)
{
    uint64_t value = 0;
    for (int k = 0; k < bytes; k++)
        value |= (uint64_t)at[k] << 8 * k;
    return value;
}

/* FNV-1a: enough to detect a truncated or corrupted state. */
static uint32_t checksum(const uint8_t *bytes)
{
    uint32_t sum = 2166136261u;
    for (int k = 0; k < SUM_AT; k++)
        sum = (sum ^ bytes[k]) * 16777619u;
    return sum;
}

int st_loader_save(struct stoker_loader *loader, struct stoker_state *out, struct stoker_error *err)
{
    const int rc = st_loader_check_owner(loader, err);
    if (rc)
        return rc;
    uint8_t *bytes = out->bytes;
    memset(bytes, 0, sizeof out->bytes);
    pthread_mutex_lock(&loader->lock);
    /* A batch that has just failed is repeated on resume: its cause may be fixed by then. */
    const uint64_t rows = loader->delivered_samples - loader->failed_samples;
    const uint64_t samples = rows / st_order_views(loader->order);
    const uint64_t cursor = loader->epoch.base + samples * st_order_world(loader->order);
    memcpy(bytes, "STKS", 4);
    put(bytes + 4, VERSION, 2);
    put(bytes + KIND_AT, loader->opt.order, 2);
    put(bytes + EPOCH_AT, loader->epoch.number, 8);
    put(bytes + CURSOR_AT, cursor, 8);
    put(bytes + SEED_AT, loader->opt.seed, 8);
    put(bytes + COUNT_AT, loader->dataset_count, 8);
    pthread_mutex_unlock(&loader->lock);
    put(bytes + SUM_AT, checksum(bytes), 4);
    return 0;
}

int st_loader_restore(struct stoker_loader *loader, const struct stoker_state *state,
                      const struct stoker_epoch *given, struct stoker_error *err)
{
    const uint8_t *bytes = state->bytes;
    struct stoker_epoch epoch = {0};
    if (memcmp(bytes, "STKS", 4) || get(bytes + SUM_AT, 4) != checksum(bytes))
        return st_fail(err, STOKER_EINVAL, "not a loader state, or a damaged one");
    if (get(bytes + 4, 2) != VERSION)
        return st_fail(err, STOKER_EINVAL, "the state has version %u; this library reads version %d",
                       (unsigned)get(bytes + 4, 2), VERSION);
    if (get(bytes + COUNT_AT, 8) != loader->dataset_count)
        return st_fail(err, STOKER_EINVAL,
                       "the state was saved with a dataset of %llu sample%s; this one has %llu",
                       (unsigned long long)get(bytes + COUNT_AT, 8), st_s(get(bytes + COUNT_AT, 8)),
                       (unsigned long long)loader->dataset_count);
    if (get(bytes + SEED_AT, 8) != loader->opt.seed)
        return st_fail(err, STOKER_EINVAL, "the state was saved with seed %llu; this loader has %llu",
                       (unsigned long long)get(bytes + SEED_AT, 8),
                       (unsigned long long)loader->opt.seed);
    if (get(bytes + KIND_AT, 2) != (uint64_t)loader->opt.order)
        return st_fail(err, STOKER_EINVAL,
                       "the state was saved with an order of kind %u; this loader has kind %u",
                       (unsigned)get(bytes + KIND_AT, 2), (unsigned)loader->opt.order);
    if (given)
        epoch = *given;
    epoch.epoch = get(bytes + EPOCH_AT, 8);
    return st_loader_start(loader, &epoch, get(bytes + CURSOR_AT, 8), err);
}
