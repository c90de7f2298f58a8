/* fake_cuda.c - a libcuda.so.1 for machines without a GPU: device memory is host memory, streams are
 * threads
 *
 * It keeps the driver's promises and no others: work is asynchronous and late, memory is freed at once
 * however much work still wants it, contexts must be current, captures are broken by whoever forgets
 * about them. So what is wrong on a GPU goes wrong here, for sanitizers to see.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fake_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STACK_MAX = 16 };

EXPORT struct fake_cuda fake_cuda = {
    .version = 13000, .devices = 2, .memory = 64 << 20, .pinned = 64 << 20, .delay_us = 0};

struct CUctx_st fake_contexts[DEVICES_MAX];
struct block *fake_blocks;
struct CUfunc_st fake_kernels[KERNELS_MAX];
struct fake_capture fake_capture;
struct fake_cuda_counts fake_counts;
int fake_poison;
static struct {
    const char *function;
    int nth, result;
} failure;
static pid_t started; /* by cuInit in this process */
static _Thread_local struct {
    struct CUctx_st *at[STACK_MAX];
    int depth, mode;
} here;

int fake_context_index(const struct CUctx_st *context) { return (int)(context - fake_contexts); }

struct CUctx_st *fake_current(void) { return here.depth ? here.at[here.depth - 1] : NULL; }

/* A fork in another thread's moment with the lock would leave it locked in the child for ever. */
static void lock(void) { pthread_mutex_lock(&fake_lock); }
static void unlock(void) { pthread_mutex_unlock(&fake_lock); }
__attribute__((constructor)) static void survive_forks(void)
{
    if (pthread_atfork(lock, unlock, unlock))
        abort();
}

/* The beginning of every function: takes the lock, or says why there is nothing to be had. */
int fake_begin(const char *function, enum needs needs)
{
    pthread_mutex_lock(&fake_lock);
    fake_counts.calls++;
    int result = 0;
    if (needs != NOTHING && started != getpid())
        result = NOT_INITIALIZED;
    else if (failure.nth && !strcmp(failure.function, function) && !--failure.nth)
        result = failure.result;
    else if (needs == CONTEXT && fake_poison)
        result = fake_poison;
    else if (needs == CONTEXT && (!fake_current() || !fake_current()->retained))
        result = INVALID_CONTEXT;
    if (result)
        pthread_mutex_unlock(&fake_lock);
    return result;
}

int fake_end(int result)
{
    pthread_mutex_unlock(&fake_lock);
    return result;
}

/* Calls that a capture in the global mode does not stand, from whichever thread. */
bool fake_disturbs_capture(void)
{
    if (!fake_capture.stream || here.mode == 2)
        return false;
    fake_capture.broken = true;
    return true;
}

/* ---- what tests ask for ---- */

EXPORT void fake_cuda_fail(const char *function, int nth, int result)
{
    pthread_mutex_lock(&fake_lock);
    failure.function = function;
    failure.nth = nth;
    failure.result = result;
    pthread_mutex_unlock(&fake_lock);
}

EXPORT void fake_cuda_poison(int result)
{
    pthread_mutex_lock(&fake_lock);
    fake_poison = result;
    pthread_mutex_unlock(&fake_lock);
}

EXPORT void fake_cuda_capture(struct CUstream_st *stream, bool on)
{
    pthread_mutex_lock(&fake_lock);
    fake_capture.stream = on ? stream : NULL;
    fake_capture.broken = on ? false : fake_capture.broken;
    pthread_mutex_unlock(&fake_lock);
}

EXPORT bool fake_cuda_capture_whole(void)
{
    pthread_mutex_lock(&fake_lock);
    const bool whole = !fake_capture.broken;
    pthread_mutex_unlock(&fake_lock);
    return whole;
}

EXPORT void fake_cuda_kernel(const char *name, size_t bytes, void (*run)(const void *, unsigned))
{
    for (int k = 0; k < KERNELS_MAX; k++)
        if (!fake_kernels[k].name || !strcmp(fake_kernels[k].name, name)) {
            fake_kernels[k] = (struct CUfunc_st){name, bytes, run};
            return;
        }
}

EXPORT struct fake_cuda_counts fake_cuda_count(void)
{
    pthread_mutex_lock(&fake_lock);
    struct fake_cuda_counts now = fake_counts;
    now.streams = fake_streams_alive();
    for (const struct block *block = fake_blocks; block; block = block->next)
        *(block->device < 0 ? &now.pinned : &now.allocations) += 1;
    for (int k = 0; k < DEVICES_MAX; k++)
        now.retained += fake_contexts[k].retained;
    pthread_mutex_unlock(&fake_lock);
    return now;
}

