/* pinned.c - host memory that GPUs can copy from directly, for batches that stay on the CPU
 *
 * Such a batch may be released while copies from it are still queued in streams that we do not know. We
 * can mark the stream that the consumer names, and the default stream of every GPU that this process
 * uses.
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
    int device;
    bool recorded;
};

struct mark {
    const struct st_cuda *cuda;
    int device_count;
    struct note named;        /* the consumer's stream */
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

/* Records an event after the work queued in the stream; if that is not possible, waits for the work. */
static void take_note(const struct st_cuda *cuda, struct note *note, struct CUctx_st *context,
                      struct CUstream_st *stream)
{
    struct st_cuda_inside inside;
    note->recorded = false;
    if (st_cuda_enter(&inside, cuda, context))
        return;
    if (!ready_note(cuda, note, context) || st_cuda_record(cuda, note->event, stream, &note->recorded))
        cuda->StreamSynchronize(stream);
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

static void pinned_mark(void **out, uintptr_t handle)
{
    struct CUstream_st *stream = (struct CUstream_st *)handle;
    struct mark *mark = *out ? *out : new_mark();
    struct CUctx_st *context = NULL;
    if (!mark)
        return;
    *out = mark;
    mark->named.recorded = false;
    /* The handles with a fixed meaning are the default streams, which are handled below. */
    if (handle > (uintptr_t)ST_CU_STREAM_PER_THREAD && !mark->cuda->StreamGetCtx(stream, &context))
        take_note(mark->cuda, &mark->named, context, stream);
    for (int k = 0; k < mark->device_count; k++) {
        int device;
        mark->by_default[k].recorded = false;
        context = active_context(mark->cuda, k, &device);
        if (!context)
            continue;
        take_note(mark->cuda, &mark->by_default[k], context, ST_CU_STREAM_LEGACY);
        mark->cuda->DevicePrimaryCtxRelease(device);
    }
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
    bool done = note_done(mark->cuda, &mark->named, wait);
    for (int k = 0; k < mark->device_count; k++)
        done = note_done(mark->cuda, &mark->by_default[k], wait) && done;
    return done;
}

static void pinned_mark_free(void *memory)
{
    struct mark *mark = memory;
    if (!mark)
        return;
    drop_note(mark->cuda, &mark->named);
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
