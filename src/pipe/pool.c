/* pool.c - a loader's slots: as many as are in use, more for a consumer that keeps batches
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/loader.h"

uint64_t st_pool_memory(const struct stoker_loader *loader)
{
    uint64_t bytes = 0;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        bytes += slot->bytes;
    return bytes;
}

/* Batches being made or ready: one more than are kept ready, so that the workers always have one. */
static uint32_t slots_active(const struct stoker_loader *loader)
{
    uint32_t active = 0;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        active += slot->state == ST_SLOT_FILLING || slot->state == ST_SLOT_READY;
    return active;
}

static struct st_slot *free_slot(const struct stoker_loader *loader)
{
    struct st_slot *slot = loader->slots;
    while (slot && slot->state != ST_SLOT_FREE)
        slot = slot->next;
    return slot;
}

bool st_pool_has_room(const struct stoker_loader *loader)
{
    return st_pool_memory(loader) + st_slot_bytes(&loader->shape) <= loader->opt.max_memory;
}

bool st_pool_can_give(const struct stoker_loader *loader)
{
    return free_slot(loader) || st_pool_has_room(loader);
}

struct st_slot *st_pool_add(struct stoker_loader *loader)
{
    struct st_slot *slot = st_slot_new(&loader->shape);
    if (slot) {
        slot->loader = loader;
        slot->next = loader->slots;
        loader->slots = slot;
        loader->slot_count++;
    }
    return slot;
}

struct st_slot *st_pool_take(struct stoker_loader *loader)
{
    if (slots_active(loader) > (loader->worker_count ? loader->opt.prefetch : 0))
        return NULL;
    struct st_slot *slot = free_slot(loader);
    if (slot || !st_pool_has_room(loader))
        return slot;
    slot = st_pool_add(loader);
    if (!slot)
        st_fail(&loader->broken, STOKER_ENOMEM, "no memory for another slot of %.1f MB; %u exist, %u are lent out",
                (double)st_slot_bytes(&loader->shape) / 1e6, loader->slot_count, loader->lent);
    return slot;
}

/* Slots beyond those in regular use, made for a consumer that kept batches, are given back. */
bool st_pool_has_surplus(const struct stoker_loader *loader)
{
    uint32_t unused = 0;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        unused += slot->state == ST_SLOT_FREE;
    return unused > loader->opt.prefetch + 3;
}

void st_pool_remove(struct stoker_loader *loader, struct st_slot *slot)
{
    struct st_slot **at = &loader->slots;
    while (*at != slot)
        at = &(*at)->next;
    *at = slot->next;
    loader->slot_count--;
    st_slot_free(slot);
}
