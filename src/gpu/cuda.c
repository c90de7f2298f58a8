/* cuda.c - the CUDA driver, opened at run time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An exception from the rule that the library has no global variables. There is one driver per process,
 * and it stays loaded until the process ends, so a table per loader would only be a copy. Only the
 * `once` writes here: nothing reads before it, and everything is constant after it. */
static struct {
    pthread_once_t once;
    struct st_cuda table;
    struct stoker_error error; /* code != 0: no usable driver */
} driver = {.once = PTHREAD_ONCE_INIT};

static int find_functions(void *library, struct st_cuda *table, struct stoker_error *err)
{
    /* POSIX guarantees that a symbol's address fits a function pointer, but C does not: hence memcpy. */
#define X(name, symbol, arguments)                                                                      \
    {                                                                                                   \
        void *found = dlsym(library, #symbol);                                                          \
        if (!found)                                                                                     \
            return st_fail(err, STOKER_EUNSUPPORTED,                                                    \
                           "libcuda.so.1 has no " #symbol ": the NVIDIA driver is broken or too old; "  \
                           "install one with CUDA %d.%d or newer",                                      \
                           ST_CUDA_OLDEST / 1000, ST_CUDA_OLDEST % 1000 / 10);                          \
        memcpy(&table->name, &found, sizeof found);                                                     \
    }
    ST_CUDA_MAP(X)
#undef X
    return STOKER_OK;
}

static int check_version(void *library, struct stoker_error *err)
{
    int (*get_version)(int *);
    int version = 0;
    void *found = dlsym(library, "cuDriverGetVersion");
    memcpy(&get_version, &found, sizeof found);
    if (!get_version || get_version(&version))
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "libcuda.so.1 does not report its version: the NVIDIA driver is broken; reinstall it");
    if (version < ST_CUDA_OLDEST)
        return st_fail(
            err, STOKER_EUNSUPPORTED,
            "the NVIDIA driver is too old: it supports CUDA %d.%d, but %d.%d is required; update the "
            "driver or use device=None",
            version / 1000, version % 1000 / 10, ST_CUDA_OLDEST / 1000, ST_CUDA_OLDEST % 1000 / 10);
    return STOKER_OK;
}

static int load(struct st_cuda *table, struct stoker_error *err)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "no NVIDIA driver: %.300s; install the driver, or use device=None",
                       why ? why : "libcuda.so.1 cannot be opened");
    }
    int status = check_version(library, err);
    status = status ? status : find_functions(library, table, err);
    if (status) {
        dlclose(library);
        return status;
    }
    const int result = table->Init(0);
    if (result == ST_CU_NO_DEVICE) {
        const char *visible = getenv("CUDA_VISIBLE_DEVICES");
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "the NVIDIA driver finds no GPU%s%.100s%s; use device=None or make one visible",
                       visible ? " (CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "",
                       visible ? ")" : "");
    }
    if (result)
        return st_cuda_fail(table, -1, result, err, "starting the driver");
    table->DriverGetVersion(&table->version);
    return STOKER_OK;
}

static void load_once(void) { driver.error.code = load(&driver.table, &driver.error); }

int st_cuda_get(const struct st_cuda **out, struct stoker_error *err)
{
    pthread_once(&driver.once, load_once);
    if (driver.error.code) {
        if (err)
            *err = driver.error;
        return driver.error.code;
    }
    *out = &driver.table;
    return STOKER_OK;
}

/* What a user can do about an error; errors of kernels corrupt the context for everybody. */
static const char *remedy(int result, int *status)
{
    *status = STOKER_EIO;
    switch (result) {
    case ST_CU_OUT_OF_MEMORY:
        *status = STOKER_ENOMEM;
        return "; use smaller or fewer batches, or free memory that is held elsewhere";
    case ST_CU_NOT_INITIALIZED:
        *status = STOKER_EFORK;
        return "; this process was forked from one that had used CUDA, which CUDA does not allow: start "
               "it with 'spawn' or 'forkserver', or fork before the first use";
    case ST_CU_DEINITIALIZED:
        *status = STOKER_ECANCELED;
        return "; the process is exiting: close loaders first";
    case ST_CU_INVALID_IMAGE:
    case ST_CU_NO_BINARY_FOR_GPU:
    case ST_CU_UNSUPPORTED_PTX_VERSION:
        *status = STOKER_EUNSUPPORTED;
        return "; update the driver, or augment on the CPU: augment_on=\"cpu\"";
    case ST_CU_INVALID_VALUE:
    case ST_CU_INVALID_DEVICE:
        *status = STOKER_EINVAL;
        return "";
    }
    if (result == ST_CU_ILLEGAL_ADDRESS || result == ST_CU_LAUNCH_TIMEOUT || result == ST_CU_ASSERT ||
        (result >= ST_CU_HARDWARE_STACK && result <= ST_CU_LAUNCH_FAILED))
        return "; a kernel launched earlier has failed, and this process can no longer use the GPU: "
               "find it with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer";
    return "";
}

