/* fake_work.c - the fake driver's memory, and the work that goes into its streams
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fake_state.h"

#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static size_t taken(int device)
{
    size_t bytes = 0;
    for (const struct block *block = fake_blocks; block; block = block->next)
        bytes += block->device == device ? block->bytes : 0;
    return bytes;
}

static int add_block(size_t bytes, int device, size_t limit, void **out)
{
    if (!bytes)
        return INVALID_VALUE;
    if (fake_disturbs_capture())
        return CAPTURE_UNSUPPORTED;
    if (bytes > limit || taken(device) > limit - bytes)
        return NO_MEMORY;
    struct block *block = calloc(1, sizeof *block);
    uint8_t *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!block || !memory)
        abort();
    memset(memory, 0xa5, bytes);
    *block = (struct block){fake_blocks, memory, bytes, device};
    fake_blocks = block;
    *out = memory;
    return 0;
}

static int remove_block(const void *memory, bool device)
{
    for (struct block **link = &fake_blocks; *link; link = &(*link)->next)
        if ((*link)->memory == memory && ((*link)->device >= 0) == device) {
            struct block *gone = *link;
            *link = gone->next;
            free(gone->memory);
            free(gone);
            return 0;
        }
    return INVALID_VALUE;
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *all)
{
    BEGIN(CONTEXT);
    *all = fake_cuda.memory;
    *free_bytes = *all - taken(fake_context_index(fake_current()));
    return fake_end(0);
}

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    void *memory = NULL;
    BEGIN(CONTEXT);
    const int result = add_block(bytes, fake_context_index(fake_current()), fake_cuda.memory, &memory);
    *address = (uint64_t)(uintptr_t)memory;
    return fake_end(result);
}

EXPORT int cuMemFree_v2(uint64_t address)
{
    BEGIN(CONTEXT);
    return fake_end(remove_block((void *)(uintptr_t)address, true));
}

EXPORT int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    BEGIN(CONTEXT);
    return fake_end(flags == 1 ? add_block(bytes, -1, fake_cuda.pinned, memory) : INVALID_VALUE);
}

EXPORT int cuMemFreeHost(void *memory)
{
    BEGIN(CONTEXT);
    return fake_end(remove_block(memory, false));
}

/* ---- work ---- */

static int put(struct CUstream_st *handle, struct work work)
{
    struct CUstream_st *stream = fake_stream_of(handle, fake_current());
    if (!stream) {
        free(work.owned);
        return INVALID_HANDLE;
    }
    fake_stream_put(stream, work);
    return 0;
}

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct CUstream_st *stream)
{
    BEGIN(CONTEXT);
    struct work work = {.kind = WORK_COPY, .to = (void *)(uintptr_t)to, .from = from, .bytes = bytes};
    if (!fake_there(from, bytes, false)) { /* ordinary pages are read before the call returns */
        work.from = work.owned = malloc(bytes);
        if (!work.owned)
            abort();
        memcpy(work.owned, from, bytes);
    }
    fake_counts.copied += bytes;
    return fake_end(put(stream, work));
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct CUstream_st *stream)
{
    BEGIN(CONTEXT);
    return fake_end(put(
        stream,
        (struct work){
            .kind = WORK_COPY, .to = to, .from = (void *)(uintptr_t)from, .bytes = bytes, .value = 1}));
}

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, struct CUstream_st *stream)
{
    BEGIN(CONTEXT);
    return fake_end(put(stream, (struct work){.kind = WORK_COPY,
                                              .to = (void *)(uintptr_t)to,
                                              .from = (void *)(uintptr_t)from,
                                              .bytes = bytes}));
}

EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, struct CUstream_st *stream)
{
    BEGIN(CONTEXT);
    return fake_end(put(
        stream,
        (struct work){.kind = WORK_FILL, .to = (void *)(uintptr_t)to, .value = value, .bytes = bytes}));
}

EXPORT int cuLaunchHostFunc(struct CUstream_st *stream, void (*work)(void *), void *argument)
{
    BEGIN(CONTEXT);
    return fake_end(put(stream, (struct work){.kind = WORK_CALL, .call = work, .argument = argument}));
}

EXPORT int cuStreamCreate(struct CUstream_st **stream, unsigned flags)
{
    BEGIN(CONTEXT);
    *stream = fake_stream_new(fake_current(), flags & 1);
    return fake_end(0);
}

EXPORT int cuStreamCreateWithPriority(struct CUstream_st **stream, unsigned flags, int priority)
{
    (void)priority;
    return cuStreamCreate(stream, flags);
}

EXPORT int cuStreamDestroy_v2(struct CUstream_st *handle)
{
    BEGIN(CONTEXT);
    struct CUstream_st *stream = (uintptr_t)handle > 2 ? fake_stream_of(handle, fake_current()) : NULL;
    if (!stream)
        return fake_end(INVALID_HANDLE);
    fake_stream_end(stream);
    return fake_end(0);
}

