/* device.c - CUDA as a device that holds the finished batches
 *
 * One stream per loader carries copies, kernels and events in the order of submission:
 *
 *     copy host half | copied | wait for the slot's previous readers | kernels, labels | done
 *
 * The stream has the default priority, which is also the lowest: a batch is made ahead of its use, so
 * its kernels should fill the gaps between training kernels and never run before them. A stream of
 * higher priority would take multiprocessors from the training step for work that nobody is waiting for
 * yet.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gpu.h"
#include "gpu/slots.h"

#include <stdlib.h>

enum { DLPACK_CUDA = 2 };

static int settle_sizes(struct st_gpu_device *device, struct stoker_error *err)
{
    const struct st_device_want *want = &device->want;
    uint64_t row, images, labels = (uint64_t)want->rows * sizeof(int64_t), before, all;
    const bool sane = want->rows && want->width > 0 && want->height > 0 && want->channels > 0 &&
                      st_mul((uint64_t)want->width, (uint64_t)want->height, &row) &&
                      st_mul(row, (uint64_t)want->channels * want->finish->element, &row) &&
                      st_mul(row, want->rows, &images) && images <= SIZE_MAX / 2;
    if (!sane)
        return st_fail(err, STOKER_EINVAL, "cuda: invalid batch of %u rows of %d x %d x %d values",
                       want->rows, want->width, want->height, want->channels);
    before = want->raw ? st_host_raw_labels(want->rows) : st_host_finished_labels(want->rows, row);
    if (!st_add(before, labels, &all) || want->host_bytes < all || want->host_bytes > SIZE_MAX / 2)
        return st_fail(err, STOKER_EINVAL, "cuda: %llu bytes of host memory are too few for %u rows",
                       (unsigned long long)want->host_bytes, want->rows);
    device->images_bytes = images;
    device->host_labels = before;
    return STOKER_OK;
}

static int retain(struct st_gpu_device *device, struct stoker_error *err)
{
    const struct st_cuda *cuda = device->cuda;
    int count = 0;
    int result = cuda->DeviceGetCount(&count);
    if (result)
        return st_cuda_fail(cuda, -1, result, err, "counting devices");
    const int ordinal = device->want.ordinal < 0 ? st_cuda_current_device(cuda) : device->want.ordinal;
    if (ordinal >= count)
        return st_fail(err, STOKER_EINVAL, "cuda:%d: no such device; this machine has %d%s", ordinal,
                       count,
                       count > 1    ? ", counted from 0"
                       : count == 1 ? ", cuda:0"
                                    : "");
    result = cuda->DeviceGet(&device->device, ordinal);
    if (!result)
        result = cuda->DevicePrimaryCtxRetain(&device->context, device->device);
    if (result) {
        device->context = NULL;
        return st_cuda_fail(cuda, ordinal, result, err, "using the device's primary context");
    }
    device->base.ordinal = ordinal;
    return STOKER_OK;
}

static int make_memory(struct st_gpu_device *device, uint64_t bytes, const char *what, uint64_t *out,
                       struct stoker_error *err)
{
    const int result = bytes ? device->cuda->MemAlloc(out, bytes) : ST_CU_SUCCESS;
    if (!result)
        return STOKER_OK;
    *out = 0;
    return st_cuda_fail_memory(device->cuda, device->base.ordinal, result, bytes, what, err);
}

/* Creates everything that the loader's slots share. The context is current. */
static int make_shared(struct st_gpu_device *device, struct stoker_error *err)
{
    const int result = device->cuda->StreamCreate(&device->stream, ST_CU_STREAM_NON_BLOCKING);
    if (result) {
        device->stream = NULL;
        return st_cuda_fail(device->cuda, device->base.ordinal, result, err, "creating a stream");
    }
    if (!device->want.raw)
        return STOKER_OK;
    /* Rounded up, because kernels read whole words. */
    int status = make_memory(device, st_align(device->want.host_bytes, ST_CACHE_LINE),
                             "a batch's decoded pixels", &device->raw, err);
    if (!status)
        status = st_gpu_kernels_open(&device->kernels, device->cuda, device->device, &device->want,
                                     device->stream, err);
    if (!status)
        status = make_memory(device, st_gpu_kernels_scratch(device->kernels), "the kernels' scratch",
                             &device->scratch, err);
    return status;
}

