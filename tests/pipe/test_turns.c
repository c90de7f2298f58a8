/* Samples that take a few microseconds are taken several at a time, and nobody can tell. */
#include "pipe/harness.h"

#include <unistd.h>

enum { COUNT = 6000, BATCH = 64, BATCHES = (COUNT + BATCH - 1) / BATCH, DAMAGED = 1234 };

static struct stoker_item *items;

static uint32_t epoch_of(int32_t workers, enum stoker_on_error policy, uint64_t *digests,
                         uint64_t *turn_ns)
{
    struct stoker_loader_options opt = harness_options(BATCH, workers);
    opt.on_error = policy;
    struct stoker_loader *loader = harness_open(items, COUNT, "center_crop(size=2)", &opt);
    uint32_t taken = 0;
    if (loader && st_loader_start(loader, NULL, 0, NULL) == 0)
        taken = harness_take(loader, digests, BATCHES + 1, NULL);
    if (loader)
        st_loader_stop(loader); /* no worker is busy any more */
    *turn_ns = loader ? loader->worker[0].sample_ns : 0;
    st_loader_close(loader);
    return taken;
}

static void same_bytes(void)
{
    static const int32_t counts[] = {1, 2, 7, 40};
    static uint64_t truth[BATCHES + 1], digests[BATCHES + 1];
    static const enum stoker_on_error policies[] = {STOKER_ON_ERROR_SKIP, STOKER_ON_ERROR_REPLACE};
    uint64_t ns;
    for (int p = 0; p < 2; p++) {
        uint32_t taken = epoch_of(0, policies[p], truth, &ns);
        ok(taken == BATCHES, "an epoch without threads, %llu ns a sample", (unsigned long long)ns);
        for (int k = 0; k < 4; k++) {
            taken = epoch_of(counts[k], policies[p], digests, &ns);
            ok(taken == BATCHES && !memcmp(digests, truth, sizeof *truth * BATCHES),
               "%d threads give the same, in the same order, a damaged sample among them (%llu ns)",
               counts[k], (unsigned long long)ns);
        }
    }
}

/* Epochs are stopped while workers are in the midst of their turns. */
static void stopped(void)
{
    const struct stoker_loader_options opt = harness_options(BATCH, 3);
    struct stoker_loader *loader = harness_open(items, DAMAGED, "center_crop(size=2)", &opt);
    const struct stoker_batch *batch;
    bool good = loader != NULL;
    for (uint32_t k = 0; good && k < 200; k++) {
        good = st_loader_start(loader, NULL, 0, NULL) == 0;
        for (uint32_t b = 0; good && b < k % 5; b++) {
            good =
                st_loader_next(loader, &batch, NULL) == 0 && batch->index == b && batch->count == BATCH;
            if (good)
                st_batch_release(batch, NULL);
        }
    }
    ok(good, "200 epochs stopped after a few batches");
    st_loader_close(loader);
}

/* ---- one slow sample -------------------------------------------------------------------------------
 */

enum { SLOW = 40 * BATCH + 7, AHEAD = 4, ENOUGH = 3, PATIENCE = 3000 /* times 10 ms */ };

static struct stoker_loader *slow_loader;

static uint32_t ready_now(void)
{
    uint32_t ready = 0;
    pthread_mutex_lock(&slow_loader->lock);
    for (const struct st_slot *slot = slow_loader->slots; slot; slot = slot->next)
        ready += slot->state == ST_SLOT_READY && slot->number > SLOW / BATCH;
    pthread_mutex_unlock(&slow_loader->lock);
    return ready;
}

static int store_read(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                      struct stoker_error *err)
{
    uint32_t *ready = cookie;
    (void)err;
    *size = items[sample % 16].size;
    if (capacity < *size)
        return 0;
    for (int k = 0; sample == SLOW && (*ready = ready_now()) < ENOUGH && k < PATIENCE; k++)
        usleep(10000);
    memcpy(buffer, items[sample % 16].data, *size);
    return 0;
}

/* While a sample stalls, and with it its batch, those behind it are made, as far as they are kept ahead.
 */
static void slow_sample(void)
{
    uint32_t ready = 0, taken = 0;
    const struct stoker_callbacks store = {.size = sizeof store, .count = COUNT, .read = store_read};
    struct stoker_loader_options opt = harness_options(BATCH, 3);
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    const struct stoker_batch *batch;
    opt.order = STOKER_ORDER_SEQUENTIAL;
    opt.prefetch = AHEAD;
    if (st_dataset_from_callbacks(&data, &store, &ready, NULL) ||
        st_pipeline_open(&pipe, "center_crop(size=2)", NULL) ||
        st_loader_open(&slow_loader, data, pipe, &opt, NULL, NULL) ||
        st_loader_start(slow_loader, NULL, 0, NULL))
        abort();
    for (; st_loader_next(slow_loader, &batch, NULL) == 0; taken++)
        st_batch_release(batch, NULL);
    ok(taken == BATCHES && ready >= ENOUGH, "%u batches are made behind one whose sample stalls", ready);
    st_loader_close(slow_loader);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
}

int main(void)
{
    items = calloc(COUNT, sizeof *items);
    struct stoker_item some[16];
    for (uint32_t k = 0; k < 16; k++)
        some[k] = test_ppm(k, 3, 3);
    for (uint32_t k = 0; items && k < COUNT; k++)
        items[k] = (struct stoker_item){some[k % 16].data, some[k % 16].size, (int64_t)k};
    if (!items)
        return 1;
    stopped();
    slow_sample();
    items[DAMAGED].size = 5;
    same_bytes();
    for (uint32_t k = 0; k < 16; k++)
        free((void *)(uintptr_t)some[k].data);
    free(items);
    return done_testing();
}
