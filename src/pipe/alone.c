/* alone.c - turns in which one worker makes a sample and all others hold nothing
 *
 * Workers that want a turn have put everything down, and take it in the order of their samples. It
 * begins when no other worker is making a sample: those between two samples wait (st_alone_yield), those
 * that wait in the gate give their sample up and make it again later, and those without work are idle.
 * None of them is needed by the worker whose turn it is, so that every turn comes to its end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/alone.h"

#include "base/clock.h"
#include "pipe/pool.h"

/* ---- waiting ------------------------------------------------------------------------------------- */

void st_wait_noted(struct st_worker *worker, uint64_t began)
{
    const uint64_t took = st_now_ns() - began;
    worker->waited_ns += took;
    st_worker_count(&worker->memory_wait_ns, took);
}

bool st_wait_is_oldest(const struct st_gate_wait *list, const struct st_gate_wait *wait)
{
    for (const struct st_gate_wait *other = list; other; other = other->next)
        if (other->batch < wait->batch || (other->batch == wait->batch && other->row < wait->row))
            return false;
    return true;
}

void st_wait_unlink(struct st_gate_wait **list, const struct st_gate_wait *wait)
{
    while (*list != wait)
        list = &(*list)->next;
    *list = wait->next;
}

/* ---- turns --------------------------------------------------------------------------------------- */

bool st_alone_waits_for(const struct st_worker *worker)
{
    const struct stoker_loader *loader = worker->loader;
    const uintptr_t at = (uintptr_t)worker, first = (uintptr_t)loader->worker;
    return at >= first && at < first + loader->worker_count * sizeof *worker;
}

void st_alone_shed(struct st_worker *worker)
{
    st_decoder_close(&worker->work.decoder);
    st_arena_free(&worker->work.arena);
    st_buffer_free(&worker->bytes);
    st_buffer_free(&worker->pieces);
}

/* Lock held. */
static bool is_stopped(const struct stoker_loader *loader)
{
    return loader->threads && !loader->epoch.running;
}

void st_alone_yield(struct st_worker *worker)
{
    struct stoker_loader *loader = worker->loader;
    struct st_gate *gate = &loader->gate;
    if (!atomic_load(&gate->turns) || !st_alone_waits_for(worker))
        return;
    const uint64_t began = st_now_ns();
    st_alone_shed(worker);
    pthread_mutex_lock(&loader->lock);
    worker->making = false;
    pthread_cond_broadcast(&gate->room);
    while (atomic_load(&gate->turns) && !is_stopped(loader))
        pthread_cond_wait(&gate->room, &loader->lock);
    worker->making = true;
    pthread_mutex_unlock(&loader->lock);
    st_wait_noted(worker, began);
}

/* Whether all others have put down what they hold. Lock held. */
static bool is_alone(const struct stoker_loader *loader)
{
    for (uint32_t k = 0; k < loader->worker_count; k++)
        if (loader->worker[k].making)
            return false;
    return !loader->gate.only;
}

/* Idle workers keep memory too; they wait for the lock, which is held. So may slots beyond those in
 * regular use. */
static void shed_others(struct stoker_loader *loader)
{
    for (uint32_t k = 0; k < loader->worker_count; k++)
        st_alone_shed(&loader->worker[k]);
    if (st_pool_memory(loader) > st_pool_regular(loader))
        st_pool_shed(loader);
}

int st_alone_take(struct st_worker *worker, const struct st_slot *slot, uint32_t row,
                  struct stoker_error *err)
{
    struct stoker_loader *loader = worker->loader;
    struct st_gate *gate = &loader->gate;
    struct st_gate_wait wait = {.next = NULL, .batch = slot->number, .row = row};
    const uint64_t began = st_now_ns();
    st_alone_shed(worker);
    worker->wants_alone = false;
    pthread_mutex_lock(&loader->lock);
    worker->making = false;
    wait.next = gate->alone;
    gate->alone = &wait;
    atomic_fetch_add(&gate->turns, 1);
    pthread_cond_broadcast(&gate->room); /* waiting workers give up, and older turns may begin */
    while (!is_stopped(loader) && !(is_alone(loader) && st_wait_is_oldest(gate->alone, &wait)))
        pthread_cond_wait(&gate->room, &loader->lock);
    st_wait_unlink(&gate->alone, &wait);
    const bool stopped = is_stopped(loader);
    worker->making = st_alone_waits_for(worker);
    if (stopped) {
        worker->stopped = true;
        atomic_fetch_sub(&gate->turns, 1);
        pthread_cond_broadcast(&gate->room);
    } else {
        gate->only = worker;
        shed_others(loader);
    }
    pthread_mutex_unlock(&loader->lock);
    st_wait_noted(worker, began);
    if (stopped)
        return st_fail(err, STOKER_ECANCELED, "the epoch was stopped");
    worker->alone = true;
    worker->beside = atomic_load(&worker->memory.bytes);
    worker->memory.limit = gate->sample_limit + worker->beside;
    st_account_promise(&worker->memory, worker->memory.limit);
    return STOKER_OK;
}

void st_alone_end(struct st_worker *worker)
{
    struct stoker_loader *loader = worker->loader;
    worker->alone = false;
    st_alone_shed(worker);
    st_account_promise(&worker->memory, 0);
    pthread_mutex_lock(&loader->lock);
    loader->gate.only = NULL;
    atomic_fetch_sub(&loader->gate.turns, 1);
    pthread_cond_broadcast(&loader->gate.room);
    pthread_mutex_unlock(&loader->lock);
}
