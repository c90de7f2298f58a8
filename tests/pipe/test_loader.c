/* A loader's life: batches of every size and shape, kept, dropped, interrupted, forked, closed at any moment. */
#include "base/clock.h"
#include "base/cpu.h"
#include "pipe/harness.h"

#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 45 };

static struct stoker_item *items;

static struct stoker_loader *started(const char *text, struct stoker_loader_options opt)
{
    struct stoker_loader *loader = harness_open(items, COUNT, text, &opt);
    if (loader)
        st_loader_start(loader, NULL, 0, NULL);
    return loader;
}

static void sizes(void)
{
    const struct stoker_batch *batch;
    struct stoker_loader_options opt = harness_options(10, 2);
    uint32_t counts[8] = {0}, n = 0;
    struct stoker_loader *loader = started("center_crop(size=8)", opt);
    while (st_loader_next(loader, &batch, NULL) == 0) {
        counts[n++] = batch->count;
        ok(batch->images.shape[0] == batch->count && batch->images.ndim == 4 && batch->index == n - 1,
           "batch %u has %u images", n - 1, batch->count);
        st_batch_release(batch, NULL);
    }
    ok(n == 5 && counts[4] == 5, "the last batch holds the rest");
    ok(st_loader_next(loader, &batch, NULL) == STOKER_END && batch == NULL, "the end stays the end");
    st_loader_close(loader);

    opt.drop_last = true;
    loader = started("center_crop(size=8)", opt);
    uint64_t digests[8];
    ok(loader->epoch.batches == 4 && harness_take(loader, digests, 8, NULL) == 4, "drop_last leaves it out");
    st_loader_close(loader);

    opt.order = STOKER_ORDER_GIVEN;
    loader = harness_open(items, COUNT, "center_crop(size=8)", &opt);
    const uint64_t indices[] = {4, 4, 0, 9, 1, 7};
    const uint32_t batch_sizes[] = {1, 3, 2};
    const struct stoker_epoch given = {.size = sizeof given, .indices = indices, .index_count = 6,
                                       .batch_sizes = batch_sizes, .batch_count = 3};
    st_loader_start(loader, &given, 0, NULL);
    bool right = true;
    for (uint32_t k = 0, at = 0; k < 3; k++) {
        right = right && st_loader_next(loader, &batch, NULL) == 0 && batch->count == batch_sizes[k];
        for (uint32_t row = 0; right && row < batch->count; row++)
            right = batch->samples[row] == indices[at++];
        st_batch_release(batch, NULL);
    }
    ok(right, "batches given from outside come as given");
    struct stoker_error err;
    const uint32_t too_many[] = {7};
    const struct stoker_epoch wrong = {.size = sizeof wrong, .indices = indices, .index_count = 6,
                                       .batch_sizes = too_many, .batch_count = 1};
    ok(st_loader_start(loader, &wrong, 0, &err) == STOKER_EINVAL, "and are checked (%s)", err.message);
    st_loader_close(loader);
}

static void shapes(void)
{
    const struct stoker_batch *batch;
    struct stoker_loader_options opt = harness_options(6, 2);
    struct stoker_loader *loader = started("to_tensor", opt);
    st_loader_next(loader, &batch, NULL);
    bool differ = false;
    for (uint32_t k = 1; k < batch->count; k++)
        differ = differ || batch->items[k].shape[2] != batch->items[0].shape[2];
    ok(batch->ragged && differ && batch->images.data == NULL && batch->items[0].ndim == 3,
       "images of different shapes come one by one");
    float corner = ((const float *)batch->items[1].data)[0];
    int64_t height = batch->items[1].shape[1];
    st_batch_release(batch, NULL);
    st_loader_close(loader);

    opt.ragged = STOKER_RAGGED_PAD;
    loader = started("to_tensor", opt);
    st_loader_next(loader, &batch, NULL);
    const float *second = (const float *)batch->images.data + batch->images.stride[0];
    bool zeros = true;
    for (int64_t y = height; y < batch->images.shape[2]; y++)
        zeros = zeros && second[y * batch->images.stride[2]] == 0;
    ok(!batch->ragged && second[0] == corner && zeros, "or padded with zeros to the largest");
    st_batch_release(batch, NULL);
    st_loader_close(loader);

    opt.layout = STOKER_LAYOUT_NHWC;
    opt.dtype = STOKER_DTYPE_U8;
    opt.dtype_given = true;
    loader = started("center_crop(size=[8, 12])", opt);
    st_loader_next(loader, &batch, NULL);
    const struct stoker_tensor *t = &batch->images;
    ok(t->shape[1] == 3 && t->shape[2] == 8 && t->shape[3] == 12 && t->stride[1] == 1 && t->stride[3] == 3 &&
           t->stride[2] == 36 && t->stride[0] == 8 * 36,
       "channels_last is a matter of strides");
    st_batch_release(batch, NULL);
    st_loader_close(loader);

    for (int layout = STOKER_LAYOUT_NCHW; layout <= STOKER_LAYOUT_NHWC; layout++) {
        opt.layout = (enum stoker_layout)layout;
        loader = started("center_crop(size=[8, 12]); to_array", opt);
        st_loader_next(loader, &batch, NULL);
        t = &batch->images;
        ok(t->shape[1] == 8 && t->shape[2] == 12 && t->shape[3] == 3 && t->stride[3] == 1 &&
               t->stride[2] == 3 && t->stride[1] == 36 && t->stride[0] == 8 * 36,
           "arrays have their channels last, whatever the layout");
        st_batch_release(batch, NULL);
        st_loader_close(loader);
    }
}

