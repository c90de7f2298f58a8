/* test_slots.c - no slot is overwritten before its readers are through, whatever they do
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "consumer.h"
#include "fake_cuda.h"
#include "tap.h"

#include <unistd.h>

static const struct st_device_kind *const cuda = &st_device_cuda;
static void *context0, *context1; /* of the two devices, held by the test as torch would */

static struct st_device *open_device(int ordinal)
{
    struct stoker_error err;
    const struct st_device_want want = finished_rows(ordinal);
    struct st_device *device = NULL;
    if (cuda->open(&device, &want, &err)) {
        printf("Bail out! %s\n", err.message);
        exit(1);
    }
    return device;
}

static struct home open_home(struct st_device *device)
{
    struct home home;
    struct stoker_error err;
    if (new_home(&home, device, &err)) {
        printf("Bail out! %s\n", err.message);
        exit(1);
    }
    return home;
}

static void close_home(struct home *home)
{
    cuda->slot_free(home->device, home->slot);
    cuda->close(home->device);
}

static void nothing_left(const char *after)
{
    const struct fake_cuda_counts now = fake_cuda_count();
    ok(!now.allocations && !now.pinned && !now.events && now.retained == 2 && !now.illegal,
       "%s nothing is left behind (%d allocations, %d pinned, %d events, %d contexts, %d bad accesses)",
       after, now.allocations, now.pinned, now.events, now.retained, now.illegal);
}

static struct CUstream_st *new_stream(void)
{
    struct CUstream_st *stream;
    if (cuStreamCreate(&stream, 1))
        exit(1);
    return stream;
}

/* Batches in turn through three slots, two consumer streams, everything late. */
static void stream_of_batches(void)
{
    enum { SLOTS = 3, BATCHES = 60 };
    struct st_device *device = open_device(0);
    struct home home[SLOTS];
    static struct look look[BATCHES];
    struct CUstream_st *stream[2] = {new_stream(), new_stream()};
    struct stoker_error err;
    unsigned right = 0, seen = 0;
    fake_cuda.delay_us = 400;
    for (int k = 0; k < SLOTS; k++)
        home[k] = open_home(device);
    for (uint32_t n = 0; n < BATCHES; n++) {
        struct home *at = &home[n % SLOTS];
        if (send_batch(at, n, &err) || cuda->join(device, at->slot, (uintptr_t)stream[n % 2], &err))
            note("%s", err.message);
        look[n] = (struct look){.images = at->images, .labels = at->labels, .number = n};
        cuLaunchHostFunc(stream[n % 2], look_at, &look[n]);
        cuLaunchHostFunc(stream[n % 2], look_at, &look[n]);
        cuda->release(device, at->slot);
    }
    cuStreamSynchronize(stream[0]);
    cuStreamSynchronize(stream[1]);
    for (int n = 0; n < BATCHES; n++) {
        right += look[n].right;
        seen += look[n].seen;
    }
    ok(seen == 2 * BATCHES && right == seen, "%d of %d reads on late streams found their own batch",
       right, 2 * BATCHES);
    for (int k = 0; k < SLOTS; k++)
        cuda->slot_free(device, home[k].slot);
    cuda->close(device);
    cuStreamDestroy_v2(stream[0]);
    cuStreamDestroy_v2(stream[1]);
    fake_cuda.delay_us = 0;
    nothing_left("after many batches");
}

enum manner { NOTHING, JOIN, MARK };

/* The slot is submitted again while `streams` of the consumer's still read it behind a gate. With MARK,
 * they have not joined, but are marked one by one before the batch is released in another stream. */
static unsigned read_behind_gate(struct home *home, struct CUstream_st **streams, unsigned count,
                                 enum manner manner)
{
    struct gate gate = GATE;
    struct look look[32];
    struct stoker_error err;
    unsigned right = 0;
    send_batch(home, 1, &err);
    cuda->sync(home->device, home->slot, &err);
    for (unsigned k = 0; k < count; k++) {
        if (manner == JOIN)
            cuda->join(home->device, home->slot, (uintptr_t)streams[k], &err);
        look[k] = (struct look){&gate, home->images, home->labels, 1, 0, 0};
        cuLaunchHostFunc(streams[k], look_at, &look[k]);
        if (manner == MARK) {
            cuda->mark(home->device, home->slot, (uintptr_t)streams[k]);
            cuda->join(home->device, home->slot, (uintptr_t)streams[0], &err);
            cuda->mark(home->device, home->slot, (uintptr_t)streams[k / 2]);
        }
    }
    cuda->release(home->device, home->slot);
    send_batch(home, 2, &err);
    if (manner != NOTHING)
        usleep(20000); /* time enough to do it wrong */
    else
        cuda->sync(home->device, home->slot, &err);
    set_gate(&gate, true);
    for (unsigned k = 0; k < count; k++)
        cuStreamSynchronize(streams[k]);
    cuda->sync(home->device, home->slot, &err);
    for (unsigned k = 0; k < count; k++)
        right += look[k].right;
    return right;
}

