/* worker.c - a worker's life: take tickets, make their samples, count their rows as done
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/threads.h"
#include "pipe/engine.h"

enum {
    TURN_NS = 60000, /* what one worker takes at once keeps it busy for about so long */
    TURN_MOST = 64,  /* samples */
};

static void add_time(struct st_worker *worker, enum stoker_stage stage, uint64_t began)
{
    st_worker_count(&worker->stage_ns[stage], st_now_ns() - began);
}

int st_worker_fetch(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket,
                    struct st_buffer *own, struct st_bytes *bytes, struct stoker_error *err)
{
    struct stoker_loader *loader = worker->loader;
    const uint64_t began = st_now_ns();
    slot->samples[row] = st_order_at(loader->order, ticket);
    slot->seeds[row] = st_order_seed_at(loader->order, ticket);
    const int rc = st_reader_get_into(loader->reader, ticket, own, bytes, err);
    add_time(worker, STOKER_STAGE_READ, began);
    if (!rc)
        st_worker_count(&worker->read_bytes, bytes->size);
    return rc == STOKER_ECANCELED ? st_bad_cancelled(loader, err) : rc;
}

void st_worker_settle(struct st_worker *worker, struct st_slot *slot, uint32_t row, int rc,
                      const struct stoker_error *err)
{
    if (rc)
        st_bad_sample(worker, slot, row, slot->samples[row], err);
    st_worker_count(&worker->samples, 1);
}

void st_worker_make(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket,
                    struct st_bytes bytes)
{
    struct stoker_loader *loader = worker->loader;
    struct stoker_error err;
    const uint64_t sample = slot->samples[row];
    const int rc = st_run_sample(worker, bytes, sample, sample, slot, row, &err);
    st_reader_done(loader->reader, ticket);
    if (worker->stopped) /* the row stays unmade: nobody will ask for it */
        return;
    if (rc)
        st_bad_name(loader, sample, &err);
    st_worker_settle(worker, slot, row, rc, &err);
}

/* Reads and makes the ticket's sample. Only the end of the epoch leaves the row unmade: false. */
static bool make_sample(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket)
{
    struct stoker_error err;
    struct st_bytes bytes;
    int rc = st_gate_read(worker, slot, row, &err);
    if (rc)
        return false;
    rc = st_worker_fetch(worker, slot, row, ticket, &worker->bytes, &bytes, &err);
    st_gate_was_read(worker, rc ? 0 : bytes.size);
    if (rc) {
        rc = st_gate_refused(worker, rc, &err);
        st_gate_leave(worker);
    }
    if (rc && worker->too_large)
        st_bad_name(worker->loader, slot->samples[row], &err);
    if (!rc)
        st_worker_make(worker, slot, row, ticket, bytes);
    else if (rc != STOKER_ECANCELED)
        st_worker_settle(worker, slot, row, rc, &err);
    return rc != STOKER_ECANCELED;
}

/* What batches take, where that is not known before: as much as the largest lately. */
static void note_bytes(struct stoker_loader *loader, const struct st_slot *slot)
{
    const uint64_t bytes = atomic_load(&slot->memory.bytes), before = loader->batch_bytes;
    loader->batch_bytes = bytes > before ? bytes : before - (before - bytes) / 8;
}

/* The last row of a batch is done. Lock held, and dropped while samples are stacked or sent. */
static void batch_done(struct stoker_loader *loader, struct st_slot *slot)
{
    const uint32_t count = st_epoch_batch_size(loader, slot->number);
    slot->batch.epoch = loader->epoch.number;
    slot->batch.index = loader->epoch.first_batch + slot->number;
    slot->batch.count = count;
    struct stoker_error err;
    uint64_t copied = 0;
    int rc = 0;
    if (!st_bad_is_fatal(slot)) { /* else nobody will see more of it than its error */
        pthread_mutex_unlock(&loader->lock);
        rc = st_slot_complete(slot, count, &copied, &err);
        pthread_mutex_lock(&loader->lock);
    }
    if (rc) { /* batches before this one are still delivered */
        st_loader_break(loader, &err);
        st_pool_give(loader, slot);
    } else {
        slot->state = ST_SLOT_READY;
        note_bytes(loader, slot);
        loader->count.copied += copied;
    }
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
        st_gate_look(loader);
        st_slot_begin(slot);
        slot->number = loader->next_batch;
        slot->todo = st_epoch_batch_size(loader, slot->number);
        loader->filling = slot;
        loader->next_row = 0;
    }
    return loader->filling;
}

void st_worker_rests(struct stoker_loader *loader)
{
    if (--loader->busy == 0 && (!loader->epoch.running || loader->broken.code))
        pthread_cond_broadcast(&loader->ready); /* stop waits for this, and next for the last it may get */
}

