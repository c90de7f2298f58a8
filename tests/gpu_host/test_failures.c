/* test_failures.c - every call of the driver fails once, memory runs out, kernels crash: all of it is
 * said clearly, and nothing is left behind
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "consumer.h"
#include "fake_cuda.h"
#include "tap.h"

#include <unistd.h>

static const struct st_device_kind *const cuda = &st_device_cuda;
enum { NO_MEMORY = 2, NOT_INITIALIZED = 3, ILLEGAL_ADDRESS = 700 };

static bool clean(void)
{
    const struct fake_cuda_counts now = fake_cuda_count();
    return !now.allocations && !now.pinned && !now.events && !now.retained && !now.streams &&
           !now.illegal && !fake_cuda_depth() && !fake_cuda_mode();
}

/* A loader's whole life, as far as it gets. */
static int live(struct stoker_error *err)
{
    const struct st_device_want want = finished_rows(-1);
    struct st_device *device;
    struct home home = {0};
    int status = cuda->open(&device, &want, err);
    if (status)
        return status;
    status = new_home(&home, device, err);
    for (uint32_t n = 0; n < 3 && !status; n++) {
        status = send_batch(&home, n, err);
        status = status ? status : cuda->join(device, home.slot, 1, err);
        status = status ? status : cuda->sync(device, home.slot, err);
        if (!status && !holds_batch(home.images, home.labels, n))
            status = st_fail(err, STOKER_ECORRUPT, "the batch is not the one that was sent");
        cuda->release(device, home.slot);
    }
    if (home.slot)
        cuda->slot_free(device, home.slot);
    cuda->close(device);
    return status;
}

static void each_call_fails(void)
{
    static const struct {
        const char *function;
        bool fatal;
    } calls[] = {
        {"cuDeviceGetCount", true},
        {"cuDeviceGet", true},
        {"cuDevicePrimaryCtxRetain", true},
        {"cuCtxPushCurrent_v2", true},
        {"cuStreamCreate", true},
        {"cuMemAlloc_v2", true},
        {"cuEventCreate", true},
        {"cuMemcpyHtoDAsync_v2", true},
        {"cuEventRecord", true},
        {"cuStreamWaitEvent", true},
        {"cuMemHostAlloc", false},
        {"cuCtxGetCurrent", false},
        {"cuStreamIsCapturing", false},
    };
    unsigned silent = 0, wordless = 0, left = 0, failed = 0;
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++)
        for (int nth = 1; nth <= 12; nth++) {
            struct stoker_error err = {0};
            fake_cuda_fail(calls[k].function, nth, 999);
            const int status = live(&err);
            fake_cuda_fail("", 0, 0);
            failed += status != 0;
            silent += nth == 1 && calls[k].fatal && !status;
            wordless += status && !strstr(err.message, "cuda") && !strstr(err.message, "out of memory");
            if (!clean()) {
                left++;
                note("%s, call %d, leaves something behind", calls[k].function, nth);
            }
        }
    ok(failed > 20, "%u lives ended early because a call of the driver failed", failed);
    ok(!silent, "no failure that matters is passed over");
    ok(!wordless, "each is told in a sentence");
    ok(!left, "and none leaves anything behind");
}

static void memory_runs_out(void)
{
    struct stoker_error err = {0};
    fake_cuda_fail("cuMemAlloc_v2", 1, NO_MEMORY);
    ok(live(&err) == STOKER_ENOMEM && strstr(err.message, "64.0 of 64.0 MiB are free") &&
           strstr(err.message, "cuda:0") && strstr(err.message, "smaller or fewer batches"),
       "out of memory is said with numbers: %s", err.message);
    ok(clean(), "and leaves nothing behind");

    fake_cuda.memory = 3 * HOST_BYTES;
    const struct st_device_want want = finished_rows(0);
    struct st_device *device;
    struct home home[4];
    int made = 0;
    cuda->open(&device, &want, &err);
    while (made < 4 && !new_home(&home[made], device, &err))
        made++;
    ok(made == 3 && strstr(err.message, "out of memory"), "three slots fit, the fourth does not");
    ok(!send_batch(&home[2], 7, &err) && !cuda->sync(device, home[2].slot, &err) &&
           holds_batch(home[2].images, home[2].labels, 7),
       "the three still work");
    while (made)
        cuda->slot_free(device, home[--made].slot);
    cuda->close(device);
    fake_cuda.memory = 64 << 20;
    ok(clean(), "and all is given back");
}

