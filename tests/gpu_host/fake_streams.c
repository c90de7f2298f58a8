/* fake_streams.c - streams as queues, each with a thread that works it off; events between them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fake_streams.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed = PTHREAD_COND_INITIALIZER;

static struct CUstream_st *streams;
static struct CUstream_st *legacy[8]; /* the default stream of each context, made when first used */
static _Thread_local struct CUstream_st *per_thread;

void fake_event_drop(struct CUevent_st *event)
{
    if (!--event->refs)
        free(event);
}

/* The part of a piece of work that takes time, without the lock. */
static void carry_out(const struct work *work)
{
    switch (work->kind) {
    case WORK_COPY:
        memcpy(work->to, work->from, work->bytes);
        break;
    case WORK_FILL:
        memset(work->to, work->value, work->bytes);
        break;
    case WORK_CALL:
        work->call(work->argument);
        break;
    case WORK_KERNEL:
        work->kernel(work->owned, (unsigned)work->number);
        break;
    default:
        break;
    }
}

static bool must_wait(const struct work *work)
{
    return (work->kind == WORK_WAIT && work->event->completed < work->number) ||
           (work->kind == WORK_AFTER && work->other->finished < work->number);
}

/* Both ends of a copy must be there when it happens, not only when it was asked for. */
static bool allowed(const struct work *work)
{
    if (work->kind != WORK_COPY && work->kind != WORK_FILL)
        return true;
    const bool target =
        fake_there(work->to, work->bytes, true) || fake_there(work->to, work->bytes, false);
    const bool source = work->kind == WORK_FILL || work->owned ||
                        fake_there(work->from, work->bytes, true) ||
                        fake_there(work->from, work->bytes, false);
    return (target || work->value) && source;
}

static void run_one(struct CUstream_st *stream, struct work *work, unsigned *seed)
{
    const unsigned delay = fake_delay_us();
    const bool run = allowed(work);
    if (!run)
        fake_illegal();
    pthread_mutex_unlock(&fake_lock);
    *seed = *seed * 1664525u + 1013904223u;
    if (delay && work->kind != WORK_RECORD)
        usleep((*seed >> 8) % delay);
    if (run)
        carry_out(work);
    pthread_mutex_lock(&fake_lock);
    if (work->kind == WORK_RECORD && work->event->completed < work->number)
        work->event->completed = work->number;
    if (work->event)
        fake_event_drop(work->event);
    stream->finished++;
    free(work->owned);
    free(work);
    pthread_cond_broadcast(&fake_changed);
}

static void *stream_main(void *argument)
{
    struct CUstream_st *stream = argument;
    unsigned seed = (unsigned)(uintptr_t)stream;
    pthread_mutex_lock(&fake_lock);
    for (;;) {
        struct work *work = stream->head;
        if (!work && stream->ending)
            break;
        if (!work || must_wait(work)) {
            pthread_cond_wait(&fake_changed, &fake_lock);
            continue;
        }
        stream->head = work->next;
        if (!stream->head)
            stream->tail = &stream->head;
        run_one(stream, work, &seed);
    }
    pthread_mutex_unlock(&fake_lock);
    return NULL;
}

struct CUstream_st *fake_stream_new(struct CUctx_st *context, bool non_blocking)
{
    struct CUstream_st *stream = calloc(1, sizeof *stream);
    if (!stream)
        abort();
    stream->context = context;
    stream->non_blocking = non_blocking;
    stream->tail = &stream->head;
    if (pthread_create(&stream->thread, NULL, stream_main, stream))
        abort();
    stream->next = streams;
    streams = stream;
    return stream;
}

struct CUstream_st *fake_stream_of(struct CUstream_st *handle, struct CUctx_st *context)
{
    if ((uintptr_t)handle <= 1) {
        struct CUstream_st **own = &legacy[fake_context_index(context)];
        if (!*own)
            *own = fake_stream_new(context, false);
        return *own;
    }
    if ((uintptr_t)handle == 2) {
        if (!per_thread)
            per_thread = fake_stream_new(context, false);
        return per_thread;
    }
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        if (stream == handle && !stream->dead)
            return stream;
    return NULL;
}

static void append(struct CUstream_st *stream, struct work work)
{
    struct work *piece = malloc(sizeof *piece);
    if (!piece)
        abort();
    *piece = work;
    piece->next = NULL;
    if (piece->event)
        piece->event->refs++;
    *stream->tail = piece;
    stream->tail = &piece->next;
    stream->queued++;
    pthread_cond_broadcast(&fake_changed);
}

/* The default stream comes after all blocking streams, and they after it. */
void fake_stream_put(struct CUstream_st *stream, struct work work)
{
    struct CUstream_st *first = legacy[fake_context_index(stream->context)];
    for (struct CUstream_st *other = streams; other; other = other->next)
        if (other != stream && other->context == stream->context && !other->non_blocking &&
            (stream == first || (other == first && !stream->non_blocking)) &&
            other->finished < other->queued)
            append(stream, (struct work){.kind = WORK_AFTER, .other = other, .number = other->queued});
    append(stream, work);
}

void fake_stream_drain(struct CUstream_st *stream)
{
    const uint64_t until = stream->queued;
    while (stream->finished < until)
        pthread_cond_wait(&fake_changed, &fake_lock);
}

void fake_stream_end(struct CUstream_st *stream)
{
    stream->dead = stream->ending = true;
    pthread_cond_broadcast(&fake_changed);
    pthread_mutex_unlock(&fake_lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_lock(&fake_lock);
}

void fake_streams_drain(struct CUctx_st *context)
{
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        if (stream->context == context)
            fake_stream_drain(stream);
}

void fake_streams_end(void)
{
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        if (!stream->dead)
            fake_stream_end(stream);
    while (streams) {
        struct CUstream_st *gone = streams;
        streams = gone->next;
        free(gone);
    }
    memset(legacy, 0, sizeof legacy);
    per_thread = NULL;
}

int fake_streams_alive(void)
{
    int alive = 0;
    for (struct CUstream_st *stream = streams; stream; stream = stream->next)
        alive += !stream->dead;
    for (size_t k = 0; k < sizeof legacy / sizeof legacy[0]; k++)
        alive -= legacy[k] != NULL;
    return alive;
}
