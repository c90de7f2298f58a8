/* fake_cuda.c - a CUDA driver whose GPUs are ordinary memory, for tests where there are none
 *
 * Everything happens at once, so that a test can read the "device" memory and ask which streams were made to
 * wait (fake_waits) and marked (fake_marks). It has no kernels: finished rows are all it can take. There is one
 * GPU, or as many as fake_devices says. Events belong to one of them, and streams too: those from
 * k * OF_DEVICE on to number k.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, OUT_OF_MEMORY = 2, NO_BINARY = 209, INVALID_HANDLE = 400, NOT_READY = 600, LOG = 4096 };
enum { CONTEXT = 77, OF_DEVICE = 1000000, DEPTH = 16 };
#define API __attribute__((visibility("default")))

static uintptr_t waits[LOG], marks[LOG];
static size_t wait_count, mark_count, handles = 1000;
API int fake_devices = 1;

/* This thread's contexts; torch's would be the first one's. */
static _Thread_local uintptr_t stack[DEPTH] = {CONTEXT};
static _Thread_local int depth;
static uintptr_t here(void) { return stack[depth] - CONTEXT; }
static uintptr_t device_of(const void *handle) { return (uintptr_t)handle / OF_DEVICE; }

/* Copies what was noted since the last call. */
static size_t read_log(const uintptr_t *log, size_t *count, uintptr_t *out)
{
    const size_t n = *count;
    memcpy(out, log, n * sizeof *out);
    *count = 0;
    return n;
}
API size_t fake_waits(uintptr_t *out) { return read_log(waits, &wait_count, out); }
API size_t fake_marks(uintptr_t *out) { return read_log(marks, &mark_count, out); }

static void note(uintptr_t *log, size_t *count, void *stream)
{
    if (*count < LOG)
        log[(*count)++] = (uintptr_t)stream;
}
static int new_handle(void **out)
{
    *out = (void *)__atomic_add_fetch(&handles, 1, __ATOMIC_RELAXED);
    return OK;
}
static int new_memory(void **out, size_t bytes)
{
    *out = bytes < (1u << 30) ? aligned_alloc(4096, (bytes + 4095) / 4096 * 4096) : NULL;
    return *out ? OK : OUT_OF_MEMORY;
}

API int cuDriverGetVersion(int *version) { return *version = 13000, OK; }
/* The driver reads this variable when it starts. */
API char fake_queues[16];
API int cuInit(unsigned flags)
{
    const char *given = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (given)
        strncpy(fake_queues, given, sizeof fake_queues - 1);
    return (void)flags, OK;
}
API int cuGetErrorName(int result, const char **name) { return (void)result, *name = "CUDA_ERROR_FAKE", OK; }
API int cuGetErrorString(int result, const char **text) { return (void)result, *text = "made up", OK; }
API int cuDeviceGetCount(int *count) { return *count = fake_devices, OK; }
API int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, OK; }
API int cuDeviceGetName(char *name, int length, int device) { return (void)device, strncpy(name, "Fake", (size_t)length), OK; }
API int cuDeviceTotalMem_v2(size_t *bytes, int device) { return (void)device, *bytes = 1u << 30, OK; }
API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    return (void)device, *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 1, OK;
}
API int cuDevicePrimaryCtxRetain(void **context, int device)
{
    return *context = (void *)(uintptr_t)(CONTEXT + device), OK;
}
API int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, OK; }
API int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) { return (void)device, *flags = 0, *active = 1, OK; }
API int cuCtxGetCurrent(void **context) { return *context = (void *)stack[depth], OK; }
API int cuCtxGetDevice(int *device) { return *device = (int)here(), OK; }
API int cuCtxPushCurrent_v2(void *context)
{
    if (depth + 1 == DEPTH)
        return INVALID_HANDLE;
    stack[++depth] = (uintptr_t)context;
    return OK;
}
API int cuCtxPopCurrent_v2(void **context)
{
    *context = (void *)stack[depth];
    depth -= depth > 0;
    return OK;
}
API int cuCtxSynchronize(void) { return OK; }
API int cuMemGetInfo_v2(size_t *free_bytes, size_t *all) { return *free_bytes = *all = 1u << 30, OK; }
API int cuMemAlloc_v2(uint64_t *address, size_t bytes) { return new_memory((void **)address, bytes); }
API int cuMemFree_v2(uint64_t address) { return free((void *)address), OK; }
API int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) { return (void)flags, new_memory(memory, bytes); }
API int cuMemFreeHost(void *memory) { return free(memory), OK; }
API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    return (void)stream, memcpy((void *)to, from, bytes), OK;
}
API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    return (void)stream, memcpy(to, (const void *)from, bytes), OK;
}
API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    return (void)stream, memcpy((void *)to, (const void *)from, bytes), OK;
}
API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
    return (void)stream, memset((void *)to, value, bytes), OK;
}
API int cuThreadExchangeStreamCaptureMode(int *mode) { return *mode = 0, OK; }
API int cuStreamCreate(void **stream, unsigned flags) { return (void)flags, new_handle(stream); }
API int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    return (void)flags, (void)priority, new_handle(stream);
}
API int cuCtxGetStreamPriorityRange(int *least, int *greatest) { return *least = 0, *greatest = -5, OK; }
API int cuStreamDestroy_v2(void *stream) { return (void)stream, OK; }
API int cuStreamSynchronize(void *stream) { return (void)stream, OK; }
API int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    return (void)event, (void)flags, note(waits, &wait_count, stream), OK;
}
API int cuStreamIsCapturing(void *stream, int *status) { return (void)stream, *status = 0, OK; }
API int cuStreamGetCtx(void *stream, void **context) { return *context = (void *)(CONTEXT + device_of(stream)), OK; }
API int cuEventCreate(void **event, unsigned flags)
{
    (void)flags, new_handle(event);
    *event = (char *)*event + here() * OF_DEVICE;
    return OK;
}
API int cuEventDestroy_v2(void *event) { return (void)event, OK; }
/* The default stream of a GPU is noted as the handle 1 from its first one on. */
API int cuEventRecord(void *event, void *stream)
{
    const uintptr_t device = (uintptr_t)stream > 2 ? device_of(stream) : here();
    if (device_of(event) != device || device != here())
        return INVALID_HANDLE;
    return note(marks, &mark_count, (uintptr_t)stream > 2 ? stream : (char *)stream + device * OF_DEVICE), OK;
}
API int fake_late; /* whether work seems to be under way still */
API int cuEventQuery(void *event) { return (void)event, fake_late ? NOT_READY : OK; }
API int cuEventSynchronize(void *event) { return (void)event, OK; }
API int cuModuleLoadData(void **module, const void *image) { return (void)module, (void)image, NO_BINARY; }
API int cuModuleUnload(void *module) { return (void)module, OK; }
API int cuModuleGetFunction(void **function, void *module, const char *name)
{
    return (void)function, (void)module, (void)name, NO_BINARY;
}
API int cuFuncSetAttribute(void *function, int attribute, int value) { return (void)function, (void)attribute, (void)value, OK; }
API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *stream, void **arguments, void **extra)
{
    (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
    return (void)shared, (void)stream, (void)arguments, (void)extra, NO_BINARY;
}
