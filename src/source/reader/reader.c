/* reader.c - fetches the bytes of samples ahead of the workers that decode them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/reader/ring.h"
#include "st_config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By URL: 5,000 requests per second of more than 30 ms each are more than 150 at once. */
enum { DEPTH_LOCAL = 64, DEPTH_REMOTE = 320 };
enum { DEPTH_MAX = 65536, WAKE_MAX = 16 };

/* ---- get and done ------------------------------------------------------------------------------ */

static int cancelled(struct stoker_error *err)
{
    return st_fail(err, STOKER_ECANCELED, "reading was cancelled");
}

/* Reads a ticket that the caller has claimed. */
static int read_here(struct st_reader *reader, struct st_berth *berth, uint64_t ticket,
                     struct st_buffer *own, struct st_bytes *out, struct stoker_error *err)
{
    struct st_buffer *buffer = own ? own : &berth->buffer;
    bool slept;
    const int rc = st_ring_read(reader, ticket, buffer, out, &slept, err);
    st_ring_watch(reader, slept);
    if (rc)
        *out = (struct st_bytes){NULL, buffer->refused};
    if (!own)
        rc ? st_ring_release(reader, berth) : st_ring_keep(reader, berth);
    return rc;
}

/* Takes the result of the backend, or reads what was too large for it. */
static int take_read(struct st_reader *reader, struct st_berth *berth, uint64_t ticket,
                     struct st_buffer *own, struct st_bytes *out, struct stoker_error *err)
{
    const int rc = berth->code;
    atomic_fetch_add(&berth->turn, 1); /* LENT */
    if (rc && st_ring_leaves(reader, berth)) {
        if (own)
            st_ring_release(reader, berth);
        return read_here(reader, berth, ticket, own, out, err);
    }
    if (!rc) {
        *out = berth->bytes;
        return STOKER_OK;
    }
    if (err)
        *err = berth->err;
    *out = (struct st_bytes){NULL, berth->buffer.refused};
    st_ring_release(reader, berth);
    return rc;
}

int st_reader_get_into(struct st_reader *reader, uint64_t ticket, struct st_buffer *own,
                       struct st_bytes *out, struct stoker_error *err)
{
    struct st_berth *berth = st_ring_berth(reader, ticket);
    *out = (struct st_bytes){0};
    while (!atomic_load_explicit(&reader->cancelled, memory_order_acquire)) {
        if (reader->memory)
            return st_read_sample(reader->data, reader->plan(reader->plan_context, ticket), NULL, out,
                                  err);
        const uint64_t turn = atomic_load(&berth->turn);
        if (st_turn_is(turn, ticket, ST_BERTH_READY))
            return take_read(reader, berth, ticket, own, out, err);
        if (own && st_turn_ticket(turn) < ticket && st_ring_pass(reader, berth, turn, ticket))
            return read_here(reader, berth, ticket, own, out, err);
        if (!st_turn_is(turn, ticket, ST_BERTH_FREE)) {
            if (!st_ring_await(reader, berth, turn))
                break;
        } else if (st_ring_claim(reader, berth, turn, !own)) { /* faster than waiting for the backend */
            return read_here(reader, berth, ticket, own, out, err);
        }
    }
    return cancelled(err);
}

int st_reader_get(struct st_reader *reader, uint64_t ticket, struct st_bytes *out,
                  struct stoker_error *err)
{
    return st_reader_get_into(reader, ticket, NULL, out, err);
}

void st_reader_done(struct st_reader *reader, uint64_t ticket)
{
    struct st_berth *berth = st_ring_berth(reader, ticket);
    if (!reader->memory && st_turn_is(atomic_load(&berth->turn), ticket, ST_BERTH_LENT))
        st_ring_release(reader, berth);
}

void st_reader_eager(struct st_reader *reader) { reader->eager = true; }

void st_reader_budget(struct st_reader *reader, uint64_t bytes, struct st_account *account)
{
    pthread_mutex_lock(&reader->lock);
    reader->budget = bytes;
    reader->account = account;
    pthread_mutex_unlock(&reader->lock);
}