/* Also called after an incomplete open. */
static void device_close(struct st_device *base)
{
    struct st_gpu_device *device = st_gpu_device(base);
    struct st_cuda_inside inside;
    const struct st_cuda *cuda = device->cuda;
    if (device->context && !st_cuda_enter(&inside, cuda, device->context)) {
        if (device->stream)
            cuda->StreamSynchronize(device->stream);
        st_gpu_kernels_close(device->kernels);
        if (device->scratch)
            cuda->MemFree(device->scratch);
        if (device->raw)
            cuda->MemFree(device->raw);
        if (device->stream)
            cuda->StreamDestroy(device->stream);
        st_cuda_leave(&inside);
    }
    if (device->context)
        cuda->DevicePrimaryCtxRelease(device->device);
    pthread_mutex_destroy(&device->jpeg_turn);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

static int device_open(struct st_device **out, const struct st_device_want *want,
                       struct stoker_error *err)
{
    const struct st_cuda *cuda;
    struct st_cuda_inside inside;
    int status = st_cuda_get(&cuda, err);
    if (status)
        return status;
    struct st_gpu_device *device = st_calloc(1, sizeof *device);
    if (!device || pthread_mutex_init(&device->lock, NULL) ||
        pthread_mutex_init(&device->jpeg_turn, NULL)) {
        free(device);
        return st_fail(err, STOKER_ENOMEM, "out of memory while opening a device");
    }
    device->base.kind = &st_device_cuda;
    device->cuda = cuda;
    device->want = *want;
    status = settle_sizes(device, err);
    if (!status)
        status = retain(device, err);
    if (!status) {
        const int result = st_cuda_enter(&inside, cuda, device->context);
        if (result) {
            status = st_cuda_fail(cuda, device->base.ordinal, result, err, "using the device");
        } else {
            status = make_shared(device, err);
            st_cuda_leave(&inside);
        }
    }
    if (status) {
        device_close(&device->base);
        return status;
    }
    *out = &device->base;
    return STOKER_OK;
}

/* Finished rows: the device half has the same layout as the host half, so one copy is enough. */
static int submit_finished(struct st_gpu_device *device, struct st_device_slot *slot, uint64_t used)
{
    const struct st_cuda *cuda = device->cuda;
    int result = st_gpu_slot_after_readers(device, slot);
    if (!result)
        result = cuda->MemcpyHtoDAsync(slot->images, slot->host, used, device->stream);
    return result ? result : cuda->EventRecord(slot->copied, device->stream);
}

/* The batch's readers are waited for only after the copy has been queued, because it goes to memory of
 * our own. */
static int submit_raw(struct st_gpu_device *device, struct st_device_slot *slot, uint32_t count,
                      uint64_t used, int *status, struct stoker_error *err)
{
    const struct st_cuda *cuda = device->cuda;
    int result = cuda->MemcpyHtoDAsync(device->raw, slot->host, used, device->stream);
    if (!result)
        result = cuda->EventRecord(slot->copied, device->stream);
    if (!result)
        result = st_gpu_slot_after_readers(device, slot);
    if (result)
        return result;
    const struct st_gpu_launch launch = {.host = slot->host,
                                         .raw = device->raw,
                                         .used = used,
                                         .count = count,
                                         .images = slot->images,
                                         .scratch = device->scratch,
                                         .stream = device->stream};
    *status = st_gpu_kernels_run(device->kernels, &launch, err);
    return cuda->MemcpyDtoDAsync(slot->labels, device->raw + device->host_labels,
                                 count * sizeof(int64_t), device->stream);
}

static int device_submit(struct st_device *base, struct st_device_slot *slot, uint32_t count,
                         uint64_t used, struct stoker_error *err)
{
    struct st_gpu_device *device = st_gpu_device(base);
    const struct st_cuda *cuda = device->cuda;
    struct st_cuda_inside inside;
    if (!count || count > device->want.rows || used > device->want.host_bytes ||
        used < device->host_labels + count * sizeof(int64_t))
        return st_fail(err, STOKER_EINVAL,
                       "cuda: %u rows in %llu bytes are not a valid batch of this loader", count,
                       (unsigned long long)used);
    int result = st_cuda_enter(&inside, cuda, device->context);
    if (result)
        return st_cuda_fail(cuda, base->ordinal, result, err, "submitting a batch");
    int status = STOKER_OK;
    pthread_mutex_lock(&device->lock);
    result = device->want.raw ? submit_raw(device, slot, count, used, &status, err)
                              : submit_finished(device, slot, used);
    /* Even if something failed: whoever waits for the slot must wait for the work that was queued. */
    const int recorded = cuda->EventRecord(slot->done, device->stream);
    pthread_mutex_unlock(&device->lock);
    st_cuda_leave(&inside);
    result = result ? result : recorded;
    if (!status && result)
        status = st_cuda_fail(cuda, base->ordinal, result, err, "submitting a batch");
    return status;
}

const struct st_device_kind st_device_cuda = {
    .name = "cuda",
    .type = DLPACK_CUDA,
    .open = device_open,
    .close = device_close,
    .slot_new = st_gpu_slot_new,
    .slot_free = st_gpu_slot_free,
    .submit = device_submit,
    .where = st_gpu_slot_where,
    .idle = st_gpu_slot_idle,
    .join = st_gpu_slot_join,
    .mark = st_gpu_slot_mark,
    .sync = st_gpu_slot_sync,
    .release = st_gpu_slot_release,
};
