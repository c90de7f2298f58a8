/* tickets.c - hands out the tickets of an epoch, and completes batches whose rows are done
 *
 * The threads that make samples (worker.c, jpeg_threads.c) meet here; nothing here calls them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/tickets.h"

#include "base/interrupt.h"
#include "pipe/failure.h"
#include "pipe/gate.h"
#include "pipe/notify.h"
#include "pipe/pool.h"

/* Tracks the recent maximum of a batch's size, where it is not known in advance. */
static void note_bytes(struct stoker_loader *loader, const struct st_slot *slot)
{
    const uint64_t bytes = atomic_load(&slot->memory.bytes), before = loader->batch_bytes;
    loader->batch_bytes = bytes > before ? bytes : before - (before - bytes) / 8;
}

/* The last row of a batch is done. Lock held; released while samples are stacked or submitted. */
static void batch_done(struct stoker_loader *loader, struct st_slot *slot)
{
    const uint32_t count = st_epoch_batch_size(&loader->epoch, slot->number);
    slot->batch.epoch = loader->epoch.number;
    slot->batch.index = loader->epoch.first_batch + slot->number;
    slot->batch.count = count;
    struct stoker_error err;
    uint64_t copied = 0;
    int rc = 0;
    if (!st_bad_is_fatal(slot)) { /* otherwise only its error will be delivered */
        pthread_mutex_unlock(&loader->lock);
        rc = st_slot_complete(slot, count, &copied, &err);
        pthread_mutex_lock(&loader->lock);
    }
    if (rc) { /* earlier batches are still delivered */
        st_loader_break(loader, &err);
        st_pool_give(loader, slot);
    } else {
        slot->state = ST_SLOT_READY;
        note_bytes(loader, slot);
        loader->count.copied += copied;
    }
    pthread_cond_broadcast(&loader->ready);
}

/* The slot of the next ticket's batch, begun if necessary; NULL: none is free. */
static struct st_slot *slot_for_ticket(struct stoker_loader *loader)
{
    if (!loader->filling) {
        struct st_slot *slot = st_pool_take(loader);
        if (!slot)
            return NULL;
        slot->state = ST_SLOT_FILLING;
        st_gate_look(loader);
        st_slot_begin(slot);
        slot->number = loader->next_batch;
        slot->todo = st_epoch_batch_size(&loader->epoch, slot->number);
        loader->filling = slot;
        loader->next_row = 0;
    }
    return loader->filling;
}

uint32_t st_tickets_left(struct stoker_loader *loader)
{
    if (!loader->epoch.running || loader->broken.code || loader->next_ticket == loader->epoch.tickets)
        return 0;
    const struct st_slot *slot = slot_for_ticket(loader);
    if (!slot && !loader->taking)
        loader->tuning.hurry = false; /* no further batch can be begun */
    return slot ? st_epoch_batch_size(&loader->epoch, slot->number) - loader->next_row : 0;
}

bool st_tickets_take(struct stoker_loader *loader, uint32_t count, struct st_tickets *out)
{
    struct st_slot *slot = loader->filling;
    *out = (struct st_tickets){slot, loader->next_ticket, loader->next_row, count};
    loader->next_ticket += count;
    loader->next_row += count;
    if (loader->next_row == st_epoch_batch_size(&loader->epoch, slot->number)) {
        loader->filling = NULL;
        loader->next_batch++;
    }
    loader->busy++;
    const bool more = loader->next_ticket < loader->epoch.tickets;
    if (more)
        st_jpeg_threads_wake(loader);
    return more;
}

/* Whoever finds work wakes the next worker; the consumer, which should not be delayed, wakes only the
 * first. */
void st_tickets_share(struct stoker_loader *loader, bool more)
{
    if (more)
        pthread_cond_signal(&loader->work);
}

void st_tickets_done(struct stoker_loader *loader, const struct st_tickets *tickets)
{
    const bool made = loader->epoch.running && !st_was_interrupted(); /* otherwise rows may be unmade */
    if ((tickets->slot->todo -= tickets->count) == 0 && made)
        batch_done(loader, tickets->slot);
    st_worker_rests(loader);
}
