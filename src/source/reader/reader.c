/* reader.c - fetches the bytes of samples ahead of the workers that decode them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/cpu.h"
#include "source/reader/ring.h"
#include "st_config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* By URL: 5,000 requests a second, of which each takes 30 ms and some for its way, are 150 at once and more. */
enum { DEPTH_LOCAL = 64, DEPTH_REMOTE = 320 };
enum { DEPTH_MAX = 65536, WAKE_MAX = 16, CALM = 64 /* reads that tell that the store is in memory */ };

static struct st_berth *berth_of(struct st_reader *reader, uint64_t ticket)
{
    return &reader->berths[ticket % reader->depth];
}

/* ---- the ring ---------------------------------------------------------------------------------- */

/* Whether someone has begun to read the ticket, or is through with it. */
static bool begun(struct st_reader *reader, uint64_t ticket)
{
    const struct st_berth *berth = berth_of(reader, ticket);
    return berth->ticket > ticket || (berth->ticket == ticket && berth->state != ST_BERTH_FREE);
}

/* Whether reading ahead pays. */
static bool reads_ahead(const struct st_reader *reader)
{
    return !reader->crowded || reader->calm < CALM;
}

bool st_ring_ready(struct st_reader *reader)
{
    while (reader->next < reader->count && begun(reader, reader->next))
        reader->next++; /* a caller of get was faster */
    return !reader->cancelled && reader->next < reader->count && reads_ahead(reader) &&
           berth_of(reader, reader->next)->state == ST_BERTH_FREE;
}

static void begin(struct st_reader *reader, struct st_berth *berth, enum st_berth_state state)
{
    berth->state = state;
    berth->slept = false;
    reader->free_berths--;
    if (++reader->in_flight > reader->stats.in_flight_max)
        reader->stats.in_flight_max = reader->in_flight;
}

struct st_berth *st_ring_take(struct st_reader *reader)
{
    if (!st_ring_ready(reader))
        return NULL;
    struct st_berth *berth = berth_of(reader, reader->next++);
    begin(reader, berth, ST_BERTH_READING);
    return berth;
}

/* A read is through that slept or did not; the engine comes back where the store begins to make wait. */
static void watch(struct st_reader *reader, bool slept)
{
    const bool ahead = reads_ahead(reader);
    reader->calm = slept ? 0 : reader->calm < CALM ? reader->calm + 1 : CALM;
    if (!ahead && reader->engine && st_ring_ready(reader))
        reader->engine->wake(reader);
}

static void count_read(struct st_reader *reader, struct st_berth *berth, uint64_t bytes)
{
    reader->stats.reads++;
    reader->stats.bytes += bytes;
    reader->stats.buffer_bytes += berth->buffer.capacity - berth->counted;
    berth->counted = berth->buffer.capacity;
    watch(reader, berth->slept);
    if (--reader->in_flight == 0)
        pthread_cond_broadcast(&reader->quiet);
}

static void move(struct st_berth *berth, enum st_berth_state state)
{
    berth->state = state;
    if (berth->waiters)
        pthread_cond_broadcast(&berth->moved);
}

void st_ring_put(struct st_reader *reader, struct st_berth *berth, int code)
{
    pthread_mutex_lock(&reader->lock);
    berth->code = code;
    count_read(reader, berth, code ? 0 : berth->bytes.size);
    move(berth, ST_BERTH_READY);
    pthread_mutex_unlock(&reader->lock);
}

/* With the lock held. */
static void set_free(struct st_reader *reader, struct st_berth *berth)
{
    berth->ticket += reader->depth;
    reader->free_berths++;
    move(berth, ST_BERTH_FREE);
    /* Only when several are free, so that the engine is not woken for each file; get sees to the rest.
     */
    if (reader->engine && reader->free_berths >= reader->wake_at && st_ring_ready(reader))
        reader->engine->wake(reader);
}

/* With the lock held: waits until the berth is the ticket's and the engine is not at work on it; false
 * when cancelled. */
static bool await(struct st_reader *reader, struct st_berth *berth, uint64_t ticket)
{
    while (!reader->cancelled && (berth->ticket != ticket || berth->state == ST_BERTH_READING)) {
        berth->waiters++;
        pthread_cond_wait(&berth->moved, &reader->lock);
        berth->waiters--;
    }
    return !reader->cancelled;
}

/* ---- get and done ------------------------------------------------------------------------------ */

static int cancelled(struct stoker_error *err)
{
    return st_fail(err, STOKER_ECANCELED, "reading was stopped");
}

