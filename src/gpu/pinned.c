/* pinned.c - host memory that GPUs can copy from directly, for batches that stay on the CPU
 *
 * Such a batch may be released while copies from it are still queued in streams that we do not know. We
 * can mark the streams that the consumer names, each when it names it, and the default stream of every
 * GPU that this process uses.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/cuda.h"
#include "gpu/gpu.h"

#include <stdlib.h>

/* Precedes the memory; one page, so that the memory itself is page-aligned. */
enum { HEADER_BYTES = 4096 };
struct header {
    const struct st_cuda *cuda;
    struct CUctx_st *context;
    int device;
};

static void *pinned_take(uint64_t bytes, struct stoker_error *err)
{
    const struct st_cuda *cuda;
    struct st_cuda_inside inside;
    struct header own;
    uint64_t all;
    void *memory = NULL;
    if (!st_add(bytes, HEADER_BYTES, &all) || all > SIZE_MAX / 2) {
        st_fail(err, STOKER_EINVAL, "cannot pin %llu bytes: too many", (unsigned long long)bytes);
        return NULL;
    }
    if (st_cuda_get(&cuda, err))
        return NULL;
    own.cuda = cuda;
    const int ordinal = st_cuda_current_device(cuda);
    int result = cuda->DeviceGet(&own.device, ordinal);
    if (!result)
        result = cuda->DevicePrimaryCtxRetain(&own.context, own.device);
    if (result) {
        st_cuda_fail(cuda, ordinal, result, err, "using the device's primary context");
        return NULL;
    }
    result = st_cuda_enter(&inside, cuda, own.context);
    if (!result) {
        result = cuda->MemHostAlloc(&memory, all, ST_CU_HOST_PORTABLE);
        st_cuda_leave(&inside);
    }
    if (result) {
        st_cuda_fail(cuda, ordinal, result, err, "pinning host memory");
        cuda->DevicePrimaryCtxRelease(own.device);
        return NULL;
    }
    *(struct header *)memory = own;
    return (uint8_t *)memory + HEADER_BYTES;
}

static void pinned_give(void *memory)
{
    struct st_cuda_inside inside;
    if (!memory)
        return;
    struct header *begin = (struct header *)((uint8_t *)memory - HEADER_BYTES);
    const struct header own = *begin;
    if (!st_cuda_enter(&inside, own.cuda, own.context)) {
        own.cuda->MemFreeHost(begin);
        st_cuda_leave(&inside);
    }
    own.cuda->DevicePrimaryCtxRelease(own.device);
}

/* An event in one context, which it keeps alive. */
struct note {
    struct CUctx_st *context;
    struct CUevent_st *event;
    struct CUstream_st *stream; /* in which it was recorded */
    int device;
    bool recorded;
};

struct mark {
    const struct st_cuda *cuda;
    int device_count;
    uint32_t named_count;
    struct note *named;       /* the consumer's streams */
    struct note by_default[]; /* one per device */
};

static struct mark *new_mark(void)
{
    const struct st_cuda *cuda;
    int count = 0;
    if (st_cuda_get(&cuda, NULL) || cuda->DeviceGetCount(&count) || count < 0)
        return NULL;
    struct mark *mark = st_calloc(1, sizeof *mark + (uint64_t)count * sizeof mark->by_default[0]);
    if (mark) {
        mark->cuda = cuda;
        mark->device_count = count;
    }
    return mark;
}

static void drop_note(const struct st_cuda *cuda, struct note *note)
{
    struct st_cuda_inside inside;
    if (!note->context)
        return;
    if (note->event && !st_cuda_enter(&inside, cuda, note->context)) {
        cuda->EventDestroy(note->event);
        st_cuda_leave(&inside);
    }
    cuda->DevicePrimaryCtxRelease(note->device);
    *note = (struct note){0};
}

/* Creates the note's event in this context, if necessary; the context is current. */
static bool ready_note(const struct st_cuda *cuda, struct note *note, struct CUctx_st *context)
{
    int device;
    if (note->context == context)
        return true;
    drop_note(cuda, note);
    if (cuda->CtxGetDevice(&device) || cuda->DevicePrimaryCtxRetain(&note->context, device))
        return false;
    note->device = device;
    if (note->context == context &&
        !cuda->EventCreate(&note->event, ST_CU_EVENT_BLOCKING_SYNC | ST_CU_EVENT_DISABLE_TIMING))
        return true;
    drop_note(cuda, note); /* the stream does not belong to a primary context */
    return false;
}

/* Records an event after the work queued in the stream; if that is not possible, waits for the work. In
 * a stream that is being captured, an earlier event stays. */
static void take_note(const struct st_cuda *cuda, struct note *note, struct CUctx_st *context,
                      struct CUstream_st *stream)
{
    struct st_cuda_inside inside;
    bool recorded = false;
    if (st_cuda_enter(&inside, cuda, context))
        return;
    if (!ready_note(cuda, note, context) || st_cuda_record(cuda, note->event, stream, &recorded))
        cuda->StreamSynchronize(stream);
    if (recorded) {
        note->stream = stream;
        note->recorded = true;
    }
    st_cuda_leave(&inside);
}

