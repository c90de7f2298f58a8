/* test_device.c - the runtime on a real GPU: nothing is overwritten early, and nothing costs time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "gpu/cuda.h"
#include "gpu/gpu.h"
#include "gpu/nvjpeg.h"
#include "gpu_host/raw_rows.h"
#include "tap.h"

#include <dlfcn.h>
#include <unistd.h>

static const struct st_cuda *cuda;
static const struct st_device_kind *const kind = &st_device_cuda;

/* What only the consumer's side needs. */
static int (*launch_host)(struct CUstream_st *stream, void (*work)(void *), void *argument);
static int (*begin_capture)(struct CUstream_st *stream, int mode);
static int (*end_capture)(struct CUstream_st *stream, void **graph);
static int (*destroy_graph)(void *graph);
static int (*pointer_attribute)(void *value, int attribute, uint64_t address);

static void find(void *function, const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *found = library ? dlsym(library, name) : NULL;
    memcpy(function, &found, sizeof found);
}

/* A call of the test's own, which has no reason to fail. */
static void must(int result, const char *what)
{
    struct stoker_error err;
    if (!result)
        return;
    st_cuda_fail(cuda, 0, result, &err, what);
    printf("Bail out! %s\n", err.message);
    exit(1);
}

static void expect(int status, const struct stoker_error *err)
{
    if (!status)
        return;
    printf("Bail out! %s\n", err->message);
    exit(1);
}

static struct CUstream_st *new_stream(void)
{
    struct CUstream_st *stream;
    must(cuda->StreamCreate(&stream, ST_CU_STREAM_NON_BLOCKING), "a stream");
    return stream;
}

static void doze(void *microseconds) { usleep((useconds_t)(uintptr_t)microseconds); }

/* ---- a loader of finished rows ---- */

enum { SLOTS = 3 };
struct loader {
    struct st_finish finish;
    struct st_device *device;
    struct st_device_slot *slot[SLOTS];
    uint8_t *host[SLOTS];
    uint64_t row_bytes, labels_at, bytes;
    uint32_t rows;
};

static void open_loader(struct loader *l, uint32_t rows, int32_t side)
{
    struct stoker_error err;
    bool pinned = true;
    l->finish =
        (struct st_finish){.dtype = STOKER_DTYPE_U8, .layout = STOKER_LAYOUT_NHWC, .channels = 3, .element = 1};
    l->rows = rows;
    l->row_bytes = (uint64_t)side * (uint64_t)side * 3;
    l->labels_at = st_host_finished_labels(rows, l->row_bytes);
    l->bytes = l->labels_at + rows * sizeof(int64_t);
    const struct st_device_want want = {.ordinal = 0,
                                        .rows = rows,
                                        .width = side,
                                        .height = side,
                                        .channels = 3,
                                        .finish = &l->finish,
                                        .host_bytes = l->bytes};
    expect(kind->open(&l->device, &want, &err), &err);
    for (int k = 0; k < SLOTS; k++) {
        void *host;
        expect(kind->slot_new(l->device, &l->slot[k], &host, &pinned, &err), &err);
        l->host[k] = host;
        memset(host, k, l->bytes);
    }
    ok(pinned, "slots of %.1f MB are pinned", (double)l->bytes / 1e6);
}

static void close_loader(struct loader *l)
{
    for (int k = 0; k < SLOTS; k++)
        kind->slot_free(l->device, l->slot[k]);
    kind->close(l->device);
}

static void fill(uint8_t *host, const struct loader *l, uint32_t number)
{
    memset(host, (int)(number % 251 + 1), l->rows * l->row_bytes);
    for (uint32_t row = 0; row < l->rows; row++)
        ((int64_t *)(void *)(host + l->labels_at))[row] = (int64_t)number * 1000 + row;
}

static bool holds(const uint8_t *copy, const struct loader *l, uint32_t number)
{
    const uint64_t images = l->rows * l->row_bytes;
    const uint8_t value = (uint8_t)(number % 251 + 1);
    return copy[0] == value && !memcmp(copy, copy + 1, images - 1) &&
           ((const int64_t *)(const void *)(copy + l->labels_at))[l->rows - 1] ==
               (int64_t)number * 1000 + l->rows - 1;
}

/* Batch after batch, read by streams that are late, each read kept on the device and checked at the end.
 */
