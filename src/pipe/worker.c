/* worker.c - a worker's life: take a ticket, make the sample, count its row as done
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "pipe/loader.h"

static void add_time(struct st_worker *worker, enum stoker_stage stage, uint64_t began)
{
    atomic_fetch_add_explicit(&worker->stage_ns[stage], st_now_ns() - began, memory_order_relaxed);
}

/* Reads and makes the ticket's sample. Only cancelling leaves the row unmade. */
static void make_sample(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket)
{
    struct stoker_loader *loader = worker->loader;
    const uint64_t sample = st_order_at(loader->order, ticket);
    const uint64_t began = st_now_ns();
    struct stoker_error err;
    struct st_bytes bytes;

    slot->samples[row] = sample;
    int rc = st_reader_get(loader->reader, ticket, &bytes, &err);
    add_time(worker, STOKER_STAGE_READ, began);
    if (rc == STOKER_ECANCELED)
        return;
    if (!rc) {
        rc = st_run_sample(worker, bytes, sample, slot, row, &err);
        st_reader_done(loader->reader, ticket);
        if (rc)
            st_bad_name(loader, sample, &err);
    }
    if (rc)
        st_bad_sample(worker, slot, row, sample, &err);
    else
        slot->labels[row] = st_dataset_label(loader->data, sample);
    atomic_fetch_add_explicit(&worker->samples, 1, memory_order_relaxed);
}

/* The last row of a batch is done. Lock held, and dropped while samples are stacked. */
static void batch_done(struct stoker_loader *loader, struct st_slot *slot)
{
    const uint32_t count = st_epoch_batch_size(loader, slot->number);
    slot->batch.epoch = loader->epoch.number;
    slot->batch.index = loader->epoch.first_batch + slot->number;
    pthread_mutex_unlock(&loader->lock);
    const bool whole = st_slot_complete(slot, count);
    pthread_mutex_lock(&loader->lock);
    if (!whole)
        st_fail(&loader->broken, STOKER_ENOMEM, "no memory to stack a batch of %u samples", count);
    slot->state = ST_SLOT_READY;
    pthread_cond_broadcast(&loader->ready);
}

/* The slot that the next ticket belongs to, begun if need be; NULL: none is free. */
static struct st_slot *slot_for_ticket(struct stoker_loader *loader)
{
    if (!loader->filling) {
        struct st_slot *slot = st_pool_take(loader);
        if (!slot)
            return NULL;
        slot->state = ST_SLOT_FILLING;
        slot->number = loader->next_batch;
        slot->todo = st_epoch_batch_size(loader, slot->number);
        loader->filling = slot;
        loader->next_row = 0;
    }
    return loader->filling;
}

bool st_worker_step(struct st_worker *worker)
{
    struct stoker_loader *loader = worker->loader;
    if (!loader->epoch.running || loader->broken.code || loader->next_ticket == loader->epoch.tickets)
        return false;
    struct st_slot *slot = slot_for_ticket(loader);
    if (!slot)
        return false;

    const uint64_t ticket = loader->next_ticket++;
    const uint32_t row = loader->next_row++;
    if (loader->next_row == st_epoch_batch_size(loader, slot->number)) {
        loader->filling = NULL;
        loader->next_batch++;
    }
    loader->busy++;
    pthread_mutex_unlock(&loader->lock);

    make_sample(worker, slot, row, ticket);

    pthread_mutex_lock(&loader->lock);
    if (--slot->todo == 0 && loader->epoch.running)
        batch_done(loader, slot);
    if (--loader->busy == 0 && !loader->epoch.running)
        pthread_cond_broadcast(&loader->ready); /* stop waits for this */
    return true;
}

void *st_worker_main(void *argument)
{
    struct st_worker *worker = argument;
    struct stoker_loader *loader = worker->loader;

    pthread_mutex_lock(&loader->lock);
    while (!loader->closing) {
        if (st_worker_step(worker))
            continue;
        const bool starved = loader->epoch.running && loader->next_ticket < loader->epoch.tickets;
        const uint64_t began = st_now_ns();
        pthread_cond_wait(&loader->work, &loader->lock);
        if (starved)
            add_time(worker, STOKER_STAGE_SLOT, began);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

void st_worker_free(struct st_worker *worker)
{
    st_decoder_close(&worker->work.decoder);
    st_arena_free(&worker->work.arena);
    st_buffer_free(&worker->bytes);
}