uint32_t st_tickets_left(struct stoker_loader *loader)
{
    if (!loader->epoch.running || loader->broken.code || loader->next_ticket == loader->epoch.tickets)
        return 0;
    const struct st_slot *slot = slot_for_ticket(loader);
    if (!slot && !loader->taking)
        loader->tuning.hurry = false; /* there is nothing to begin */
    return slot ? st_epoch_batch_size(loader, slot->number) - loader->next_row : 0;
}

bool st_tickets_take(struct stoker_loader *loader, uint32_t count, struct st_tickets *out)
{
    struct st_slot *slot = loader->filling;
    *out = (struct st_tickets){slot, loader->next_ticket, loader->next_row, count};
    loader->next_ticket += count;
    loader->next_row += count;
    if (loader->next_row == st_epoch_batch_size(loader, slot->number)) {
        loader->filling = NULL;
        loader->next_batch++;
    }
    loader->busy++;
    const bool more = loader->next_ticket < loader->epoch.tickets;
    if (more)
        st_engines_wake(loader);
    return more;
}

/* Whoever finds work wakes the next: the consumer, who must not be kept, wakes only the first. */
void st_tickets_share(struct stoker_loader *loader, bool more)
{
    if (more)
        pthread_cond_signal(&loader->work);
}

void st_tickets_done(struct stoker_loader *loader, const struct st_tickets *tickets)
{
    const bool made = loader->epoch.running && !st_interrupt_came(); /* else rows may be unmade */
    if ((tickets->slot->todo -= tickets->count) == 0 && made)
        batch_done(loader, tickets->slot);
    st_worker_rests(loader);
}

/* How many of the batch's rows to take at once. Samples that are made faster than the lock changes hands are
 * taken several at a time; of what is under way each worker gets its share all the same, and one that is slow
 * is followed by one alone. */
static uint32_t turn_size(const struct st_worker *worker, uint32_t left)
{
    const struct stoker_loader *loader = worker->loader;
    if (!worker->sample_ns || worker->sample_ns >= TURN_NS)
        return 1;
    const uint32_t workers = loader->worker_count ? loader->worker_count : 1;
    const uint64_t ahead = st_tuned(&loader->tuning, ST_TUNE_PREFETCH);
    const uint64_t under_way = loader->opt.batch_size * (ahead + 1);
    uint64_t count = TURN_NS / worker->sample_ns, share = under_way / (2 * workers);
    count = count < share ? count : share;
    count = count < TURN_MOST ? count : TURN_MOST;
    count = count < left ? count : left;
    return count ? (uint32_t)count : 1;
}

/* Slower at once, faster by and by. */
static void note_pace(struct st_worker *worker, uint64_t ns, uint32_t count)
{
    const uint64_t each = ns / count + 1;
    worker->sample_ns = each > worker->sample_ns ? each : worker->sample_ns - (worker->sample_ns - each) / 4;
}

static void make_turn(struct st_worker *worker, const struct st_tickets *turn)
{
    const uint64_t began = st_now_ns();
    uint32_t k = 0;
    while (k < turn->count && make_sample(worker, turn->slot, turn->row + k, turn->ticket + k))
        k++;
    if (k == turn->count)
        note_pace(worker, st_now_ns() - began, k);
}

bool st_worker_step(struct st_worker *worker)
{
    struct stoker_loader *loader = worker->loader;
    struct st_tickets turn;
    const uint32_t left = st_tickets_left(loader);
    if (!left)
        return false;
    const bool more = st_tickets_take(loader, turn_size(worker, left), &turn);
    pthread_mutex_unlock(&loader->lock);
    st_tickets_share(loader, more);
    make_turn(worker, &turn);
    pthread_mutex_lock(&loader->lock);
    st_tickets_done(loader, &turn);
    return true;
}

void *st_worker_main(void *argument)
{
    struct st_worker *worker = argument;
    struct stoker_loader *loader = worker->loader;

    /* Workers fill every CPU there is. The thread that trains, and those that keep a device's engines busy,
     * want one rarely and at once. */
    st_thread_stand_back();
    pthread_mutex_lock(&loader->lock);
    while (!loader->closing) {
        if (st_tuning_rests(worker)) {
            pthread_cond_signal(&loader->work); /* what woke this one was meant for one that works */
            pthread_cond_wait(&loader->tuning.rest, &loader->lock);
            continue;
        }
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

void st_worker_equip(struct st_worker *worker, struct stoker_loader *loader)
{
    worker->loader = loader;
    st_work_equip(&worker->work);
    worker->work.pillow = loader->opt.pillow;
    worker->work.fast = loader->opt.fidelity == STOKER_FIDELITY_FAST;
    worker->work.decoder.pixel_limit = loader->opt.pixel_limit;
    st_gate_equip(worker);
}

void st_worker_free(struct st_worker *worker)
{
    st_decoder_close(&worker->work.decoder);
    st_audio_work_free(&worker->sound);
    st_arena_free(&worker->work.arena);
    st_buffer_free(&worker->bytes);
    st_buffer_free(&worker->pieces);
}