void st_reader_sample_limit(struct st_reader *reader, uint64_t bytes) { reader->sample_limit = bytes; }

/* The backend is woken when this many berths are free. */
static uint32_t wake_at(uint32_t limit)
{
    return limit < 8 ? 1 : limit / 8 > WAKE_MAX ? WAKE_MAX : limit / 8;
}

void st_reader_limit(struct st_reader *reader, uint32_t tickets)
{
    pthread_mutex_lock(&reader->lock);
    reader->limit = tickets < reader->depth ? tickets : reader->depth;
    reader->wake_at = wake_at(reader->limit);
    if (reader->backend && st_ring_ready(reader))
        reader->backend->wake(reader);
    pthread_mutex_unlock(&reader->lock);
}

bool st_reader_was_held(struct st_reader *reader)
{
    return atomic_exchange_explicit(&reader->held, false, memory_order_relaxed);
}

/* ---- epochs ------------------------------------------------------------------------------------ */

int st_reader_start(struct st_reader *reader, uint64_t count, st_reader_plan *plan, void *context,
                    struct stoker_error *err)
{
    (void)err;
    pthread_mutex_lock(&reader->lock);
    reader->count = count;
    reader->plan = plan;
    reader->plan_context = context;
    st_ring_start(reader);
    reader->cancelled = false;
    if (reader->backend && st_ring_ready(reader))
        reader->backend->wake(reader);
    pthread_mutex_unlock(&reader->lock);
    return 0;
}

void st_reader_cancel(struct st_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    reader->cancelled = true;
    for (uint32_t i = 0; i < reader->depth; i++)
        if (reader->berths[i].waiters)
            pthread_cond_broadcast(&reader->berths[i].moved);
    if (reader->backend)
        reader->backend->wake(reader);
    pthread_mutex_unlock(&reader->lock);
}

void st_reader_stop(struct st_reader *reader)
{
    st_reader_cancel(reader);
    pthread_mutex_lock(&reader->lock);
    while (reader->in_flight)
        pthread_cond_wait(&reader->quiet, &reader->lock);
    pthread_mutex_unlock(&reader->lock);
}

/* ---- opening and closing ----------------------------------------------------------------------- */

static int wanted_backend(enum st_reader_backend *backend, struct stoker_error *err)
{
    static const char *const names[] = {"auto", "uring", "pool", "inline"};
    const char *name = *backend == ST_READER_AUTO ? getenv("STOKER_READER") : NULL;
    if (!name || !*name)
        return 0;
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) {
            *backend = (enum st_reader_backend)i;
            return 0;
        }
    return st_fail(err, STOKER_EINVAL, "STOKER_READER=%s: expected auto, uring, pool or inline", name);
}

/* Determines whether samples are in memory, on a server or (neither) in files. The first sample is
 * representative, except that a table may list both files and URLs. */
static void find_storage(const struct stoker_dataset *data, bool *memory, bool *remote)
{
    enum { SAMPLES_CHECKED = 16 };
    struct st_extent extent;
    const uint64_t count = data->source->locate ? st_dataset_count(data) : 0;
    *memory = *remote = false;
    for (uint64_t i = 0; i < SAMPLES_CHECKED && i < count; i++) {
        const bool known =
            !st_locate(data, count / SAMPLES_CHECKED * i + count % SAMPLES_CHECKED * i / SAMPLES_CHECKED,
                       &extent, NULL);
        *memory = *memory || (known && i == 0 && extent.memory);
        *remote = *remote || (known && !extent.memory && (extent.remote || extent.objects));
    }
}

uint32_t st_reader_depth(const struct stoker_dataset *data)
{
    bool memory, remote;
    find_storage(data, &memory, &remote);
    return remote ? DEPTH_REMOTE : DEPTH_LOCAL;
}

