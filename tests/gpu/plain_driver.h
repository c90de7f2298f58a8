/* plain_driver.h - a CUDA driver of plain memory, which counts what it is asked for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_GPU_PLAIN_DRIVER_H
#define ST_TESTS_GPU_PLAIN_DRIVER_H

#include "gpu/slots.h"

#include <stdlib.h>
#include <string.h>

static int entered, left_inside, events, streams, allocated, syncs, record_fails;

static int ctx_push(struct CUctx_st *context)
{
    (void)context;
    entered++;
    return 0;
}
static int ctx_pop(struct CUctx_st **context)
{
    (void)context;
    entered--;
    return 0;
}
static int exchange(int *mode)
{
    (void)mode;
    return 0;
}
static int priority_range(int *least, int *greatest)
{
    *least = 0;
    *greatest = -3;
    return 0;
}
static int stream_new(struct CUstream_st **stream, unsigned flags, int priority)
{
    streams++;
    *stream = (struct CUstream_st *)(uintptr_t)64;
    left_inside += entered != 1 || flags != ST_CU_STREAM_NON_BLOCKING || priority != -3;
    return 0;
}
static int stream_free(struct CUstream_st *stream)
{
    (void)stream;
    streams--;
    return 0;
}
static int stream_sync(struct CUstream_st *stream)
{
    (void)stream;
    left_inside += entered != 1;
    syncs++;
    return 0;
}
static int event_new(struct CUevent_st **event, unsigned flags)
{
    (void)flags;
    events++;
    *event = (struct CUevent_st *)(uintptr_t)64;
    return 0;
}
static int event_free(struct CUevent_st *event)
{
    (void)event;
    events--;
    return 0;
}
static int event_record(struct CUevent_st *event, struct CUstream_st *stream)
{
    (void)event, (void)stream;
    return record_fails;
}
static int event_sync(struct CUevent_st *event)
{
    (void)event;
    left_inside += entered != 1;
    return 0;
}
static size_t spare = 1 << 30;
static int mem_info(size_t *free_bytes, size_t *all)
{
    *free_bytes = spare;
    *all = 1 << 30;
    left_inside += entered != 1;
    return 0;
}
static int mem_alloc(uint64_t *address, size_t bytes)
{
    allocated++;
    *address = (uint64_t)(uintptr_t)malloc(bytes);
    return 0;
}
static int mem_free(uint64_t address)
{
    allocated--;
    free((void *)(uintptr_t)address);
    return 0;
}

static int no_pinned;
static struct {
    uint8_t *memory;
    size_t bytes;
} pinned;
static int host_alloc(void **memory, size_t bytes, unsigned flags)
{
    if (no_pinned)
        return ST_CU_OUT_OF_MEMORY;
    left_inside += entered != 1 || flags != ST_CU_HOST_PORTABLE;
    allocated++;
    *memory = pinned.memory = malloc(bytes);
    pinned.bytes = bytes;
    return 0;
}
static int host_free(void *memory)
{
    allocated--;
    free(memory);
    return 0;
}
static bool is_pinned(const unsigned char *at)
{
    return pinned.memory && at >= pinned.memory && at < pinned.memory + pinned.bytes;
}
static int copies, copy_fails;
static int copy_to_device(uint64_t to, const void *from, size_t bytes, struct CUstream_st *stream)
{
    (void)stream;
    left_inside += entered != 1 || !is_pinned(from) || !is_pinned((const uint8_t *)from + bytes - 1);
    copies++;
    if (!copy_fails)
        memcpy((void *)(uintptr_t)to, from, bytes);
    return copy_fails;
}

static struct st_cuda driver = {
    .version = 13000,
    .CtxPushCurrent = ctx_push,
    .CtxPopCurrent = ctx_pop,
    .ThreadExchangeStreamCaptureMode = exchange,
    .CtxGetStreamPriorityRange = priority_range,
    .StreamCreateWithPriority = stream_new,
    .StreamDestroy = stream_free,
    .StreamSynchronize = stream_sync,
    .EventCreate = event_new,
    .EventDestroy = event_free,
    .EventRecord = event_record,
    .EventSynchronize = event_sync,
    .MemGetInfo = mem_info,
    .MemAlloc = mem_alloc,
    .MemFree = mem_free,
    .MemHostAlloc = host_alloc,
    .MemFreeHost = host_free,
    .MemcpyHtoDAsync = copy_to_device,
};
static struct st_gpu_device device = {.base = {.ordinal = 0}, .cuda = &driver};

#endif
