/* fake_streams.h - streams as queues, each with a thread that works it off; events between them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_FAKE_STREAMS_H
#define ST_TESTS_FAKE_STREAMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUctx_st;

struct CUevent_st {
    int refs; /* of handles and of queued work */
    uint64_t recorded,
        completed; /* how often it was put into a stream, and which of these have passed */
    bool blocking;
};

enum work_kind { WORK_COPY, WORK_FILL, WORK_CALL, WORK_KERNEL, WORK_RECORD, WORK_WAIT, WORK_AFTER };

struct work {
    struct work *next;
    enum work_kind kind;
    void *to;
    const void *from;
    void *owned; /* a copy of what the source was, freed with the work */
    size_t bytes;
    int value;
    struct CUevent_st *event;
    struct CUstream_st *other; /* WORK_AFTER: of this stream ... */
    uint64_t number;           /* ... so many pieces; of an event: which recording */
    void (*call)(void *);
    void (*kernel)(const void *, unsigned);
    void *argument;
};

struct CUstream_st {
    struct CUstream_st *next; /* all there ever were: a handle is never given twice */
    struct CUctx_st *context;
    pthread_t thread;
    bool non_blocking, dead, ending;
    struct work *head, **tail;
    uint64_t queued, finished;
};

/* One lock for everything; `changed` is signalled when anything did. */
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;

/* Whether the bytes are device memory or pinned; with the lock held. (fake_cuda.c) */
bool fake_there(const void *memory, size_t bytes, bool device);
void fake_illegal(void);
unsigned fake_delay_us(void);
int fake_context_index(const struct CUctx_st *context);

/* All with the lock held. */
struct CUstream_st *fake_stream_new(struct CUctx_st *context, bool non_blocking);
/* The stream that a handle means in this context and thread; NULL: none. */
struct CUstream_st *fake_stream_of(struct CUstream_st *handle, struct CUctx_st *context);
void fake_stream_put(struct CUstream_st *stream, struct work work);
void fake_stream_drain(struct CUstream_st *stream);
void fake_stream_end(struct CUstream_st *stream);
void fake_streams_drain(struct CUctx_st *context);
void fake_streams_end(void);
int fake_streams_alive(void);
void fake_event_drop(struct CUevent_st *event);

#endif