int st_cuda_fail(const struct st_cuda *cuda, int device, int result, struct stoker_error *err,
                 const char *what)
{
    const char *name = NULL, *text = NULL;
    int status;
    const char *advice = remedy(result, &status);
    char number[16] = "";
    if (cuda->GetErrorName(result, &name) || !name)
        name = "an unknown error";
    if (cuda->GetErrorString(result, &text) || !text)
        text = "no text";
    if (device >= 0)
        snprintf(number, sizeof number, ":%d", device);
    return st_fail(err, status, "cuda%s: %s: %s, %d (%s)%s", number, what, name, result, text, advice);
}

int st_cuda_fail_memory(const struct st_cuda *cuda, int device, int result, uint64_t bytes,
                        const char *what, struct stoker_error *err)
{
    size_t free_bytes = 0, all = 0;
    if (result != ST_CU_OUT_OF_MEMORY || cuda->MemGetInfo(&free_bytes, &all))
        return st_cuda_fail(cuda, device, result, err, what);
    return st_fail(
        err, STOKER_ENOMEM,
        "cuda:%d: out of memory: %.1f MiB were requested for %s, %.1f of %.1f MiB are free; use smaller "
        "or fewer batches, or free memory that is held elsewhere (torch.cuda.empty_cache())",
        device, (double)bytes / (1 << 20), what, (double)free_bytes / (1 << 20),
        (double)all / (1 << 20));
}

int st_cuda_current_device(const struct st_cuda *cuda)
{
    struct CUctx_st *context = NULL;
    int device = 0, count = 0;
    if (cuda->CtxGetCurrent(&context) || !context || cuda->CtxGetDevice(&device) ||
        cuda->DeviceGetCount(&count))
        return 0;
    for (int ordinal = 0; ordinal < count; ordinal++) {
        int here;
        if (!cuda->DeviceGet(&here, ordinal) && here == device)
            return ordinal;
    }
    return 0;
}

int st_cuda_enter(struct st_cuda_inside *inside, const struct st_cuda *cuda, struct CUctx_st *context)
{
    const int result = cuda->CtxPushCurrent(context);
    if (result)
        return result;
    /* While any thread captures a graph, even harmless calls (querying an event) would break its
     * capture, although ours are unrelated to it. */
    *inside = (struct st_cuda_inside){.cuda = cuda, .capture_mode = ST_CU_CAPTURE_RELAXED};
    cuda->ThreadExchangeStreamCaptureMode(&inside->capture_mode);
    return ST_CU_SUCCESS;
}

void st_cuda_leave(struct st_cuda_inside *inside)
{
    struct CUctx_st *ours;
    inside->cuda->ThreadExchangeStreamCaptureMode(&inside->capture_mode);
    inside->cuda->CtxPopCurrent(&ours);
}

/* The legacy stream cannot be queried while a stream that waits for it is being captured; it then counts
 * as captured. */
int st_cuda_capturing(const struct st_cuda *cuda, struct CUstream_st *stream, bool *capturing)
{
    int status = 0;
    const int result = cuda->StreamIsCapturing(stream, &status);
    *capturing = result == ST_CU_CAPTURE_IMPLICIT || (!result && status);
    return result == ST_CU_CAPTURE_IMPLICIT ? ST_CU_SUCCESS : result;
}

int st_cuda_record(const struct st_cuda *cuda, struct CUevent_st *event, struct CUstream_st *stream,
                   bool *recorded)
{
    bool capturing;
    *recorded = false;
    int result = st_cuda_capturing(cuda, stream, &capturing);
    if (result || capturing)
        return result;
    result = cuda->EventRecord(event, stream);
    *recorded = !result;
    return result;
}