static void keep_all(void)
{
    enum { BATCHES = COUNT };
    const struct stoker_batch *kept[BATCHES];
    uint64_t digests[BATCHES];
    struct stoker_stats stats = {.size = sizeof stats};
    struct stoker_loader *loader = started("center_crop(size=16); to_tensor", harness_options(1, 2));
    uint32_t n = 0;
    while (n < BATCHES && st_loader_next(loader, &kept[n], NULL) == 0) {
        digests[n] = digest_batch(kept[n]);
        n++;
    }
    ok(n == BATCHES, "a consumer may keep all batches");
    st_loader_stats(loader, &stats);
    ok(stats.slots_lent == BATCHES && stats.slots >= BATCHES, "slots are added for it (%u)", stats.slots);
    st_loader_close(loader);
    bool same = true;
    for (uint32_t k = 0; k < n; k++) {
        same = same && digests[k] == digest_batch(kept[k]);
        st_batch_release(kept[k], NULL);
    }
    ok(same, "nothing is overwritten, and batches outlive the loader");

    struct stoker_loader_options opt = harness_options(1, 2);
    struct stoker_error err;
    opt.max_memory = 2 * 10 * 3 * 16 * 16 * 4; /* a half of it is for batches */
    loader = started("center_crop(size=16); to_tensor", opt);
    int rc = 0;
    for (n = 0; n < BATCHES && !rc; n += !rc)
        rc = st_loader_next(loader, &kept[n], &err);
    ok(rc == STOKER_ELIMIT && n == 10, "up to max_memory: %u batches (%s)", n, err.message);
    for (uint32_t k = 0; k < n; k++)
        st_batch_release(kept[k], NULL);
    ok(st_loader_next(loader, &kept[0], NULL) == 0, "and goes on when some are released");
    st_batch_release(kept[0], NULL);
    st_loader_close(loader);
}

static void any_moment(void)
{
    enum { TIMES = 60 };
    uint32_t closed = 0;
    for (; closed < TIMES; closed++)
        harness_abandon(started(train_text, harness_options(3, (int32_t)(closed % 4))), closed);
    /* One that hangs never gets here; test_retry.c counts what is still begun. */
    ok(closed == TIMES, "closed at any moment, also with batches lent out");
}

/* A source whose samples never come. */
static atomic_bool hold;
static int slow_read(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                     struct stoker_error *err)
{
    (void)sample, (void)err;
    const struct stoker_item *item = cookie;
    while (atomic_load(&hold))
        usleep(1000);
    *size = item->size;
    if (capacity >= item->size)
        memcpy(buffer, item->data, item->size);
    return 0;
}

static void *interrupter(void *loader)
{
    usleep(30000);
    st_loader_interrupt(loader);
    return NULL;
}