static int get_memory(struct st_reader *reader, uint64_t ticket, struct st_bytes *out,
                      struct stoker_error *err)
{
    pthread_mutex_lock(&reader->lock);
    const bool stopped = reader->cancelled;
    pthread_mutex_unlock(&reader->lock);
    if (stopped)
        return cancelled(err);
    const int rc =
        st_read_sample(reader->data, reader->plan(reader->plan_context, ticket), NULL, out, err);
    pthread_mutex_lock(&reader->lock);
    reader->stats.reads++;
    reader->stats.bytes += rc ? 0 : out->size;
    pthread_mutex_unlock(&reader->lock);
    return rc;
}

long st_times_slept(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nvcsw;
}

int st_ring_read(struct st_reader *reader, struct st_berth *berth, struct st_bytes *out,
                 struct stoker_error *err)
{
    const long slept = reader->crowded ? st_times_slept() : 0;
    const int rc = st_read_until(reader->data, st_ring_sample(reader, berth), &reader->stopped,
                                 &berth->buffer, out, err);
    berth->slept = reader->crowded && st_times_slept() > slept;
    return rc;
}

/* Reads into a berth that this caller has begun. */
static int read_here(struct st_reader *reader, struct st_berth *berth, struct st_bytes *out,
                     struct stoker_error *err)
{
    const int rc = st_ring_read(reader, berth, out, err);
    pthread_mutex_lock(&reader->lock);
    count_read(reader, berth, rc ? 0 : out->size);
    if (rc)
        set_free(reader, berth);
    pthread_mutex_unlock(&reader->lock);
    return rc;
}

/* With the lock held: takes over what the engine has read. */
static int take_read(struct st_reader *reader, struct st_berth *berth, struct st_bytes *out,
                     struct stoker_error *err)
{
    if (berth->code) {
        const int rc = berth->code;
        if (err)
            *err = berth->err;
        set_free(reader, berth);
        return rc;
    }
    berth->state = ST_BERTH_LENT;
    *out = berth->bytes;
    return STOKER_OK;
}

int st_reader_get(struct st_reader *reader, uint64_t ticket, struct st_bytes *out,
                  struct stoker_error *err)
{
    if (reader->memory)
        return get_memory(reader, ticket, out, err);
    struct st_berth *berth = berth_of(reader, ticket);
    pthread_mutex_lock(&reader->lock);
    int rc = STOKER_OK;
    bool here = false;
    if (!await(reader, berth, ticket)) {
        rc = cancelled(err);
    } else if (berth->state == ST_BERTH_FREE) {
        here = true; /* not begun yet: waiting for the engine would take longer */
        begin(reader, berth, ST_BERTH_LENT);
    } else {
        rc = take_read(reader, berth, out, err);
    }
    pthread_mutex_unlock(&reader->lock);
    return here ? read_here(reader, berth, out, err) : rc;
}

void st_reader_done(struct st_reader *reader, uint64_t ticket)
{
    if (reader->memory)
        return;
    struct st_berth *berth = berth_of(reader, ticket);
    pthread_mutex_lock(&reader->lock);
    if (berth->ticket == ticket && berth->state == ST_BERTH_LENT)
        set_free(reader, berth);
    pthread_mutex_unlock(&reader->lock);
}

void st_reader_callers(struct st_reader *reader, uint32_t count)
{
    reader->crowded = count >= st_cpu_count();
}

/* ---- epochs ------------------------------------------------------------------------------------ */

int st_reader_start(struct st_reader *reader, uint64_t count, st_reader_plan *plan, void *context,
                    struct stoker_error *err)
{
    (void)err;
    pthread_mutex_lock(&reader->lock);
    for (uint32_t i = 0; i < reader->depth; i++) {
        reader->berths[i].ticket = i;
        reader->berths[i].state = ST_BERTH_FREE;
    }
    reader->free_berths = reader->depth;
    reader->count = count;
    reader->next = 0;
    reader->plan = plan;
    reader->plan_context = context;
    reader->cancelled = false;
    atomic_store(&reader->stopped, false);
    if (reader->engine)
        reader->engine->wake(reader);
    pthread_mutex_unlock(&reader->lock);
    return 0;
}

