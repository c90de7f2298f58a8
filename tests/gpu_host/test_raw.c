/* test_raw.c - raw rows through the whole of the runtime, with the kernels' own code run by the CPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "fake_cuda.h"
#include "gpu/gpu.h"
#include "gpu_host/host_kernels.h"
#include "raw_rows.h"
#include "tap.h"

enum { SLOTS = 2, BATCHES = 12 };

/* What the consumer's stream does with a batch: keeps it. */
struct kept {
    uint8_t images[RAW_IMAGES], expected[RAW_IMAGES];
    int64_t labels[RAW_ROWS];
};

static int one_batch(struct st_device *device, struct st_device_slot *slot, uint8_t *host,
                     struct raw_rows *raw, uint32_t number, struct kept *kept,
                     struct CUstream_st *stream, struct stoker_error *err)
{
    const struct st_device_kind *kind = device->kind;
    void *images, *labels;
    kind->where(slot, &images, &labels);
    kind->idle(device, slot, true);
    const uint64_t used = raw_rows_fill(raw, host, number, kept->expected);
    int status = kind->submit(device, slot, RAW_ROWS, used, err);
    if (!status)
        status = kind->join(device, slot, (uintptr_t)stream, err);
    cuMemcpyDtoHAsync_v2(kept->images, (uint64_t)(uintptr_t)images, RAW_IMAGES, stream);
    cuMemcpyDtoHAsync_v2(kept->labels, (uint64_t)(uintptr_t)labels, sizeof kept->labels, stream);
    kind->release(device, slot);
    return status;
}

static void batches(struct raw_rows *raw)
{
    struct stoker_error err = {0};
    const struct st_device_want want = raw_want(raw, 0);
    struct st_device *device;
    struct st_device_slot *slot[SLOTS];
    void *host[SLOTS], *context;
    struct CUstream_st *stream;
    static struct kept kept[BATCHES];
    unsigned same = 0, labelled = 0;
    bool pinned = true;
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxPushCurrent_v2(context);
    cuStreamCreate(&stream, 1);
    if (!ok(!st_device_cuda.open(&device, &want, &err), "a device opens for raw rows %s", err.message))
        return;
    for (int k = 0; k < SLOTS; k++)
        if (st_device_cuda.slot_new(device, &slot[k], &host[k], &pinned, &err))
            exit(1);
    fake_cuda.delay_us = 500;
    for (uint32_t n = 0; n < BATCHES; n++)
        if (one_batch(device, slot[n % SLOTS], host[n % SLOTS], raw, n, &kept[n], stream, &err))
            note("%s", err.message);
    cuStreamSynchronize(stream);
    for (uint32_t n = 0; n < BATCHES; n++) {
        same += !memcmp(kept[n].images, kept[n].expected, RAW_IMAGES);
        labelled +=
            kept[n].labels[0] == n * 100 && kept[n].labels[RAW_ROWS - 1] == n * 100 + RAW_ROWS - 1;
    }
    ok(same == BATCHES, "%u of %d batches are what the CPU makes of them, bit for bit", same, BATCHES);
    ok(labelled == BATCHES, "%u of %d have their labels", labelled, BATCHES);
    for (int k = 0; k < SLOTS; k++)
        st_device_cuda.slot_free(device, slot[k]);
    st_device_cuda.close(device);
    fake_cuda.delay_us = 0;
    const struct fake_cuda_counts now = fake_cuda_count();
    ok(now.launches == BATCHES, "one launch per small batch");
    ok(!now.allocations && !now.pinned && !now.events && !now.illegal, "nothing is left behind");
    cuStreamDestroy_v2(stream);
    cuCtxPopCurrent_v2(&context);
    cuDevicePrimaryCtxRelease_v2(0);
}

/* An open that fails at any step gives back what the steps before took. */
static void failing_opens(const struct raw_rows *raw)
{
    static const char *const calls[] = {"cuMemAlloc_v2", "cuModuleLoadData", "cuModuleGetFunction",
                                        "cuMemcpyHtoDAsync_v2"};
    unsigned failed = 0, left = 0;
    struct st_device_want want = raw_want(raw, 0);
    struct stoker_error err = {0};
    struct st_device *device;
    want.plain = false;
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++)
        for (int nth = 1; nth <= 3; nth++) {
            fake_cuda_fail(calls[k], nth, 222);
            const int status = st_device_cuda.open(&device, &want, &err);
            fake_cuda_fail("", 0, 0);
            failed += status == STOKER_EUNSUPPORTED;
            if (!status)
                st_device_cuda.close(device);
            const struct fake_cuda_counts now = fake_cuda_count();
            left += now.allocations || now.streams || now.retained;
        }
    ok(failed == 3 + 1 + 3 + 1, "%u opens failed, each by its call: %s", failed, err.message);
    ok(!left, "and left nothing behind");
}

int main(void)
{
    struct raw_rows raw;
    raw_rows_init(&raw);
    fake_cuda_kernel("st_gpu_rows", st_gpu_host_argument, st_gpu_host_rows);
    fake_cuda_kernel("st_gpu_pending", st_gpu_host_argument, st_gpu_host_pending);
    fake_cuda_kernel("st_gpu_front_rows", st_gpu_host_argument, st_gpu_host_front_rows);
    fake_cuda_kernel("st_gpu_front_pending", st_gpu_host_argument, st_gpu_host_front_pending);
    batches(&raw);
    failing_opens(&raw);
    st_arena_free(&raw.arena);
    fake_cuda_end();
    return done_testing();
}
