/* Memory: once a loader runs it allocates nothing more, and any allocation may fail without harm.
 *
 * The C library's allocator is replaced by one that counts and can refuse.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include "tap.h"
int main(void)
{
    skip("allocations counted and refused", "the sanitizer brings an allocator of its own");
    return done_testing();
}
#else
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);

static atomic_long allocations;
static atomic_long fail_at = -1; /* allocations until one fails; -1: none does */

static int refuse(void)
{
    atomic_fetch_add(&allocations, 1);
    if (atomic_load(&fail_at) < 0)
        return 0;
    return atomic_fetch_sub(&fail_at, 1) == 0;
}

void *malloc(size_t size) { return refuse() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return refuse() ? NULL : __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return refuse() ? NULL : __libc_realloc(block, size); }
void *aligned_alloc(size_t align, size_t size) { return refuse() ? NULL : __libc_memalign(align, size); }

#include "pipe/harness.h"

enum { COUNT = 64, BATCH = 8 };

static uint32_t run_epoch(struct stoker_loader *loader, uint64_t number)
{
    const struct stoker_epoch which = {.size = sizeof which, .epoch = number % 4};
    const struct stoker_batch *batch;
    uint32_t batches = 0;
    st_loader_start(loader, &which, 0, NULL);
    while (st_loader_next(loader, &batch, NULL) == 0) {
        st_batch_release(batch, NULL);
        batches++;
    }
    return batches;
}

/* Scratch grows until each worker has met the images that need most, which is a matter of chance; after
 * that no epoch may allocate. */
static void steady(const struct stoker_item *items, const char *text, const char *what)
{
    enum { ENOUGH = 8, AT_MOST = 200 };
    const struct stoker_loader_options opt = harness_options(BATCH, 2);
    struct stoker_loader *loader = harness_open(items, COUNT, text, &opt);
    uint32_t quiet = 0, epochs = 0;
    for (; epochs < AT_MOST && quiet < ENOUGH; epochs++) {
        const long before = atomic_load(&allocations);
        const uint32_t batches = run_epoch(loader, epochs);
        quiet = batches == COUNT / BATCH && atomic_load(&allocations) == before ? quiet + 1 : 0;
    }
    ok(quiet == ENOUGH, "%s: %d epochs in a row allocate nothing, after %u", what, ENOUGH, epochs - quiet);
    st_loader_close(loader);
}

/* Opens, takes two batches, closes; every allocation on the way is made to fail once. */
static void failing(const struct stoker_item *items)
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    uint32_t failures = 0, survived = 0;
    long tries = 0;
    for (;; tries++) {
        struct stoker_error err = {0};
        struct stoker_dataset *data = NULL;
        struct stoker_pipeline *pipe = NULL;
        struct stoker_loader *loader = NULL;
        const struct stoker_batch *batch = NULL;
        atomic_store(&fail_at, tries);
        int rc = st_dataset_from_memory(&data, items, COUNT, &err);
        if (!rc)
            rc = st_pipeline_open(&pipe, "random_apply(p=0.5){random_horizontal_flip}; center_crop(size=16)", &err);
        if (!rc)
            rc = st_loader_open(&loader, data, pipe, &opt, NULL, &err);
        if (!rc)
            rc = st_loader_start(loader, NULL, 0, &err);
        for (int k = 0; !rc && k < 2; k++) {
            rc = st_loader_next(loader, &batch, &err);
            st_batch_release(batch, NULL);
        }
        st_loader_close(loader);
        st_pipeline_drop(pipe);
        st_dataset_drop(data);
        const bool reached = atomic_load(&fail_at) < 0;
        atomic_store(&fail_at, -1);
        if (rc)
            failures += err.message[0] != '\0';
        else
            survived++;
        if (!reached || tries > 5000)
            break;
    }
    ok(failures >= 8 && failures + survived == (uint32_t)tries + 1,
       "each of %ld allocations may fail: %u errors with a sentence, %u survived", tries, failures, survived);
}

/* A batch with two damaged samples, under every policy; every allocation of its epoch is made to fail once. Whatever
 * comes of it, a batch that is delivered has its failures in the ledger, with their reasons. */
static void ledger(const struct stoker_item *items, enum stoker_on_error policy)
{
    struct stoker_item some[BATCH];
    uint32_t lost = 0, listed = 0;
    long tries = 0;
    for (uint32_t k = 0; k < BATCH; k++)
        some[k] = items[k];
    some[2].size = some[5].size = 20;
    for (bool reached = true; reached && tries < 2000; tries++) {
        struct stoker_loader_options opt = harness_options(BATCH, 0);
        struct stoker_bad_sample bad = {0};
        struct stoker_stats stats = {.size = sizeof stats};
        struct stoker_error err = {0};
        const struct stoker_batch *batch = NULL;
        opt.on_error = policy;
        opt.order = STOKER_ORDER_SEQUENTIAL;
        struct stoker_loader *loader = harness_open(some, BATCH, "center_crop(size=16); to_tensor", &opt);
        st_loader_start(loader, NULL, 0, NULL);
        atomic_store(&fail_at, tries);
        const int rc = st_loader_next(loader, &batch, &err);
        reached = atomic_load(&fail_at) < 0;
        atomic_store(&fail_at, -1);
        st_loader_stats(loader, &stats);
        for (uint64_t k = 0; k < stats.bad; k++)
            lost += !st_loader_bad(loader, k, &bad) || !bad.reason[0];
        const bool told = policy ? !rc && stats.bad == 2 : rc == STOKER_ECORRUPT && stats.bad == 2;
        listed += told;
        lost += !told && !(rc < 0 && err.message[0]);
        st_batch_release(batch, NULL);
        st_loader_close(loader);
    }
    ok(!lost && listed, "on_error %d: each of %ld allocations may fail, and no bad sample goes unnamed", policy, tries - 1);
}

int main(void)
{
    struct stoker_item *items = test_items(COUNT);
    for (uint32_t k = 4; k < COUNT; k += 5) { /* JPEG only: other formats' libraries allocate as they like */
        free((void *)(uintptr_t)items[k].data);
        items[k] = test_jpeg(k, 50, 60);
    }
    steady(items, train_text, "JPEG, the training pipeline");
    steady(items, "resize(size=40); center_crop(size=32); to_tensor", "JPEG, the evaluation pipeline");
    failing(items);
    for (enum stoker_on_error policy = STOKER_ON_ERROR_RAISE; policy <= STOKER_ON_ERROR_REPLACE; policy++)
        ledger(items, policy);
    test_items_free(items, COUNT);
    return done_testing();
}
#endif
