/* pool.c - threads that each read one sample at a time
 *
 * Many more than cores: they wait for the store, not for the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/threads.h"
#include "source/reader/ring.h"

#include <stdlib.h>

enum { POOL_MAX = 64 };

struct pool {
    pthread_cond_t work;
    uint32_t count;
    pthread_t threads[POOL_MAX];
};

static void read_berth(struct st_reader *reader, struct st_berth *berth)
{
    st_ring_put(reader, berth, st_ring_read(reader, berth, &berth->bytes, &berth->err));
}

/* Reads it, or has it read meanwhile where it is on a server; returns another that was taken with it. */
static struct st_berth *serve(struct st_reader *reader, struct st_berth *berth)
{
    struct pool *pool = reader->engine_state;
    struct st_berth *left = NULL;
    if (reader->remote && st_ring_send(reader, berth, &left))
        return left;
    if (reader->remote) { /* this one waits: the next is for another thread */
        pthread_mutex_lock(&reader->lock);
        if (st_ring_ready(reader))
            pthread_cond_signal(&pool->work);
        pthread_mutex_unlock(&reader->lock);
    }
    read_berth(reader, berth);
    return left;
}

static void *pool_thread(void *argument)
{
    struct st_reader *reader = argument;
    struct pool *pool = reader->engine_state;
    pthread_mutex_lock(&reader->lock);
    while (!reader->closing) {
        struct st_berth *berth = st_ring_take(reader);
        if (!berth) {
            pthread_cond_wait(&pool->work, &reader->lock);
            continue;
        }
        if (!reader->remote && st_ring_ready(reader))
            pthread_cond_signal(&pool->work);
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
    reader->engine_state = pool;
    pthread_cond_init(&pool->work, NULL);
    const uint32_t wanted = reader->depth < POOL_MAX ? reader->depth : POOL_MAX;
    int failed = 0;
    while (pool->count < wanted && !failed) {
        failed = st_thread_start(&pool->threads[pool->count], pool_thread, reader, "stoker-read");
        pool->count += !failed;
    }
    return pool->count ? 0 : st_fail_errno(err, failed, "cannot start a thread for reading");
}

static void pool_wake(struct st_reader *reader)
{
    struct pool *pool = reader->engine_state;
    pthread_cond_signal(&pool->work);
}

static void pool_forget(struct st_reader *reader)
{
    free(reader->engine_state);
    reader->engine_state = NULL;
}

static void pool_close(struct st_reader *reader)
{
    struct pool *pool = reader->engine_state;
    if (!pool)
        return;
    pthread_mutex_lock(&reader->lock);
    reader->closing = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&reader->lock);
    while (pool->count)
        pthread_join(pool->threads[--pool->count], NULL);
    reader->closing = false;
    pthread_cond_destroy(&pool->work);
    pool_forget(reader);
}

const struct st_engine st_engine_pool = {
    .name = "pread pool",
    .open = pool_open,
    .wake = pool_wake,
    .close = pool_close,
    .forget = pool_forget,
};