static void waiting(void)
{
    const struct stoker_callbacks calls = {.size = sizeof calls, .count = 8, .read = slow_read};
    struct stoker_loader_options opt = harness_options(2, 2);
    struct stoker_dataset *data;
    struct stoker_pipeline *pipe;
    struct stoker_loader *loader;
    const struct stoker_batch *batch;
    struct stoker_error err;
    pthread_t thread;

    opt.timeout_ms = 40;
    atomic_store(&hold, true);
    st_dataset_from_callbacks(&data, &calls, &items[0], NULL);
    st_pipeline_open(&pipe, "center_crop(size=4)", NULL);
    if (!ok(st_loader_open(&loader, data, pipe, &opt, NULL, &err) == 0, "a loader over callbacks"))
        return;
    st_loader_start(loader, NULL, 0, NULL);
    const uint64_t began = st_now_ns();
    ok(st_loader_next(loader, &batch, &err) == STOKER_ETIMEOUT && st_now_ns() - began > 39000000,
       "next waits no longer than timeout_ms (%s)", err.message);
    loader->opt.timeout_ms = 0;
    pthread_create(&thread, NULL, interrupter, loader);
    ok(st_loader_next(loader, &batch, &err) == STOKER_ECANCELED, "and can be interrupted (%s)", err.message);
    pthread_join(thread, NULL);
    atomic_store(&hold, false);
    ok(st_loader_next(loader, &batch, &err) == 0 && batch->index == 0, "no batch was lost by that");
    st_batch_release(batch, NULL);
    st_loader_close(loader);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
}

/* Neither ThreadSanitizer nor qemu-user allows threads in a child that was forked beside threads, and with
 * AddressSanitizer such a child may find a lock of the allocator taken for ever. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHILD_HAS_THREADS false
#else
#define CHILD_HAS_THREADS (!emulated())
#endif

static void forked(void)
{
    struct stoker_loader *loader = started("center_crop(size=4)", harness_options(2, 2));
    const struct stoker_batch *batch;
    st_loader_next(loader, &batch, NULL);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const struct stoker_batch *other;
        struct stoker_error err;
        int wrong = st_loader_next(loader, &other, &err) != STOKER_EFORK;
        st_batch_release(batch, NULL);
        st_loader_close(loader);
        if (!CHILD_HAS_THREADS)
            _exit(wrong);
        struct stoker_loader *mine = started("center_crop(size=4)", harness_options(2, 2));
        wrong |= st_loader_next(mine, &other, &err) != 0;
        st_batch_release(other, NULL);
        st_loader_close(mine);
        _exit(wrong);
    }
    int status = 1;
    waitpid(child, &status, 0);
    ok(status == 0, "in a forked child the loader says so, can be closed%s",
       CHILD_HAS_THREADS ? ", and another one works" : "");
    if (!CHILD_HAS_THREADS)
        skip("another loader in a forked child", "no threads there under sanitizers or qemu-user");
    st_batch_release(batch, NULL);
    ok(st_loader_next(loader, &batch, NULL) == 0, "the parent's goes on");
    st_batch_release(batch, NULL);
    st_loader_close(loader);
}

static void refused(void)
{
    struct stoker_error err = {0};
    struct stoker_loader_options opt = harness_options(0, 1);
    ok(!harness_open(items, COUNT, "to_tensor", &opt), "batch_size 0 is refused");
    opt = harness_options(1, 5000);
    ok(!harness_open(items, COUNT, "to_tensor", &opt), "5,000 workers are refused");
    opt = harness_options(UINT32_MAX, 1);
    ok(!harness_open(items, COUNT, "resize(size=[30000,30000]); to_tensor", &opt), "batches beyond all memory too");
    opt = harness_options(4, 1);
    struct stoker_loader *loader = harness_open(items, COUNT, "to_tensor", &opt);
    const struct stoker_batch *batch;
    ok(st_loader_next(loader, &batch, &err) == STOKER_EINVAL, "next before start is refused (%s)", err.message);
    st_loader_close(loader);
    loader = harness_open(items, 0, "to_tensor", &opt);
    ok(loader && st_loader_start(loader, NULL, 0, NULL) == 0 && st_loader_next(loader, &batch, NULL) == STOKER_END,
       "an empty dataset is an epoch that ends at once");
    st_loader_close(loader);
    opt.workers = -1;
    bool threadless = false; /* it goes by the clock, which a busy machine can upset now and then */
    for (int tries = 0; tries < 50 && !threadless; tries++) {
        loader = harness_open(items, 2, "center_crop(size=4)", &opt);
        threadless = loader && loader->worker_count == 0;
        st_loader_close(loader);
    }
    ok(threadless, "auto takes no threads for two small images");
    static struct stoker_item many[300];
    for (int k = 0; k < 300; k++)
        many[k] = items[k % COUNT];
    loader = harness_open(many, 300, "center_crop(size=4)", &opt);
    ok(loader && loader->worker_count == st_cpu_share(), "and every CPU of this process for more of them");
    st_loader_close(loader);
    st_loader_close(NULL);
    st_batch_release(NULL, NULL);
}

int main(void)
{
    items = test_items(COUNT);
    sizes();
    shapes();
    keep_all();
    any_moment();
    waiting();
    forked();
    refused();
    test_items_free(items, COUNT);
    return done_testing();
}