static int open_backend(struct st_reader *reader, const struct st_backend *backend,
                        struct stoker_error *err)
{
    reader->backend = backend;
    const int rc = backend->open(reader, err);
    if (rc) {
        backend->close(reader);
        reader->backend = NULL;
    } else {
        reader->name = backend->name;
    }
    return rc;
}

static int choose_backend(struct st_reader *reader, enum st_reader_backend backend,
                          struct stoker_error *err)
{
    const int rc = wanted_backend(&backend, err);
    if (rc)
        return rc;
    reader->name = "inline";
    find_storage(reader->data, &reader->memory, &reader->remote);
    if (reader->memory) {
        reader->name = "memory";
        return 0;
    }
    if (backend == ST_READER_INLINE)
        return 0;
    if (backend == ST_READER_POOL || !reader->data->source->locate || reader->remote)
        return open_backend(reader, &st_backend_pool, err);
#if ST_HAVE_URING
    const int failed = open_backend(reader, &st_backend_uring, &reader->no_uring);
    if (failed && backend == ST_READER_URING && err)
        *err = reader->no_uring;
    if (!failed || backend == ST_READER_URING)
        return failed;
#else
    if (backend == ST_READER_URING)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "STOKER_READER=uring: this build has no liburing; use pool");
#endif
    return open_backend(reader, &st_backend_pool, err);
}

int st_reader_open(struct st_reader **out, struct stoker_dataset *data, enum st_reader_backend backend,
                   uint32_t depth, struct stoker_error *err)
{
    if (depth == 0 || depth > DEPTH_MAX)
        return st_fail(err, STOKER_EINVAL, "read-ahead of %u samples: expected 1 to %d", depth,
                       DEPTH_MAX);
    struct st_reader *reader = st_calloc(1, sizeof *reader);
    struct st_berth *berths = st_calloc(depth, sizeof *berths);
    struct st_buffer *spare = st_calloc(depth, sizeof *spare);
    if (!reader || !berths || !spare) {
        free(reader);
        free(berths);
        free(spare);
        return st_fail(err, STOKER_ENOMEM, "out of memory for a read-ahead of %u samples", depth);
    }
    reader->data = st_dataset_hold(data);
    reader->owner = getpid();
    reader->berths = berths;
    reader->spare = spare;
    reader->budget = UINT64_MAX;
    reader->depth = depth;
    reader->limit = depth;
    reader->wake_at = wake_at(depth);
    reader->cancelled = true; /* until started */
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->quiet, NULL);
    for (uint32_t i = 0; i < depth; i++)
        pthread_cond_init(&berths[i].moved, NULL);
    const int rc = choose_backend(reader, backend, err);
    if (rc)
        st_reader_close(reader);
    else
        *out = reader;
    return rc;
}

void st_reader_close(struct st_reader *reader)
{
    if (!reader)
        return;
    /* In a forked child there are no threads to join, and the lock may stay locked forever. */
    const bool own = reader->owner == getpid();
    if (own)
        st_reader_stop(reader);
    if (reader->backend)
        own ? reader->backend->close(reader) : reader->backend->forget(reader);
    for (uint32_t i = 0; i < reader->depth; i++) {
        st_buffer_free(&reader->berths[i].buffer);
        if (own)
            pthread_cond_destroy(&reader->berths[i].moved);
    }
    if (own) {
        pthread_cond_destroy(&reader->quiet);
        pthread_mutex_destroy(&reader->lock);
    }
    for (uint32_t i = 0; i < reader->spares; i++)
        st_buffer_free(&reader->spare[i]);
    free(reader->spare);
    free(reader->berths);
    st_dataset_drop(reader->data);
    free(reader);
}

void st_reader_stats(struct st_reader *reader, struct st_reader_stats *out)
{
    pthread_mutex_lock(&reader->lock);
    *out = reader->stats;
    out->backend = reader->name;
    /* The backend only matters once it reads. */
    out->note = reader->no_uring.code && reader->stats.ahead ? reader->no_uring.message : NULL;
    pthread_mutex_unlock(&reader->lock);
}

bool st_reader_in_memory(const struct st_reader *reader) { return reader->memory; }
