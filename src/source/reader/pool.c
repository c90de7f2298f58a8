/* pool.c - threads that each read one sample at a time
 *
 * There are many more threads than cores, since they wait for the store, not for the CPU. The first is
 * started when there is something to read ahead, and each starts or wakes the next when it finds more,
 * so that data in memory never cause any threads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/threads.h"
#include "source/reader/ring.h"

#include <stdlib.h>

enum { POOL_MAX = 64 };

struct pool {
    pthread_cond_t work;
    uint32_t wanted, count, idle;
    bool starting, failed; /* one is being started; no more can be started */
    pthread_t threads[POOL_MAX];
};

static void *pool_thread(void *argument);

static bool may_start(const struct pool *pool)
{
    return !pool->idle && !pool->starting && !pool->failed && pool->count < pool->wanted;
}

/* Call with the lock held; with `drop` it is released while the thread is being started. */
static void start_thread(struct st_reader *reader, bool drop)
{
    struct pool *pool = reader->backend_state;
    pool->starting = true;
    if (drop)
        pthread_mutex_unlock(&reader->lock);
    const int failed = st_thread_start(&pool->threads[pool->count], pool_thread, reader, "stoker-read");
    if (drop)
        pthread_mutex_lock(&reader->lock);
    pool->starting = false;
    pool->failed = failed != 0; /* the existing threads, or the callers, do the work */
    pool->count += !failed;
}

/* Wakes or starts another thread: there is more to read than this one takes. */
static void share(struct st_reader *reader)
{
    struct pool *pool = reader->backend_state;
    if (pool->idle)
        pthread_cond_signal(&pool->work);
    else if (may_start(pool))
        start_thread(reader, true);
}

static void read_berth(struct st_reader *reader, struct st_berth *berth)
{
    st_ring_put(reader, berth,
                st_ring_read(reader, st_turn_ticket(berth->turn), &berth->buffer, &berth->bytes,
                             &berth->slept, &berth->err));
}

/* Reads the berth, or starts a request if it is on a server; returns another berth that was taken with
 * it. */
static struct st_berth *serve(struct st_reader *reader, struct st_berth *berth)
{
    struct st_berth *left = NULL;
    if (reader->remote && st_ring_send(reader, berth, &left))
        return left;
    if (reader->remote) { /* this thread will block: leave the next berth to another */
        pthread_mutex_lock(&reader->lock);
        if (st_ring_ready(reader))
            share(reader);
        pthread_mutex_unlock(&reader->lock);
    }
    read_berth(reader, berth);
    return left;
}

static void *pool_thread(void *argument)
{
    struct st_reader *reader = argument;
    struct pool *pool = reader->backend_state;
    st_thread_lower_priority(); /* like the workers that it serves */
    pthread_mutex_lock(&reader->lock);
    while (!reader->closing) {
        struct st_berth *berth = st_ring_take(reader);
        if (!berth) {
            pool->idle++;
            pthread_cond_wait(&pool->work, &reader->lock);
            pool->idle--;
            continue;
        }
        if (!reader->remote && st_ring_ready(reader))
            share(reader);
        pthread_mutex_unlock(&reader->lock);
        while (berth)
            berth = serve(reader, berth);
        pthread_mutex_lock(&reader->lock);
    }
    pthread_mutex_unlock(&reader->lock);
    return NULL;
}

static int pool_open(struct st_reader *reader, struct stoker_error *err)
{
    struct pool *pool = st_calloc(1, sizeof *pool);
    if (!pool)
        return st_fail(err, STOKER_ENOMEM, "out of memory for the reading threads");
    reader->backend_state = pool;
    pthread_cond_init(&pool->work, NULL);
    pool->wanted = reader->depth < POOL_MAX ? reader->depth : POOL_MAX;
    return 0;
}

static void pool_wake(struct st_reader *reader)
{
    struct pool *pool = reader->backend_state;
    if (pool->idle)
        pthread_cond_signal(&pool->work);
    else if (pool->count == 0 && may_start(pool) && !reader->cancelled)
        start_thread(reader, false);
}

static void pool_forget(struct st_reader *reader)
{
    free(reader->backend_state);
    reader->backend_state = NULL;
}

/* A thread is always started by one with a lower number: joining them in order misses none. */
static void pool_close(struct st_reader *reader)
{
    struct pool *pool = reader->backend_state;
    if (!pool)
        return;
    pthread_mutex_lock(&reader->lock);
    reader->closing = true;
    pthread_cond_broadcast(&pool->work);
    for (uint32_t k = 0; k < pool->count; k++) {
        pthread_mutex_unlock(&reader->lock);
        pthread_join(pool->threads[k], NULL);
        pthread_mutex_lock(&reader->lock);
    }
    reader->closing = false;
    pthread_mutex_unlock(&reader->lock);
    pthread_cond_destroy(&pool->work);
    pool_forget(reader);
}

const struct st_backend st_backend_pool = {
    .name = "pread pool",
    .open = pool_open,
    .wake = pool_wake,
    .close = pool_close,
    .forget = pool_forget,
};
