/* pool.c - a loader's slots: those in regular use, and more for a consumer that keeps batches
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/pool.h"

#include "pipe/notify.h"
#include "pipe/tuning.h"

uint64_t st_pool_memory(const struct stoker_loader *loader)
{
    uint64_t bytes = 0;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        bytes += atomic_load(&slot->memory.bytes);
    return bytes;
}

uint64_t st_pool_pinned(const struct stoker_loader *loader)
{
    uint64_t bytes = loader->jpeg.pinned_bytes;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        bytes += slot->pinned ? st_slot_bytes(&loader->shape) : 0;
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

/* Slots whose memory a device may still read, and which it takes long to make and to give back. */
static bool is_slow(const struct stoker_loader *loader)
{
    return loader->device || loader->shape.pinned;
}

/* The slot that became free first: whatever still reads it will be done soonest. Where nothing does, the
 * last one, most of which is still in the cache. */
static struct st_slot *free_slot(const struct stoker_loader *loader)
{
    struct st_slot *best = NULL;
    for (struct st_slot *slot = loader->slots; slot; slot = slot->next)
        if (slot->state == ST_SLOT_FREE &&
            (!best || (slot->freed < best->freed) == is_slow(loader)))
            best = slot;
    return best;
}

/* Bytes that the next batch will add to its slot's memory, by the size of recent batches. */
static uint64_t growth(const struct stoker_loader *loader, const struct st_slot *slot)
{
    const uint64_t has = slot ? atomic_load(&slot->memory.bytes) : st_slot_bytes(&loader->shape);
    return loader->batch_bytes > has ? loader->batch_bytes - has : 0;
}

static uint64_t memory_in_use(const struct stoker_loader *loader)
{
    uint64_t bytes = 0;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        bytes += slot->state == ST_SLOT_FREE ? 0 : atomic_load(&slot->memory.bytes);
    return bytes;
}

/* Whether a batch may be begun in this free slot, or in a new one. Batches may take half of max_memory,
 * or a little more while there are fewer than two others, so that one can be made while another is in
 * use. Other memory does not count here, because it changes all the time; the gate controls it. */
static bool fits(const struct stoker_loader *loader, const struct st_slot *slot)
{
    const uint64_t limit = loader->opt.max_memory, fixed = st_slot_bytes(&loader->shape);
    const uint64_t has = slot ? memory_in_use(loader) + atomic_load(&slot->memory.bytes)
                              : st_pool_memory(loader) + fixed;
    const uint64_t all = has + growth(loader, slot);
    const uint32_t others = slot ? loader->lent + slots_active(loader) : loader->slot_count;
    return all <= limit / 2 || (others < 2 && (all <= limit / 8 * 5 || !fixed));
}

bool st_pool_has_room(const struct stoker_loader *loader)
{
    return !loader->no_more.code && fits(loader, NULL);
}

bool st_pool_can_give(const struct stoker_loader *loader)
{
    const struct st_slot *slot = free_slot(loader);
    return slot ? fits(loader, slot) : st_pool_has_room(loader);
}

uint32_t st_pool_wanted(const struct stoker_loader *loader)
{
    return loader->opt.workers ? loader->opt.prefetch + ST_SLOTS_MORE : 2;
}

uint64_t st_pool_regular(const struct stoker_loader *loader)
{
    const uint64_t each = st_slot_bytes(&loader->shape), half = loader->opt.max_memory / 2;
    const uint64_t most = st_tuning_batches(loader),
                   wanted = (uint64_t)loader->opt.prefetch + ST_SLOTS_MORE;
    if (!each)
        return loader->opt.max_memory / 4;
    const uint64_t fit = each < half / wanted ? wanted : half / each, slots = fit < 2 ? 2 : fit;
    return slots * each > most ? slots * each : most;
}

static int new_slot(struct stoker_loader *loader, bool pin, struct st_slot **out,
                    struct stoker_error *note, struct stoker_error *err)
{
    note->code = 0;
    const int rc = st_slot_new(out, &loader->shape, pin, note, err);
    if (!rc)
        (*out)->loader = loader;
    return rc;
}

static bool may_pin(const struct stoker_loader *loader)
{
    return is_slow(loader) &&
           st_pool_pinned(loader) + st_slot_bytes(&loader->shape) <= loader->opt.pinned_limit;
}

static void link_slot(struct stoker_loader *loader, struct st_slot *slot,
                      const struct stoker_error *note)
{
    slot->next = loader->slots;
    loader->slots = slot;
    loader->slot_count++;
    if (note->code && !loader->pinned_note.code)
        loader->pinned_note = *note;
}