static void nothing_to_pin(void)
{
    const struct st_device_want want = finished_rows(0);
    struct stoker_error err = {0};
    struct st_device *device;
    struct home home = {0};
    fake_cuda.pinned = HOST_BYTES - 1;
    cuda->open(&device, &want, &err);
    ok(!new_home(&home, device, &err) && !home.pinned,
       "without pinned memory a slot has ordinary pages");
    ok(!send_batch(&home, 5, &err) && !cuda->sync(device, home.slot, &err) &&
           holds_batch(home.images, home.labels, 5),
       "and its batch arrives");
    cuda->slot_free(device, home.slot);
    fake_cuda.pinned = 64 << 20;
    bool may = false;
    ok(!cuda->slot_new(device, &home.slot, &home.host, &may, &err) && !may && !fake_cuda_count().pinned,
       "nor is it pinned where the budget is spent");
    cuda->slot_free(device, home.slot);
    fake_cuda.pinned = HOST_BYTES - 1;
    cuda->close(device);
    ok(!st_pinned_cuda.take(HOST_BYTES, &err) && strstr(err.message, "pinning host memory"),
       "a batch of the CPU's cannot be pinned: %s", err.message);
    fake_cuda.pinned = 64 << 20;
    ok(clean(), "nothing is left behind");
}

static void wrong_wishes(void)
{
    struct stoker_error err = {0};
    struct st_device *device;
    struct st_device_want want = finished_rows(3);
    ok(cuda->open(&device, &want, &err) == STOKER_EINVAL &&
           strstr(err.message, "cuda:3: no such device; this machine has 2"),
       "%s", err.message);
    want = finished_rows(0);
    want.host_bytes = HOST_BYTES - 1;
    ok(cuda->open(&device, &want, &err) == STOKER_EINVAL, "%s", err.message);
    want = finished_rows(0);
    want.rows = want.width = want.height = 0x7fffffff;
    ok(cuda->open(&device, &want, &err) == STOKER_EINVAL, "%s", err.message);
    want = finished_rows(0);
    want.raw = true;
    want.host_bytes = ROWS * (sizeof(struct st_job) + 8) - 1;
    ok(cuda->open(&device, &want, &err) == STOKER_EINVAL, "%s", err.message);
    ok(clean(), "nothing is left behind");

    want = finished_rows(1);
    struct home home = {0};
    cuda->open(&device, &want, &err);
    new_home(&home, device, &err);
    ok(device->ordinal == 1, "cuda:1 is the second device");
    ok(cuda->submit(device, home.slot, ROWS + 1, HOST_BYTES, &err) == STOKER_EINVAL &&
           cuda->submit(device, home.slot, 0, HOST_BYTES, &err) == STOKER_EINVAL &&
           cuda->submit(device, home.slot, ROWS, HOST_BYTES + 1, &err) == STOKER_EINVAL &&
           cuda->submit(device, home.slot, ROWS, LABELS_AT, &err) == STOKER_EINVAL,
       "a batch that is none is refused: %s", err.message);
    cuda->slot_free(device, home.slot);
    cuda->close(device);
}