static unsigned late_readers(struct loader *l, bool join, uint32_t batches, unsigned doze_us)
{
    struct CUstream_st *stream[2] = {new_stream(), new_stream()};
    struct stoker_error err;
    uint64_t kept;
    uint8_t *copy = malloc(l->bytes);
    unsigned right = 0;
    must(cuda->MemAlloc(&kept, batches * l->bytes), "memory for the batches read");
    for (uint32_t n = 0; n < batches; n++) {
        struct st_device_slot *slot = l->slot[n % SLOTS];
        struct CUstream_st *reader = stream[n % 2];
        void *images, *labels;
        kind->idle(l->device, slot, true);
        fill(l->host[n % SLOTS], l, n);
        expect(kind->submit(l->device, slot, l->rows, l->bytes, &err), &err);
        if (join)
            expect(kind->join(l->device, slot, (uintptr_t)reader, &err), &err);
        else
            expect(kind->sync(l->device, slot, &err),
                   &err); /* it is there; but nobody knows who reads it */
        kind->where(slot, &images, &labels);
        must(launch_host(reader, doze, (void *)(uintptr_t)(n * 7919 % doze_us)), "a late stream");
        must(cuda->MemcpyDtoDAsync(kept + n * l->bytes, (uint64_t)(uintptr_t)images, l->bytes, reader),
             "a read");
        kind->release(l->device, slot);
    }
    must(cuda->StreamSynchronize(stream[0]), "waiting for the readers");
    must(cuda->StreamSynchronize(stream[1]), "waiting for the readers");
    for (uint32_t n = 0; n < batches && copy; n++) {
        must(cuda->MemcpyDtoHAsync(copy, kept + n * l->bytes, l->bytes, stream[0]), "a look");
        must(cuda->StreamSynchronize(stream[0]), "a look");
        right += holds(copy, l, n);
    }
    free(copy);
    cuda->MemFree(kept);
    cuda->StreamDestroy(stream[0]);
    cuda->StreamDestroy(stream[1]);
    return right;
}

static void overwriting(bool large)
{
    const uint32_t batches = large ? 200 : 20;
    struct loader l;
    open_loader(&l, 16, large ? 224 : 32);
    const unsigned right = late_readers(&l, true, batches, 4000);
    ok(right == batches, "%u of %u reads on late streams found their own batch", right, batches);
    const unsigned control = late_readers(&l, false, 24, 100000);
    ok(control < 24, "without joining %u of 24 do: this test can fail", control);
    close_loader(&l);
}

/* ---- what it costs ---- */

static double bare_copies(const struct loader *l, int count)
{
    struct CUstream_st *stream = new_stream();
    uint64_t target;
    must(cuda->MemAlloc(&target, l->bytes), "memory for a copy");
    must(cuda->MemcpyHtoDAsync(target, l->host[0], l->bytes, stream), "a copy");
    must(cuda->StreamSynchronize(stream), "a copy");
    const uint64_t start = st_now_ns();
    for (int k = 0; k < count; k++)
        must(cuda->MemcpyHtoDAsync(target, l->host[k % SLOTS], l->bytes, stream), "a copy");
    must(cuda->StreamSynchronize(stream), "copies");
    const double seconds = (double)(st_now_ns() - start) / 1e9;
    cuda->MemFree(target);
    cuda->StreamDestroy(stream);
    return (double)l->bytes * count / seconds / 1e9;
}

static double our_copies(struct loader *l, int count)
{
    struct CUstream_st *stream = new_stream();
    struct stoker_error err;
    const uint64_t start = st_now_ns();
    for (int k = 0; k < count; k++) {
        struct st_device_slot *slot = l->slot[k % SLOTS];
        kind->idle(l->device, slot, true);
        expect(kind->submit(l->device, slot, l->rows, l->bytes, &err), &err);
        expect(kind->join(l->device, slot, (uintptr_t)stream, &err), &err);
        kind->release(l->device, slot);
    }
    must(cuda->StreamSynchronize(stream), "copies");
    const double seconds = (double)(st_now_ns() - start) / 1e9;
    cuda->StreamDestroy(stream);
    return (double)l->bytes * count / seconds / 1e9;
}

