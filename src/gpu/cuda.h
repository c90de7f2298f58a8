/* cuda.h - the CUDA driver, opened at run time
 *
 * No CUDA header is needed to build, and no CUDA library to load: the few functions used are declared
 * here, with the driver's names of opaque structures, and looked up in libcuda.so.1 when a device is
 * first requested.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_GPU_CUDA_H
#define ST_GPU_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;

/* Results, flags and attributes as numbered by the driver: an ABI, so they do not change. */
enum {
    ST_CU_SUCCESS = 0, ST_CU_INVALID_VALUE = 1, ST_CU_OUT_OF_MEMORY = 2, ST_CU_NOT_INITIALIZED = 3,
    ST_CU_DEINITIALIZED = 4, ST_CU_NO_DEVICE = 100, ST_CU_INVALID_DEVICE = 101,
    ST_CU_INVALID_IMAGE = 200,
    ST_CU_NO_BINARY_FOR_GPU = 209, ST_CU_UNSUPPORTED_PTX_VERSION = 222, ST_CU_NOT_FOUND = 500,
    ST_CU_NOT_READY = 600, ST_CU_CAPTURE_IMPLICIT = 906,
    ST_CU_ILLEGAL_ADDRESS = 700, ST_CU_LAUNCH_TIMEOUT = 702, ST_CU_ASSERT = 710,
    ST_CU_HARDWARE_STACK = 714, ST_CU_LAUNCH_FAILED = 719,

    ST_CU_EVENT_BLOCKING_SYNC = 1, ST_CU_EVENT_DISABLE_TIMING = 2,
    ST_CU_STREAM_NON_BLOCKING = 1,
    ST_CU_HOST_PORTABLE = 1,
    ST_CU_CAPTURE_RELAXED = 2,

    ST_CU_ATTRIBUTE_CAPABILITY_MAJOR = 75, ST_CU_ATTRIBUTE_CAPABILITY_MINOR = 76,
};

/* Handles with a fixed meaning: the default stream that all others wait for, and each thread's own. */
#define ST_CU_STREAM_LEGACY ((struct CUstream_st *)(uintptr_t)1)
#define ST_CU_STREAM_PER_THREAD ((struct CUstream_st *)(uintptr_t)2)

enum { ST_CUDA_OLDEST = 12000 }; /* the minimum driver version, as from cuDriverGetVersion: 12.0 */

/* X(name, symbol, arguments): the member, the name in the library, its parameters. All return a
 * CUresult. */
