/* worker.c - the worker loop: take tickets, make their samples, count their rows as done
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/worker.h"

#include "base/clock.h"
#include "base/threads.h"
#include "pipe/alone.h"
#include "pipe/failure.h"
#include "pipe/gate.h"
#include "pipe/run.h"
#include "pipe/tickets.h"
#include "pipe/tuning.h"

enum {
    TURN_NS = 60000, /* target duration of the work that a worker takes at once */
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
    worker->stopped = false;
    slot->samples[row] = st_order_at(loader->order, ticket);
    slot->seeds[row] = st_order_seed_at(loader->order, ticket);
    slot->views[row] = (uint8_t)st_order_view_at(loader->order, ticket);
    int rc = st_reader_get_into(loader->reader, ticket, own, bytes, err);
    add_time(worker, STOKER_STAGE_READ, began);
    if (!rc) {
        st_worker_count(&worker->read_bytes, bytes->size);
        return STOKER_OK;
    }
    worker->bytes.refused = bytes->size; /* also if it was refused to a buffer of the reader */
    rc = st_gate_not_read(worker, slot->samples[row], rc, err);
    return rc == STOKER_ECANCELED ? st_bad_cancelled(loader, err) : rc;
}

void st_worker_settle(struct st_worker *worker, struct st_slot *slot, uint32_t row, int rc,
                      struct stoker_error *err)
{
    const uint64_t sample = slot->samples[row];
    if (rc && worker->again)
        rc = st_retry_once(worker, sample, sample, slot, row, err);
    if (rc && !worker->stopped)
        st_bad_sample(worker, slot, row, sample, err);
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
    if (worker->stopped) /* the row stays unmade: the epoch is being stopped */
        return;
    if (rc && !worker->again)
        st_bad_name(loader, sample, &err);
    st_worker_settle(worker, slot, row, rc, &err);
}

/* Waits until there is memory to read a sample. False: the epoch ended. */
static bool may_read(struct st_worker *worker, const struct st_slot *slot, uint32_t row)
{
    struct stoker_error err;
    int rc;
    worker->wants_alone = false;
    do {
        st_alone_yield(worker);
        worker->again = false;
        rc = worker->wants_alone ? st_alone_take(worker, slot, row, &err)
                                 : st_gate_read(worker, slot, row, &err);
    } while (rc && worker->again);
    return !rc;
}

/* Reads and makes the ticket's sample. False: the epoch ended, and the row was not made. */
static bool make_sample(struct st_worker *worker, struct st_slot *slot, uint32_t row, uint64_t ticket)
{
    struct stoker_error err;
    struct st_bytes bytes;
    if (!may_read(worker, slot, row))
        return false;
    const int rc = st_worker_fetch(worker, slot, row, ticket, &worker->bytes, &bytes, &err);
    st_gate_was_read(worker, rc ? 0 : bytes.size);
    if (rc)
        st_gate_leave(worker);
    if (!rc)
        st_worker_make(worker, slot, row, ticket, bytes);
    else if (rc != STOKER_ECANCELED)
        st_worker_settle(worker, slot, row, rc, &err);
    return rc != STOKER_ECANCELED;
}

/* How many of the batch's rows to take at once. Samples that take less time than handing over the lock
 * are taken several at a time, limited so that every worker gets a share of the work in progress; after
 * a slow sample, only one is taken. */
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

/* Adapts to slower samples at once, to faster ones gradually. */
static void note_pace(struct st_worker *worker, uint64_t ns, uint32_t count)
{
    const uint64_t each = ns / count + 1;
    worker->sample_ns =
        each > worker->sample_ns ? each : worker->sample_ns - (worker->sample_ns - each) / 4;
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
    worker->making = true;
    pthread_mutex_unlock(&loader->lock);
    st_tickets_share(loader, more);
    make_turn(worker, &turn);
    pthread_mutex_lock(&loader->lock);
    worker->making = false;
    if (atomic_load(&loader->gate.turns))
        pthread_cond_broadcast(&loader->gate.room); /* one of them may have waited for this worker */
    st_tickets_done(loader, &turn);
    return true;
}

void *st_worker_main(void *argument)
{
    struct st_worker *worker = argument;
    struct stoker_loader *loader = worker->loader;

    /* Workers use every available CPU. The training thread, and the threads that keep a device's JPEG
     * hardware busy, need one rarely but immediately. */
    st_thread_lower_priority();
    pthread_mutex_lock(&loader->lock);
    while (!loader->closing.set) {
        if (st_tuning_rests(worker)) {
            pthread_cond_signal(&loader->work); /* passes the wake-up on to an active worker */
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
    worker->work.taps = loader->taps;
    worker->work.fast = loader->opt.fidelity == STOKER_FIDELITY_FAST && !loader->shape.raw;
    worker->work.decoder.pixel_limit = loader->opt.pixel_limit;
    st_gate_equip(worker);
}

void st_worker_free(struct st_worker *worker)
{
    st_alone_shed(worker);
    st_audio_work_free(&worker->sound);
}