/* Mean microseconds of each call, while the device has nothing else to do. */
static void calls(struct loader *l)
{
    enum { ROUNDS = 200, SUBMIT, JOIN, RELEASE, IDLE, CALLS };
    uint64_t spent[CALLS] = {0}, at[5];
    struct CUstream_st *stream = new_stream();
    struct stoker_error err;
    for (int k = 0; k < ROUNDS + 10; k++) {
        struct st_device_slot *slot = l->slot[k % SLOTS];
        at[0] = st_now_ns();
        expect(kind->submit(l->device, slot, l->rows, l->bytes, &err), &err);
        at[1] = st_now_ns();
        expect(kind->sync(l->device, slot, &err), &err);
        at[2] = st_now_ns();
        expect(kind->join(l->device, slot, (uintptr_t)stream, &err), &err);
        at[3] = st_now_ns();
        kind->release(l->device, slot);
        at[4] = st_now_ns();
        kind->idle(l->device, slot, false);
        if (k < 10) /* the first ones find everything cold */
            continue;
        spent[IDLE] += st_now_ns() - at[4];
        spent[SUBMIT] += at[1] - at[0];
        spent[JOIN] += at[3] - at[2];
        spent[RELEASE] += at[4] - at[3];
    }
    cuda->StreamDestroy(stream);
    note("microseconds: submit %.1f, join %.1f, release %.1f, idle %.1f",
         (double)spent[SUBMIT] / ROUNDS / 1e3, (double)spent[JOIN] / ROUNDS / 1e3,
         (double)spent[RELEASE] / ROUNDS / 1e3, (double)spent[IDLE] / ROUNDS / 1e3);
    ok(spent[JOIN] / ROUNDS < 20000, "a batch that is ready is handed out in less than 20 microseconds");
}

static void costs(bool large)
{
    struct loader l;
    const int count = large ? 30 : 6;
    double bare = 0, ours = 0;
    open_loader(&l, large ? 256 : 16, large ? 224 : 64);
    for (int k = 0; k < 3; k++) { /* the better of three, by turns: others may use the bus as well */
        const double a = bare_copies(&l, count), b = our_copies(&l, count);
        bare = a > bare ? a : bare;
        ours = b > ours ? b : ours;
    }
    note("copies of %.1f MB: bare cuMemcpyHtoDAsync %.2f GB/s, slots %.2f GB/s (%.1f %%)",
         (double)l.bytes / 1e6, bare, ours, 100 * ours / bare);
    ok(!large || ours >= 0.9 * bare, "slots reach nine tenths of the bare bandwidth");
    calls(&l);
    close_loader(&l);
}

/* ---- the rest ---- */

static void captured(void)
{
    struct loader l;
    struct stoker_error err;
    struct CUstream_st *stream = new_stream();
    void *graph = NULL;
    if (!begin_capture || !end_capture || !destroy_graph) {
        skip("a capture is not disturbed", "this driver captures nothing");
        return;
    }
    open_loader(&l, 8, 64);
    expect(kind->submit(l.device, l.slot[0], l.rows, l.bytes, &err), &err);
    expect(kind->join(l.device, l.slot[0], (uintptr_t)stream, &err), &err);
    must(begin_capture(stream, 0), "beginning a capture");
    kind->release(l.device, l.slot[0]);
    const bool idle = kind->idle(l.device, l.slot[0], true);
    ok(idle && !kind->submit(l.device, l.slot[0], l.rows, l.bytes, &err) &&
           !kind->sync(l.device, l.slot[0], &err),
       "batches go on while a graph is captured");
    ok(!kind->join(l.device, l.slot[0], (uintptr_t)stream, &err), "the captured stream joins a batch");
    if (ok(!end_capture(stream, &graph), "and the capture is not disturbed"))
        destroy_graph(graph);
    close_loader(&l);
    cuda->StreamDestroy(stream);
}

static void pinned(void)
{
    enum { MEMORY_TYPE = 2, HOST = 1 };
    struct stoker_error err;
    unsigned type = 0;
    void *mark = NULL, *memory = st_pinned_cuda.take(1 << 20, &err);
    struct CUstream_st *stream = new_stream();
    if (!ok(memory != NULL, "host memory is pinned"))
        return;
    ok(pointer_attribute && !pointer_attribute(&type, MEMORY_TYPE, (uint64_t)(uintptr_t)memory) &&
           type == HOST,
       "and the driver knows it, so is_pinned() is true");
    for (int k = 0; k < 2; k++) {
        must(launch_host(k ? NULL : stream, doze, (void *)(uintptr_t)30000), "a late stream");
        st_pinned_cuda.mark(&mark, k ? 0 : (uintptr_t)stream);
        ok(!st_pinned_cuda.marked_done(mark, false), "%s stream: a waiting copy is noticed",
           k ? "the default" : "a");
        ok(st_pinned_cuda.marked_done(mark, true) && st_pinned_cuda.marked_done(mark, false),
           "and waited for");
    }
    st_pinned_cuda.mark_free(mark);
    st_pinned_cuda.give(memory);
    cuda->StreamDestroy(stream);
}