static void gates(void)
{
    enum { STREAMS = 20 };
    struct home home = open_home(open_device(0));
    struct CUstream_st *stream[STREAMS];
    for (int k = 0; k < STREAMS; k++)
        stream[k] = new_stream();
    ok(home.pinned, "the host half is pinned");
    ok(read_behind_gate(&home, stream, 1, JOIN) == 1, "a reader is waited for");
    ok(holds_batch(home.images, home.labels, 2), "and then the next batch arrives");
    ok(read_behind_gate(&home, stream, STREAMS, JOIN) == STREAMS, "so are %d readers at once", STREAMS);
    ok(read_behind_gate(&home, stream, STREAMS, MARK) == STREAMS, "and %d that left it one by one",
       STREAMS);
    ok(holds_batch(home.images, home.labels, 2), "before the next batch arrives");
    const char *control = "a stream that never joined is overwritten: this test can fail";
#if defined(__SANITIZE_THREAD__)
    skip(control, "that is a data race, as ThreadSanitizer would say");
#else
    ok(read_behind_gate(&home, stream, 1, NOTHING) == 0, "%s", control);
#endif
    for (uintptr_t handle = 0; handle < 3; handle++) {
        struct CUstream_st *fixed = (struct CUstream_st *)handle;
        ok(read_behind_gate(&home, &fixed, 1, JOIN) == 1, "the default stream %d is waited for",
           (int)handle);
    }
    for (int k = 0; k < STREAMS; k++)
        cuStreamDestroy_v2(stream[k]);
    close_home(&home);
    nothing_left("after readers behind gates");
}

/* A thread that reads on its own default stream, and ends. */
struct visitor {
    struct home *home;
    struct look look;
    void *context;
};

static void *visit(void *argument)
{
    struct visitor *visitor = argument;
    struct stoker_error err;
    cuCtxPushCurrent_v2(visitor->context);
    cuda->join(visitor->home->device, visitor->home->slot, 2, &err);
    cuLaunchHostFunc((struct CUstream_st *)2, look_at, &visitor->look);
    return NULL;
}

static void per_thread_stream(void)
{
    struct home home = open_home(open_device(0));
    struct gate gate = GATE;
    struct visitor visitor = {&home, {&gate, home.images, home.labels, 1, 0, 0}, context0};
    struct stoker_error err;
    pthread_t thread;
    send_batch(&home, 1, &err);
    pthread_create(&thread, NULL, visit, &visitor);
    pthread_join(thread, NULL);
    cuda->release(home.device, home.slot);
    send_batch(&home, 2, &err);
    usleep(20000);
    set_gate(&gate, true);
    cuda->sync(home.device, home.slot, &err);
    ok(visitor.look.right == 1, "another thread's own default stream is waited for");
    close_home(&home);
    nothing_left("after a visitor");
}

static void *open_gate_soon(void *argument)
{
    usleep(30000);
    set_gate(argument, true);
    return NULL;
}

/* Streams that take no event of the slot's. */
static void strange_streams(void)
{
    struct home home = open_home(open_device(0));
    struct gate gate = GATE;
    struct look look = {&gate, home.images, home.labels, 1, 0, 0};
    struct stoker_error err;
    pthread_t opener;
    struct CUstream_st *stream;
    cuCtxPushCurrent_v2(context1);
    stream = new_stream();
    send_batch(&home, 1, &err);
    ok(!cuda->join(home.device, home.slot, (uintptr_t)stream, &err),
       "a stream of another device can join");
    cuLaunchHostFunc(stream, look_at, &look);
    pthread_create(&opener, NULL, open_gate_soon, &gate);
    cuda->release(home.device, home.slot);
    send_batch(&home, 2, &err);
    cuda->sync(home.device, home.slot, &err);
    pthread_join(opener, NULL);
    cuStreamSynchronize(stream);
    ok(look.right == 1, "and is waited for");
    cuStreamDestroy_v2(stream);
    cuCtxPopCurrent_v2(&(void *){NULL});

    close_home(&home);
    nothing_left("after strange streams");
}