static void unlink_slot(struct stoker_loader *loader, const struct st_slot *slot)
{
    struct st_slot **at = &loader->slots;
    while (*at != slot)
        at = &(*at)->next;
    *at = slot->next;
    loader->slot_count--;
}

int st_pool_add(struct stoker_loader *loader, struct stoker_error *err)
{
    struct stoker_error note;
    struct st_slot *slot;
    const int rc = new_slot(loader, may_pin(loader), &slot, &note, err);
    if (!rc)
        link_slot(loader, slot, &note);
    return rc;
}

void st_pool_remove(struct stoker_loader *loader, struct st_slot *slot)
{
    unlink_slot(loader, slot);
    st_slot_free(slot);
}

void st_pool_give(struct stoker_loader *loader, struct st_slot *slot)
{
    slot->state = ST_SLOT_FREE;
    slot->freed = ++loader->freed;
}

/* Slots beyond those in regular use, made for a consumer that kept batches, are given back. */
static bool has_surplus(const struct stoker_loader *loader)
{
    uint32_t unused = 0;
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next)
        unused += slot->state == ST_SLOT_FREE;
    return unused > st_tuned(&loader->tuning, ST_TUNE_PREFETCH) + 3;
}

void st_pool_return(struct stoker_loader *loader, struct st_slot *slot)
{
    st_pool_give(loader, slot);
    if (!is_slow(loader) && has_surplus(loader))
        st_pool_remove(loader, slot); /* otherwise a worker does it, which has time */
}

void st_pool_shed(struct stoker_loader *loader)
{
    for (struct st_slot *slot = loader->slots, *next; slot && !is_slow(loader); slot = next) {
        next = slot->next;
        if (slot->state == ST_SLOT_FREE)
            st_pool_remove(loader, slot);
    }
}

/* No more slots can be allocated; a consumer that holds all of them is told why. */
static void stop_growing(struct stoker_loader *loader, const struct stoker_error *err)
{
    loader->no_more = *err;
    pthread_cond_broadcast(&loader->ready);
}

/* Releases the lock for what may take long: waiting for a slot that is still read, allocating one, or
 * freeing one too many. No other thread takes a slot in the meantime. */
static struct st_slot *take_slowly(struct stoker_loader *loader, struct st_slot *slot)
{
    struct stoker_error note, err;
    struct st_slot *surplus = NULL, *made = NULL;
    const bool pin = may_pin(loader);
    int rc = 0;
    if (slot)
        slot->state = ST_SLOT_FILLING;
    if (slot && has_surplus(loader)) {
        surplus = free_slot(loader);
        unlink_slot(loader, surplus);
    }
    loader->taking = true;
    loader->busy++;
    pthread_mutex_unlock(&loader->lock);
    if (surplus)
        st_slot_free(surplus);
    if (slot)
        st_slot_wait(slot);
    else
        rc = new_slot(loader, pin, &made, &note, &err);
    pthread_mutex_lock(&loader->lock);
    loader->taking = false;
    if (rc)
        stop_growing(loader, &err);
    if (made)
        link_slot(loader, slot = made, &note);
    if (slot && !loader->epoch.running) {
        st_pool_give(loader, slot);
        slot = NULL;
    }
    st_worker_rests(loader);
    pthread_cond_broadcast(&loader->work);
    st_jpeg_threads_wake(loader);
    return slot;
}

struct st_slot *st_pool_take(struct stoker_loader *loader)
{
    struct stoker_error err;
    const uint32_t active = slots_active(loader);
    if (loader->taking ||
        active > (loader->worker_count ? st_tuned(&loader->tuning, ST_TUNE_PREFETCH) : 0))
        return NULL;
    if (active && atomic_load(&loader->gate.waiting)) /* memory is short: what is begun comes first */
        return NULL;
    struct st_slot *slot = free_slot(loader);
    if (!st_pool_can_give(loader))
        return NULL;
    if (is_slow(loader))
        return take_slowly(loader, slot);
    if (slot) {
        slot->state = ST_SLOT_FILLING;
        if (st_pool_memory(loader) + growth(loader, slot) > loader->opt.max_memory / 2)
            st_pool_shed(loader);
        return slot;
    }
    if (st_pool_add(loader, &err)) {
        stop_growing(loader, &err);
        return NULL;
    }
    return loader->slots;
}