static void raw_batches(void)
{
    enum { BATCHES = 20 };
    struct raw_rows raw;
    struct stoker_error err;
    struct st_device *device;
    struct st_device_slot *slot[2];
    void *host[2], *images, *labels;
    bool may = true;
    unsigned same = 0;
    static uint8_t expected[RAW_IMAGES], got[RAW_IMAGES];
    raw_rows_init(&raw);
    const struct st_device_want want = raw_want(&raw, 0);
    const int status = kind->open(&device, &want, &err);
    if (status == STOKER_EUNSUPPORTED) {
        skip("raw rows", err.message);
        return;
    }
    expect(status, &err);
    struct CUstream_st *stream = new_stream();
    for (int k = 0; k < 2; k++)
        expect(kind->slot_new(device, &slot[k], &host[k], &may, &err), &err);
    for (uint32_t n = 0; n < BATCHES; n++) {
        kind->idle(device, slot[n % 2], true);
        const uint64_t used = raw_rows_fill(&raw, host[n % 2], n, expected);
        expect(kind->submit(device, slot[n % 2], RAW_ROWS, used, &err), &err);
        expect(kind->join(device, slot[n % 2], (uintptr_t)stream, &err), &err);
        kind->where(slot[n % 2], &images, &labels);
        must(cuda->MemcpyDtoHAsync(got, (uint64_t)(uintptr_t)images, RAW_IMAGES, stream), "a look");
        must(cuda->StreamSynchronize(stream), "a look");
        same += !memcmp(got, expected, RAW_IMAGES);
        kind->release(device, slot[n % 2]);
    }
    ok(same == BATCHES, "%u of %d batches of raw rows are what the CPU makes of them, bit for bit", same,
       BATCHES);
    for (int k = 0; k < 2; k++)
        kind->slot_free(device, slot[k]);
    kind->close(device);
    cuda->StreamDestroy(stream);
    st_arena_free(&raw.arena);
}

/* ---- JPEG hardware ---- */

static void regions(void)
{
    struct stoker_error err = {0};
    struct st_nvjpeg nvjpeg;
    struct loader l;
    struct st_jpeg_hw *hw = NULL;
    struct st_jpeg_pinned pinned = {.bytes = 1 << 20};
    open_loader(&l, 1, 32);
    if (st_nvjpeg_load(&nvjpeg, NULL, &err) || st_jpeg_hw_nvjpeg.open(&hw, l.device, 1, &pinned, NULL, &err))
        skip("JPEG hardware decodes regions", err.message);
    else if (!nvjpeg.DecodeBatchedEx)
        skip("JPEG hardware decodes regions", "this nvJPEG has no function for it");
    else
        ok(st_jpeg_hw_nvjpeg.regions(hw), "JPEG hardware decodes regions");
    if (hw)
        st_jpeg_hw_nvjpeg.close(hw);
    st_nvjpeg_unload(&nvjpeg);
    close_loader(&l);
}

int main(void)
{
    struct stoker_error err;
    struct stoker_feature feature;
    struct CUctx_st *context, *now = NULL;
    size_t free_bytes = 0, all = 0;
    if (st_cuda_get(&cuda, &err)) {
        skip("the runtime on a GPU", err.message);
        return done_testing();
    }
    for (uint32_t k = 0; st_gpu_info(k, &feature); k++)
        note("%s: %s", feature.name, feature.detail);
    find(&launch_host, "cuLaunchHostFunc");
    find(&begin_capture, "cuStreamBeginCapture_v2");
    find(&end_capture, "cuStreamEndCapture");
    find(&destroy_graph, "cuGraphDestroy");
    find(&pointer_attribute, "cuPointerGetAttribute");
    must(cuda->DevicePrimaryCtxRetain(&context, 0), "the context");
    must(cuda->CtxPushCurrent(context), "the context");
    must(cuda->MemGetInfo(&free_bytes, &all), "the memory");
    const bool large = free_bytes > (uint64_t)2 << 30;
    overwriting(large);
    costs(large);
    captured();
    pinned();
    regions();
    raw_batches();
    must(cuda->CtxGetCurrent(&now), "the context");
    ok(now == context, "the caller's context is as it was");
    must(cuda->CtxPopCurrent(&now), "the context");
    must(cuda->DevicePrimaryCtxRelease(0), "the context");
    return done_testing();
}