/* The primary context of a device, if this process uses it: marking must not create one. */
static struct CUctx_st *active_context(const struct st_cuda *cuda, int ordinal, int *device)
{
    struct CUctx_st *context = NULL;
    unsigned flags;
    int active = 0;
    if (cuda->DeviceGet(device, ordinal) || cuda->DevicePrimaryCtxGetState(*device, &flags, &active) ||
        !active || cuda->DevicePrimaryCtxRetain(&context, *device))
        return NULL;
    return context;
}

static void wait_for(const struct st_cuda *cuda, struct CUctx_st *context, struct CUstream_st *stream)
{
    struct st_cuda_inside inside;
    if (st_cuda_enter(&inside, cuda, context))
        return;
    cuda->StreamSynchronize(stream);
    st_cuda_leave(&inside);
}

/* The note of this stream, or one that is free, preferably of the same context. NULL: out of memory. */
static struct note *note_for(struct mark *mark, struct CUctx_st *context, struct CUstream_st *stream)
{
    struct note *unused = NULL;
    for (uint32_t k = 0; k < mark->named_count; k++) {
        struct note *note = &mark->named[k];
        if (note->recorded && note->stream == stream)
            return note; /* what is in a stream now includes what was in it before */
        if (!note->recorded && (!unused || note->context == context))
            unused = note;
    }
    if (unused)
        return unused;
    struct note *named = st_grow(mark->named, mark->named_count + 1, sizeof *named);
    if (!named)
        return NULL;
    mark->named = named;
    named[mark->named_count] = (struct note){0};
    return &named[mark->named_count++];
}

static void mark_named(struct mark *mark, struct CUstream_st *stream)
{
    struct CUctx_st *context = NULL;
    if (mark->cuda->StreamGetCtx(stream, &context))
        return;
    struct note *note = note_for(mark, context, stream);
    if (note)
        take_note(mark->cuda, note, context, stream);
    else
        wait_for(mark->cuda, context, stream);
}

static void mark_defaults(struct mark *mark)
{
    for (int k = 0; k < mark->device_count; k++) {
        int device;
        struct CUctx_st *context = active_context(mark->cuda, k, &device);
        if (!context)
            continue;
        take_note(mark->cuda, &mark->by_default[k], context, ST_CU_STREAM_LEGACY);
        mark->cuda->DevicePrimaryCtxRelease(device);
    }
}

/* Where no memory is left to remember a mark, what is to be marked is waited for. */
static void wait_instead(uintptr_t handle, bool named)
{
    const struct st_cuda *cuda;
    struct CUstream_st *stream = (struct CUstream_st *)handle;
    struct CUctx_st *context = NULL;
    int count = 0;
    if (st_cuda_get(&cuda, NULL))
        return;
    if (named) {
        if (!cuda->StreamGetCtx(stream, &context))
            wait_for(cuda, context, stream);
        return;
    }
    for (int k = 0, device; !cuda->DeviceGetCount(&count) && k < count; k++) {
        context = active_context(cuda, k, &device);
        if (!context)
            continue;
        wait_for(cuda, context, ST_CU_STREAM_LEGACY);
        cuda->DevicePrimaryCtxRelease(device);
    }
}

static void pinned_mark(void **out, uintptr_t handle)
{
    /* The handles with a fixed meaning are default streams. */
    const bool named = handle > (uintptr_t)ST_CU_STREAM_PER_THREAD;
    struct mark *mark = *out ? *out : new_mark();
    if (!mark) {
        wait_instead(handle, named);
        return;
    }
    *out = mark;
    if (named)
        mark_named(mark, (struct CUstream_st *)handle);
    else
        mark_defaults(mark);
}

static bool note_done(const struct st_cuda *cuda, struct note *note, bool wait)
{
    struct st_cuda_inside inside;
    if (!note->recorded || st_cuda_enter(&inside, cuda, note->context))
        return true;
    const int result = wait ? cuda->EventSynchronize(note->event) : cuda->EventQuery(note->event);
    st_cuda_leave(&inside);
    note->recorded = result == ST_CU_NOT_READY;
    return !note->recorded;
}

static bool pinned_marked_done(void *memory, bool wait)
{
    struct mark *mark = memory;
    if (!mark)
        return true;
    bool done = true;
    for (uint32_t k = 0; k < mark->named_count; k++)
        done = note_done(mark->cuda, &mark->named[k], wait) && done;
    for (int k = 0; k < mark->device_count; k++)
        done = note_done(mark->cuda, &mark->by_default[k], wait) && done;
    return done;
}

static void pinned_mark_free(void *memory)
{
    struct mark *mark = memory;
    if (!mark)
        return;
    for (uint32_t k = 0; k < mark->named_count; k++)
        drop_note(mark->cuda, &mark->named[k]);
    free(mark->named);
    for (int k = 0; k < mark->device_count; k++)
        drop_note(mark->cuda, &mark->by_default[k]);
    free(mark);
}

const struct st_pinned_kind st_pinned_cuda = {
    .take = pinned_take,
    .give = pinned_give,
    .mark = pinned_mark,
    .marked_done = pinned_marked_done,
    .mark_free = pinned_mark_free,
};
