/* Samples that the program makes when the engine cannot: the same batches as of good files, from any worker. */
#include "pipe/harness.h"

#include <pthread.h>

enum { COUNT = 40, BATCH = 8, BATCHES = COUNT / BATCH };

static struct stoker_item *good, items[COUNT];
static const uint32_t bad_ones[] = {3, 17, 18, 31};
enum { BAD = sizeof bad_ones / sizeof bad_ones[0] };
static const char junk[] = "this is not an image";

/* What the program's function has seen, and how it answers. */
struct program {
    pthread_t thread; /* that calls next */
    uint32_t calls, wrong;
    bool refuses;
};

static bool rescue(void *context, const struct stoker_failed_sample *failed, const void **image, size_t *size)
{
    struct program *program = context;
    const uint64_t sample = failed->sample;
    program->calls++;
    program->wrong += !pthread_equal(program->thread, pthread_self()) || failed->byte_count != sizeof junk ||
                      memcmp(failed->bytes, junk, sizeof junk) != 0 || failed->error->code != STOKER_ECORRUPT;
    *image = good[sample].data;
    *size = good[sample].size;
    return !program->refuses;
}

static struct stoker_loader *open_with(const struct stoker_item *of, int32_t workers, enum stoker_on_error policy,
                                       struct program *program)
{
    struct stoker_loader_options opt = harness_options(BATCH, workers);
    opt.on_error = policy;
    struct stoker_loader *loader = harness_open(of, COUNT, train_text, &opt);
    if (program) {
        *program = (struct program){.thread = pthread_self(), .refuses = program->refuses};
        st_loader_on_failure(loader, rescue, program);
    }
    st_loader_start(loader, NULL, 0, NULL);
    return loader;
}

static void same_batches(void)
{
    uint64_t wanted[BATCHES + 1], made[BATCHES + 1];
    struct stoker_loader *loader = open_with(good, 1, STOKER_ON_ERROR_RAISE, NULL);
    harness_take(loader, wanted, BATCHES + 1, NULL);
    st_loader_close(loader);
    for (int32_t workers = 0; workers <= 5; workers++) {
        struct program program = {0};
        loader = open_with(items, workers, workers % 2 ? STOKER_ON_ERROR_SKIP : STOKER_ON_ERROR_RAISE, &program);
        const uint32_t batches = harness_take(loader, made, BATCHES + 1, NULL);
        struct stoker_bad_sample entry;
        const bool listed = st_loader_bad(loader, 0, &entry);
        ok(batches == BATCHES && !memcmp(wanted, made, sizeof *made * BATCHES) && !listed,
           "%d workers: the batches of good files, and no bad sample", workers);
        ok(program.calls == BAD && !program.wrong, "the program is asked once for each, in the thread that calls next");
        st_loader_close(loader);
    }
}

static void refused(void)
{
    uint64_t wanted[BATCHES + 1], made[BATCHES + 1];
    struct program program = {.refuses = true};
    struct stoker_loader *loader = open_with(items, 2, STOKER_ON_ERROR_SKIP, NULL);
    harness_take(loader, wanted, BATCHES + 1, NULL);
    st_loader_close(loader);
    loader = open_with(items, 2, STOKER_ON_ERROR_SKIP, &program);
    const uint32_t batches = harness_take(loader, made, BATCHES + 1, NULL);
    struct stoker_bad_sample entry;
    uint32_t listed = 0;
    while (st_loader_bad(loader, listed, &entry))
        listed++;
    ok(batches == BATCHES && !memcmp(wanted, made, sizeof *made * BATCHES) && listed == BAD,
       "a sample that the program refuses is bad as without it");
    ok(program.calls >= BAD && !program.wrong, "(it was asked %u times)", program.calls);
    st_loader_close(loader);
}

/* Every sample is bad, so that all workers wait for a call of next that does not come. */
static void stopped(void)
{
    struct stoker_item all[COUNT];
    struct program program = {0};
    for (uint32_t k = 0; k < COUNT; k++)
        all[k] = (struct stoker_item){junk, sizeof junk, 0};
    struct stoker_loader *loader = open_with(all, 4, STOKER_ON_ERROR_RAISE, &program);
    ok(st_loader_start(loader, NULL, 0, NULL) == 0, "an epoch is started again while workers wait for the program");
    const struct stoker_batch *batch = NULL;
    ok(st_loader_next(loader, &batch, NULL) == 0 && batch && program.calls >= BATCH && !program.wrong,
       "and its first batch is made");
    st_batch_release(batch, NULL);
    st_loader_close(loader);
    ok(true, "a loader is closed while workers wait");
}

static bool too_large(void *context, const struct stoker_failed_sample *failed, const void **image, size_t *size)
{
    (void)failed;
    *image = context;
    *size = 64 << 20;
    return true;
}

static void limited(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    opt.max_memory = 32 << 20;
    struct stoker_loader *loader = harness_open(items, COUNT, train_text, &opt);
    void *memory = calloc(64 << 20, 1);
    struct stoker_error err = {0};
    uint32_t limits = 0, others = 0;
    const struct stoker_batch *batch;
    st_loader_on_failure(loader, too_large, memory);
    st_loader_start(loader, NULL, 0, NULL);
    for (int rc; memory && (rc = st_loader_next(loader, &batch, &err)) != STOKER_END;) {
        limits += rc == STOKER_ELIMIT;
        others += rc && rc != STOKER_ELIMIT;
        st_batch_release(rc ? NULL : batch, NULL);
    }
    ok(limits >= 1 && !others && strstr(err.message, "max_memory"), "max_memory holds for what the program gives (%s)",
       err.message);
    st_loader_close(loader);
    free(memory);
}

int main(void)
{
    good = test_items(COUNT);
    memcpy(items, good, sizeof items);
    for (uint32_t k = 0; k < BAD; k++) {
        items[bad_ones[k]].data = junk;
        items[bad_ones[k]].size = sizeof junk;
    }
    same_batches();
    refused();
    stopped();
    limited();
    test_items_free(good, COUNT);
    return done_testing();
}