EXPORT int fake_cuda_depth(void) { return here.depth; }
EXPORT int fake_cuda_mode(void) { return here.mode; }

EXPORT void fake_cuda_end(void)
{
    pthread_mutex_lock(&fake_lock);
    fake_streams_end();
    pthread_mutex_unlock(&fake_lock);
}

bool fake_there(const void *memory, size_t bytes, bool device)
{
    const uint8_t *first = memory;
    for (const struct block *block = fake_blocks; block; block = block->next)
        if ((block->device >= 0) == device && first >= block->memory &&
            first + bytes <= block->memory + block->bytes)
            return true;
    return false;
}

void fake_illegal(void)
{
    fake_counts.illegal++;
    fake_poison = ILLEGAL_ADDRESS;
}

unsigned fake_delay_us(void) { return fake_cuda.delay_us; }

/* ---- the driver ---- */

EXPORT int cuDriverGetVersion(int *version)
{
    BEGIN(NOTHING);
    *version = fake_cuda.version;
    return fake_end(0);
}

EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    BEGIN(NOTHING);
    if (started && started != getpid())
        return fake_end(NOT_INITIALIZED);
    if (!fake_cuda.devices)
        return fake_end(NO_DEVICE);
    started = getpid();
    return fake_end(0);
}

EXPORT int cuGetErrorName(int result, const char **name)
{
    *name = result == NO_MEMORY         ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == NOT_INITIALIZED ? "CUDA_ERROR_NOT_INITIALIZED"
            : result == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : result == INVALID_HANDLE  ? "CUDA_ERROR_INVALID_HANDLE"
                                        : NULL;
    return *name ? 0 : INVALID_VALUE;
}

EXPORT int cuGetErrorString(int result, const char **text)
{
    (void)result;
    *text = "as the fake driver was told";
    return 0;
}

EXPORT int cuDeviceGetCount(int *devices)
{
    BEGIN(DRIVER);
    *devices = fake_cuda.devices;
    return fake_end(0);
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    BEGIN(DRIVER);
    *device = ordinal;
    return fake_end(ordinal >= 0 && ordinal < fake_cuda.devices ? 0 : INVALID_DEVICE);
}

EXPORT int cuDeviceGetName(char *name, int length, int device)
{
    BEGIN(DRIVER);
    snprintf(name, (size_t)length, "Fake GPU %c", 'A' + device);
    return fake_end(0);
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    (void)device;
    BEGIN(DRIVER);
    *bytes = fake_cuda.memory;
    return fake_end(0);
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    BEGIN(DRIVER);
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 4 : 48 * 1024;
    return fake_end(0);
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    BEGIN(DRIVER);
    if (device < 0 || device >= fake_cuda.devices)
        return fake_end(INVALID_DEVICE);
    fake_contexts[device].retained++;
    *context = &fake_contexts[device];
    return fake_end(0);
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    BEGIN(DRIVER);
    if (!fake_contexts[device].retained)
        return fake_end(INVALID_CONTEXT);
    fake_contexts[device].retained--;
    return fake_end(0);
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    BEGIN(DRIVER);
    *flags = 0;
    *active = fake_contexts[device].retained > 0;
    return fake_end(0);
}

EXPORT int cuCtxGetCurrent(void **context)
{
    BEGIN(DRIVER);
    *context = fake_current();
    return fake_end(0);
}

EXPORT int cuCtxGetDevice(int *device)
{
    BEGIN(CONTEXT);
    *device = fake_context_index(fake_current());
    return fake_end(0);
}

EXPORT int cuCtxPushCurrent_v2(void *context)
{
    BEGIN(DRIVER);
    if (!context || here.depth == STACK_MAX)
        return fake_end(INVALID_CONTEXT);
    here.at[here.depth++] = context;
    return fake_end(0);
}

EXPORT int cuCtxPopCurrent_v2(void **context)
{
    BEGIN(DRIVER);
    if (!here.depth)
        return fake_end(INVALID_CONTEXT);
    *context = here.at[--here.depth];
    return fake_end(0);
}

EXPORT int cuCtxSynchronize(void)
{
    BEGIN(CONTEXT);
    fake_streams_drain(fake_current());
    return fake_end(fake_poison);
}

EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    BEGIN(CONTEXT);
    *least = 0;
    *greatest = -5;
    return fake_end(0);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
    const int before = here.mode;
    here.mode = *mode;
    *mode = before;
    return 0;
}