void st_reader_cancel(struct st_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    reader->cancelled = true;
    atomic_store(&reader->stopped, true);
    for (uint32_t i = 0; i < reader->depth; i++)
        if (reader->berths[i].waiters)
            pthread_cond_broadcast(&reader->berths[i].moved);
    if (reader->engine)
        reader->engine->wake(reader);
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

static int wanted_engine(enum st_reader_engine *engine, struct stoker_error *err)
{
    static const char *const names[] = {"auto", "uring", "pool", "inline"};
    const char *wish = *engine == ST_READER_AUTO ? getenv("STOKER_READER") : NULL;
    if (!wish || !*wish)
        return 0;
    for (int i = 0; i < 4; i++)
        if (!strcmp(wish, names[i])) {
            *engine = (enum st_reader_engine)i;
            return 0;
        }
    return st_fail(err, STOKER_EINVAL, "STOKER_READER=%s: expected auto, uring, pool or inline", wish);
}

/* In memory, on a server, or (neither) in files: as the first sample is, so are all, but that a table
 * may name files and URLs. */
static void look_where(const struct stoker_dataset *data, bool *memory, bool *remote)
{
    enum { LOOKS = 16 };
    struct st_extent extent;
    const uint64_t count = data->source->locate ? st_dataset_count(data) : 0;
    *memory = *remote = false;
    for (uint64_t i = 0; i < LOOKS && i < count; i++) {
        const bool known =
            !st_locate(data, count / LOOKS * i + count % LOOKS * i / LOOKS, &extent, NULL);
        *memory = *memory || (known && i == 0 && extent.memory);
        *remote = *remote || (known && !extent.memory && (extent.remote || extent.objects));
    }
}

uint32_t st_reader_depth(const struct stoker_dataset *data)
{
    bool memory, remote;
    look_where(data, &memory, &remote);
    return remote ? DEPTH_REMOTE : DEPTH_LOCAL;
}

static int open_engine(struct st_reader *reader, const struct st_engine *engine,
                       struct stoker_error *err)
{
    reader->engine = engine;
    const int rc = engine->open(reader, err);
    if (rc) {
        engine->close(reader);
        reader->engine = NULL;
    } else {
        reader->name = engine->name;
    }
    return rc;
}

static int choose_engine(struct st_reader *reader, enum st_reader_engine engine,
                         struct stoker_error *err)
{
    const int rc = wanted_engine(&engine, err);
    if (rc)
        return rc;
    reader->name = "inline";
    look_where(reader->data, &reader->memory, &reader->remote);
    if (reader->memory) {
        reader->name = "memory";
        return 0;
    }
    if (engine == ST_READER_INLINE)
        return 0;
    if (engine == ST_READER_POOL || !reader->data->source->locate || reader->remote)
        return open_engine(reader, &st_engine_pool, err);
#if ST_HAVE_URING
    const int failed = open_engine(reader, &st_engine_uring, err);
    if (!failed || engine == ST_READER_URING)
        return failed;
#else
    if (engine == ST_READER_URING)
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "io_uring: this build has none; use the pool of threads");
#endif
    return open_engine(reader, &st_engine_pool, err);
}

int st_reader_open(struct st_reader **out, struct stoker_dataset *data, enum st_reader_engine engine,
                   uint32_t depth, struct stoker_error *err)
{
    if (depth == 0 || depth > DEPTH_MAX)
        return st_fail(err, STOKER_EINVAL, "a read-ahead of %u samples: expected 1 to %d", depth,
                       DEPTH_MAX);
    struct st_reader *reader = st_calloc(1, sizeof *reader);
    struct st_berth *berths = st_calloc(depth, sizeof *berths);
    if (!reader || !berths) {
        free(reader);
        free(berths);
        return st_fail(err, STOKER_ENOMEM, "out of memory for a read-ahead of %u samples", depth);
    }
    reader->data = st_dataset_hold(data);
    reader->owner = getpid();
    reader->berths = berths;
    reader->depth = depth;
    reader->wake_at = depth / 8 < 1 ? 1 : depth / 8 > WAKE_MAX ? WAKE_MAX : depth / 8;
    reader->cancelled = true; /* until started */
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->quiet, NULL);
    for (uint32_t i = 0; i < depth; i++)
        pthread_cond_init(&berths[i].moved, NULL);
    const int rc = choose_engine(reader, engine, err);
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
    /* In a forked child there are no threads to join, and the lock may be held for ever. */
    const bool own = reader->owner == getpid();
    if (own)
        st_reader_stop(reader);
    if (reader->engine)
        own ? reader->engine->close(reader) : reader->engine->forget(reader);
    for (uint32_t i = 0; i < reader->depth; i++) {
        st_buffer_free(&reader->berths[i].buffer);
        if (own)
            pthread_cond_destroy(&reader->berths[i].moved);
    }
    if (own) {
        pthread_cond_destroy(&reader->quiet);
        pthread_mutex_destroy(&reader->lock);
    }
    free(reader->berths);
    st_dataset_drop(reader->data);
    free(reader);
}

void st_reader_stats(struct st_reader *reader, struct st_reader_stats *out)
{
    pthread_mutex_lock(&reader->lock);
    *out = reader->stats;
    out->engine = reader->name;
    pthread_mutex_unlock(&reader->lock);
}

bool st_reader_in_memory(const struct st_reader *reader) { return reader->memory; }