static void current_device(void)
{
    struct stoker_error err = {0};
    struct st_device *device;
    void *second, *now = NULL;
    const struct st_device_want want = finished_rows(-1);
    cuda->open(&device, &want, &err);
    ok(device->ordinal == 0, "without a current device it is the first");
    cuda->close(device);
    cuDevicePrimaryCtxRetain(&second, 1);
    cuCtxPushCurrent_v2(second);
    cuda->open(&device, &want, &err);
    ok(device->ordinal == 1, "else the current one");
    cuda->close(device);
    cuCtxGetCurrent(&now);
    ok(now == second && fake_cuda_depth() == 1, "which stays current");
    cuCtxPopCurrent_v2(&now);
    cuDevicePrimaryCtxRelease_v2(1);
    ok(clean(), "nothing is left behind");
}

/* The error of a kernel, ours or not, arrives whenever the driver is asked next. */
static void crashed_kernel(void)
{
    const struct st_device_want want = finished_rows(0);
    struct stoker_error err = {0};
    struct st_device *device;
    struct home home = {0};
    cuda->open(&device, &want, &err);
    new_home(&home, device, &err);
    send_batch(&home, 1, &err);
    fake_cuda_poison(ILLEGAL_ADDRESS);
    ok(cuda->sync(device, home.slot, &err) == STOKER_EIO &&
           strstr(err.message, "CUDA_ERROR_ILLEGAL_ADDRESS") && strstr(err.message, "compute-sanitizer"),
       "%s", err.message);
    ok(cuda->idle(device, home.slot, false) && cuda->idle(device, home.slot, true),
       "nobody waits for it");
    ok(cuda->submit(device, home.slot, ROWS, HOST_BYTES, &err) == STOKER_EIO &&
           cuda->join(device, home.slot, 1, &err) == STOKER_EIO,
       "the next batch finds it too");
    cuda->release(device, home.slot);
    fake_cuda_poison(0); /* a real driver takes everything back by itself when the process ends */
    cuda->slot_free(device, home.slot);
    cuda->close(device);
    ok(clean(), "closing works all the same");
}

static void in_words(void)
{
    struct stoker_feature feature;
    uint32_t count = 0;
    bool device = false, driver = false, kernels = false;
    const struct fake_cuda_counts before = fake_cuda_count();
    for (; st_gpu_info(count, &feature); count++) {
        note("%s %s %s", feature.name, feature.present ? "yes" : "no", feature.detail);
        driver |=
            !strcmp(feature.name, "driver") && feature.present && !strcmp(feature.detail, "CUDA 13.0");
        device |=
            !strcmp(feature.name, "cuda:1") && feature.present && strstr(feature.detail, "Fake GPU B");
        kernels |= !strcmp(feature.name, "kernels");
    }
    ok(count >= 4 && driver && device && kernels, "driver, both devices and the kernels are listed");
    ok(fake_cuda_count().retained == before.retained, "and no context is made for it");
}

static void *open_gate_soon(void *argument)
{
    struct gate *gate = argument;
    usleep(30000);
    set_gate(gate, true);
    return NULL;
}

/* Several streams have the memory, and leave it one by one. All of them are waited for, whichever is
 * marked last, and in whichever device. */
static void several_marks(const struct st_pinned_kind *pinned, struct CUstream_st *const *stream,
                          int count)
{
    void *mark = NULL;
    for (int late = 0; late < count; late++) {
        struct gate gate = GATE;
        cuLaunchHostFunc(stream[late], pass_gate, &gate);
        for (int k = 0; k < count; k++)
            pinned->mark(&mark, (uintptr_t)stream[k]);
        pinned->mark(&mark, (uintptr_t)stream[(late + 1) % count]);
        pinned->mark(&mark, 0);
        ok(!pinned->marked_done(mark, false), "stream %d of %d is late: it is noticed", late, count);
        set_gate(&gate, true);
        ok(pinned->marked_done(mark, true) && pinned->marked_done(mark, false), "and waited for");
    }
    const int events = fake_cuda_count().events;
    for (int k = 0; k < 100; k++) {
        for (int each = 0; each < count; each++)
            pinned->mark(&mark, (uintptr_t)stream[each]);
        pinned->marked_done(mark, true);
    }
    ok(fake_cuda_count().events == events, "marks are used again: %d events", events);
    pinned->mark_free(mark);
}