static void captures(void)
{
    struct home home = open_home(open_device(0));
    struct CUstream_st *stream = new_stream();
    struct stoker_error err;
    send_batch(&home, 1, &err);
    cuda->join(home.device, home.slot, (uintptr_t)stream, &err);
    fake_cuda_capture(stream, true);
    cuda->release(home.device, home.slot);
    struct home other = open_home(home.device);
    ok(!send_batch(&home, 2, &err) && !send_batch(&other, 3, &err) &&
           !cuda->sync(home.device, home.slot, &err),
       "batches go on while a graph is captured");
    ok(!cuda->join(home.device, other.slot, (uintptr_t)stream, &err) &&
           holds_batch(other.images, other.labels, 3),
       "a stream that is captured joins a batch that is there");
    cuda->slot_free(home.device, other.slot);
    fake_cuda_capture(stream, false);
    ok(fake_cuda_capture_whole() && !fake_cuda_mode(), "and the capture is not disturbed");
    cuStreamDestroy_v2(stream);
    close_home(&home);
    nothing_left("after a capture");
}

/* Freed with a reader at work: nobody's memory goes away under it. */
static void close_in_flight(void)
{
    struct st_device *device = open_device(0);
    struct home a = open_home(device), b = open_home(device);
    struct CUstream_st *stream = new_stream();
    struct gate gate = GATE;
    struct look look[2] = {{&gate, a.images, a.labels, 1, 0, 0}, {&gate, b.images, b.labels, 2, 0, 0}};
    struct stoker_error err;
    pthread_t opener;
    fake_cuda.delay_us = 3000;
    send_batch(&a, 1, &err);
    send_batch(&b, 2, &err);
    cuda->join(device, a.slot, (uintptr_t)stream, &err);
    cuLaunchHostFunc(stream, look_at, &look[0]);
    cuda->join(device, b.slot, (uintptr_t)stream, &err);
    cuLaunchHostFunc(stream, look_at, &look[1]);
    cuda->release(device, b.slot);
    pthread_create(&opener, NULL, open_gate_soon, &gate);
    cuda->slot_free(device, b.slot); /* released, still read */
    ok(look[1].right == 1, "a released slot is freed after its reader");
    cuda->slot_free(device, a.slot); /* never released */
    ok(look[0].right == 1, "so is one that was not released");
    struct home c = open_home(device);
    send_batch(&c, 3, &err);
    close_home(&c); /* the copy still runs */
    pthread_join(opener, NULL);
    cuStreamDestroy_v2(stream);
    fake_cuda.delay_us = 0;
    nothing_left("after closing with work in flight");
}

/* Workers of one loader submit their slots at the same time. */
struct shift {
    struct st_device *device;
    struct CUstream_st *stream;
    uint32_t first;
    unsigned right;
};

static void *work_shift(void *argument)
{
    enum { BATCHES = 25 };
    struct shift *shift = argument;
    struct stoker_error err;
    struct look look[BATCHES];
    struct home home = open_home(shift->device);
    cuCtxPushCurrent_v2(context0);
    for (uint32_t n = 0; n < BATCHES; n++) {
        send_batch(&home, shift->first + n, &err);
        cuda->join(home.device, home.slot, (uintptr_t)shift->stream, &err);
        look[n] =
            (struct look){.images = home.images, .labels = home.labels, .number = shift->first + n};
        cuLaunchHostFunc(shift->stream, look_at, &look[n]);
        cuda->release(home.device, home.slot);
    }
    cuda->slot_free(home.device, home.slot);
    for (uint32_t n = 0; n < BATCHES; n++)
        shift->right += look[n].right;
    return NULL;
}

static void many_threads(void)
{
    enum { THREADS = 4 };
    struct st_device *device = open_device(0);
    struct shift shift[THREADS];
    pthread_t thread[THREADS];
    unsigned right = 0;
    fake_cuda.delay_us = 100;
    for (uint32_t k = 0; k < THREADS; k++) {
        shift[k] = (struct shift){device, new_stream(), 1000 * k, 0};
        pthread_create(&thread[k], NULL, work_shift, &shift[k]);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(thread[k], NULL);
        cuStreamDestroy_v2(shift[k].stream);
        right += shift[k].right;
    }
    cuda->close(device);
    fake_cuda.delay_us = 0;
    ok(right == 100, "%u of 100 batches of four threads arrived whole", right);
    nothing_left("after four threads");
}

int main(void)
{
    cuInit(0);
    cuDevicePrimaryCtxRetain(&context0, 0);
    cuDevicePrimaryCtxRetain(&context1, 1);
    cuCtxPushCurrent_v2(context0);
    stream_of_batches();
    gates();
    per_thread_stream();
    strange_streams();
    captures();
    close_in_flight();
    many_threads();
    void *now;
    cuCtxGetCurrent(&now);
    ok(fake_cuda_depth() == 1 && now == context0, "the caller's context is as it was");
    fake_cuda_end();
    return done_testing();
}