#define ST_CUDA_MAP(X)                                                                                  \
    X(DriverGetVersion, cuDriverGetVersion, (int *version))                                             \
    X(Init, cuInit, (unsigned flags))                                                                   \
    X(GetErrorName, cuGetErrorName, (int result, const char **name))                                    \
    X(GetErrorString, cuGetErrorString, (int result, const char **text))                                \
    X(DeviceGetCount, cuDeviceGetCount, (int *count))                                                   \
    X(DeviceGet, cuDeviceGet, (int *device, int ordinal))                                               \
    X(DeviceGetName, cuDeviceGetName, (char *name, int length, int device))                             \
    X(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t *bytes, int device))                                 \
    X(DeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, int device))                \
    X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (struct CUctx_st **context, int device))        \
    X(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (int device))                              \
    X(DevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active)) \
    X(CtxGetCurrent, cuCtxGetCurrent, (struct CUctx_st **context))                                      \
    X(CtxGetDevice, cuCtxGetDevice, (int *device))                                                      \
    X(CtxPushCurrent, cuCtxPushCurrent_v2, (struct CUctx_st *context))                                  \
    X(CtxPopCurrent, cuCtxPopCurrent_v2, (struct CUctx_st **context))                                   \
    X(CtxSynchronize, cuCtxSynchronize, (void))                                                         \
    X(CtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, (int *least, int *greatest))              \
    X(MemGetInfo, cuMemGetInfo_v2, (size_t *free_bytes, size_t *all))                                   \
    X(MemAlloc, cuMemAlloc_v2, (uint64_t *address, size_t bytes))                                       \
    X(MemFree, cuMemFree_v2, (uint64_t address))                                                        \
    X(MemHostAlloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                      \
    X(MemFreeHost, cuMemFreeHost, (void *memory))                                                       \
    X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                            \
      (uint64_t to, const void *from, size_t bytes, struct CUstream_st *stream))                        \
    X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                            \
      (void *to, uint64_t from, size_t bytes, struct CUstream_st *stream))                              \
    X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                            \
      (uint64_t to, uint64_t from, size_t bytes, struct CUstream_st *stream))                           \
    X(MemsetD8Async, cuMemsetD8Async,                                                                   \
      (uint64_t to, unsigned char value, size_t bytes, struct CUstream_st *stream))                     \
    X(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode))                  \
    X(StreamCreate, cuStreamCreate, (struct CUstream_st **stream, unsigned flags))                      \
    X(StreamCreateWithPriority, cuStreamCreateWithPriority,                                             \
      (struct CUstream_st **stream, unsigned flags, int priority))                                      \
    X(StreamDestroy, cuStreamDestroy_v2, (struct CUstream_st *stream))                                  \
    X(StreamSynchronize, cuStreamSynchronize, (struct CUstream_st *stream))                             \
    X(StreamWaitEvent, cuStreamWaitEvent,                                                               \
      (struct CUstream_st *stream, struct CUevent_st *event, unsigned flags))                           \
    X(StreamIsCapturing, cuStreamIsCapturing, (struct CUstream_st *stream, int *status))                \
    X(StreamGetCtx, cuStreamGetCtx, (struct CUstream_st *stream, struct CUctx_st **context))            \
    X(EventCreate, cuEventCreate, (struct CUevent_st **event, unsigned flags))                          \
    X(EventDestroy, cuEventDestroy_v2, (struct CUevent_st *event))                                      \
    X(EventRecord, cuEventRecord, (struct CUevent_st *event, struct CUstream_st *stream))               \
    X(EventQuery, cuEventQuery, (struct CUevent_st *event))                                             \
    X(EventSynchronize, cuEventSynchronize, (struct CUevent_st *event))                                 \
    X(ModuleLoadData, cuModuleLoadData, (struct CUmod_st **module, const void *image))                  \
    X(ModuleUnload, cuModuleUnload, (struct CUmod_st *module))                                          \
    X(ModuleGetFunction, cuModuleGetFunction,                                                           \
      (struct CUfunc_st **function, struct CUmod_st *module, const char *name))                         \
    X(LaunchKernel, cuLaunchKernel,                                                                     \
      (struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
       unsigned block_y, unsigned block_z, unsigned shared, struct CUstream_st *stream,                 \
       void **arguments, void **extra))

/* The driver's functions by name, without prefix and version suffix: cuda->MemAlloc(...). */
struct st_cuda {
    int version; /* of the driver: 13000 is 13.0 */
#define X(name, symbol, arguments) int(*name) arguments;
    ST_CUDA_MAP(X)
#undef X
};

/* The driver, loaded and initialised by the first call in this process; creates no context. Fails if the
 * driver is missing, too old, or finds no GPU, and says which. Any thread. */
int st_cuda_get(const struct st_cuda **out, struct stoker_error *err);

/* Converts a driver's result to a status and a message: "cuda:0: <what>: CUDA_ERROR_X (its text)", with
 * a remedy if there is one. `device` -1: no particular device. */
int st_cuda_fail(const struct st_cuda *cuda, int device, int result, struct stoker_error *err,
                 const char *what);
/* Out of memory while requesting `bytes`; the message says how much is free. The device's context must
 * be current. */
int st_cuda_fail_memory(const struct st_cuda *cuda, int device, int result, uint64_t bytes,
                        const char *what, struct stoker_error *err);

/* The ordinal of the device whose context is current in this thread; 0 if there is none. */
int st_cuda_current_device(const struct st_cuda *cuda);

/* Between these two calls the context is current and graph captures elsewhere are not disturbed;
 * afterwards the thread is as before. `enter` returns a CUresult; do not call `leave` if it failed. */
struct st_cuda_inside {
    const struct st_cuda *cuda;
    int capture_mode;
};
int st_cuda_enter(struct st_cuda_inside *inside, const struct st_cuda *cuda, struct CUctx_st *context);
void st_cuda_leave(struct st_cuda_inside *inside);

/* Whether the stream is being captured into a graph: work queued in it then runs when the graph does,
 * and waiting for outside events in it ends the capture. Returns a CUresult. */
int st_cuda_capturing(const struct st_cuda *cuda, struct CUstream_st *stream, bool *capturing);

/* Records the event, unless the stream is being captured, because it would then become part of the
 * graph. *recorded says whether it did. Returns a CUresult. */
int st_cuda_record(const struct st_cuda *cuda, struct CUevent_st *event, struct CUstream_st *stream,
                   bool *recorded);

#endif