EXPORT int cuStreamSynchronize(struct CUstream_st *handle)
{
    BEGIN(CONTEXT);
    struct CUstream_st *stream = fake_stream_of(handle, fake_current());
    if (!stream)
        return fake_end(INVALID_HANDLE);
    fake_stream_drain(stream);
    return fake_end(fake_poison);
}

EXPORT int cuStreamGetCtx(struct CUstream_st *handle, void **context)
{
    BEGIN(DRIVER);
    const struct CUstream_st *stream = fake_stream_of(handle, fake_current());
    *context = stream ? stream->context : NULL;
    return fake_end(stream ? 0 : INVALID_HANDLE);
}

EXPORT int cuStreamIsCapturing(struct CUstream_st *handle, int *status)
{
    BEGIN(CONTEXT);
    const struct CUstream_st *stream = fake_stream_of(handle, fake_current());
    *status = stream && fake_capture.stream == stream;
    return fake_end(!stream ? INVALID_HANDLE
                    : (uintptr_t)handle <= 1 && fake_capture.stream && !fake_capture.stream->non_blocking
                        ? CAPTURE_IMPLICIT
                        : 0);
}

EXPORT int cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags)
{
    (void)flags;
    BEGIN(CONTEXT);
    if (fake_capture.stream && fake_stream_of(stream, fake_current()) == fake_capture.stream)
        fake_capture.broken = true; /* the event comes from outside */
    return fake_end(
        put(stream, (struct work){.kind = WORK_WAIT, .event = event, .number = event->recorded}));
}

/* ---- events ---- */

EXPORT int cuEventCreate(struct CUevent_st **event, unsigned flags)
{
    BEGIN(CONTEXT);
    *event = calloc(1, sizeof **event);
    if (!*event)
        abort();
    (*event)->refs = 1;
    (*event)->blocking = flags & 1;
    fake_counts.events++;
    return fake_end(flags & 2 ? 0 : INVALID_VALUE); /* timing costs, and nobody here wants it */
}

EXPORT int cuEventDestroy_v2(struct CUevent_st *event)
{
    BEGIN(DRIVER);
    fake_event_drop(event);
    fake_counts.events--;
    return fake_end(0);
}

EXPORT int cuEventRecord(struct CUevent_st *event, struct CUstream_st *handle)
{
    BEGIN(CONTEXT);
    const struct CUstream_st *stream = fake_stream_of(handle, fake_current());
    if (!stream || stream->context != fake_current())
        return fake_end(INVALID_HANDLE);
    if (stream == fake_capture.stream)
        fake_capture.broken = true;
    event->recorded++;
    return fake_end(
        put(handle, (struct work){.kind = WORK_RECORD, .event = event, .number = event->recorded}));
}

EXPORT int cuEventQuery(struct CUevent_st *event)
{
    BEGIN(CONTEXT);
    if (fake_disturbs_capture())
        return fake_end(CAPTURE_UNSUPPORTED);
    return fake_end(event->completed < event->recorded ? NOT_READY : 0);
}

EXPORT int cuEventSynchronize(struct CUevent_st *event)
{
    BEGIN(CONTEXT);
    if (!event->blocking) /* it would spin */
        return fake_end(INVALID_VALUE);
    const uint64_t until = event->recorded;
    while (event->completed < until)
        pthread_cond_wait(&fake_changed, &fake_lock);
    return fake_end(fake_poison);
}

/* ---- kernels ---- */

EXPORT int cuModuleLoadData(void **module, const void *image)
{
    BEGIN(CONTEXT);
    *module = fake_kernels;
    return fake_end(image ? 0 : INVALID_VALUE);
}

EXPORT int cuModuleUnload(void *module)
{
    (void)module;
    BEGIN(CONTEXT);
    return fake_end(0);
}

EXPORT int cuModuleGetFunction(struct CUfunc_st **function, void *module, const char *name)
{
    (void)module;
    BEGIN(CONTEXT);
    for (int k = 0; k < KERNELS_MAX && fake_kernels[k].name; k++)
        if (!strcmp(fake_kernels[k].name, name)) {
            *function = &fake_kernels[k];
            return fake_end(0);
        }
    return fake_end(NOT_FOUND);
}

EXPORT int cuLaunchKernel(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          struct CUstream_st *stream, void **arguments, void **extra)
{
    (void)block_x, (void)block_y, (void)block_z, (void)shared, (void)extra;
    BEGIN(CONTEXT);
    void *argument = malloc(function->bytes);
    if (!argument)
        abort();
    memcpy(argument, arguments[0], function->bytes);
    fake_counts.launches++;
    return fake_end(put(stream, (struct work){.kind = WORK_KERNEL,
                                              .kernel = function->run,
                                              .owned = argument,
                                              .number = (uint64_t)grid_x * grid_y * grid_z}));
}