/* What cannot be marked is waited for: no event, or no memory for the first mark. */
static void no_marks(const struct st_pinned_kind *pinned, struct CUstream_st *stream)
{
    static const char *const failing[] = {"cuEventCreate", "cuEventRecord", "cuDeviceGetCount"};
    for (int k = 0; k < 3; k++) {
        struct gate gate = GATE;
        pthread_t opener;
        void *mark = NULL;
        cuLaunchHostFunc(stream, pass_gate, &gate);
        pthread_create(&opener, NULL, open_gate_soon, &gate);
        fake_cuda_fail(failing[k], 1, 999);
        pinned->mark(&mark, (uintptr_t)stream);
        fake_cuda_fail(failing[k], 0, 0);
        pthread_mutex_lock(&gate.lock);
        const bool open = gate.open;
        pthread_mutex_unlock(&gate.lock);
        ok(open, "%s fails: the stream is waited for at once", failing[k]);
        pthread_join(opener, NULL);
        cuStreamSynchronize(stream);
        pinned->mark_free(mark);
    }
}

/* Pinned batches of the CPU's: read by a copy that waits in a stream when they are let go. */
static void marks(void)
{
    const struct st_pinned_kind *pinned = &st_pinned_cuda;
    struct stoker_error err = {0};
    void *context, *mark = NULL;
    struct CUstream_st *own, *fixed = (struct CUstream_st *)1;
    uint8_t *memory = pinned->take(100000, &err);
    if (!ok(memory && (uintptr_t)memory % 4096 == 0, "memory is pinned, and begins at a page"))
        return;
    memset(memory, 1, 100000);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxPushCurrent_v2(context);
    cuStreamCreate(&own, 1);
    for (int k = 0; k < 2; k++) {
        struct gate gate = GATE;
        struct CUstream_st *stream = k ? fixed : own;
        cuLaunchHostFunc(stream, pass_gate, &gate);
        pinned->mark(&mark, k ? 0 : (uintptr_t)own);
        ok(!pinned->marked_done(mark, false), "%s: a waiting copy is noticed",
           k ? "default stream" : "stream");
        set_gate(&gate, true);
        ok(pinned->marked_done(mark, true) && pinned->marked_done(mark, false), "and waited for");
    }
    struct CUstream_st *stream[4] = {own};
    void *other;
    cuStreamCreate(&stream[1], 1);
    cuDevicePrimaryCtxRetain(&other, 1);
    cuCtxPushCurrent_v2(other);
    cuStreamCreate(&stream[2], 1);
    cuStreamCreate(&stream[3], 1);
    cuCtxPopCurrent_v2(&other);
    several_marks(pinned, stream, 4);
    no_marks(pinned, stream[1]);
    for (int k = 1; k < 4; k++)
        cuStreamDestroy_v2(stream[k]);
    cuDevicePrimaryCtxRelease_v2(1);
    fake_cuda_capture(own, true);
    pinned->mark(&mark, (uintptr_t)own);
    ok(pinned->marked_done(mark, true) && fake_cuda_capture_whole(), "a capture is not disturbed");
    fake_cuda_capture(own, false);
    pinned->mark_free(mark);
    pinned->give(memory);
    ok(fake_cuda_count().retained == 1,
       "no context is held any longer, and none was made on other devices");
    cuStreamDestroy_v2(own);
    cuCtxPopCurrent_v2(&context);
    cuDevicePrimaryCtxRelease_v2(0);
    ok(clean(), "nothing is left behind");
}

int main(void)
{
    each_call_fails();
    memory_runs_out();
    nothing_to_pin();
    wrong_wishes();
    current_device();
    crashed_kernel();
    in_words();
    marks();
    fake_cuda_end();
    return done_testing();
}
