/* Loaders with JPEG engines that end early, begin again, or take large chunks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/fake_engines.h"

/* Loaders that end early, or begin again, while engines are at work. */
static void ends(void)
{
    struct stoker_loader_options opt = fast_options();
    host.delay_us = 300;
    for (uint32_t k = 0; k < 12; k++) {
        struct stoker_error err = {0};
        uint64_t digests[BATCHES + 1];
        struct stoker_loader *loader =
            harness_open_on(&engine_devices, items, COUNT, texts[k % 2], &opt, &err);
        if (!loader || st_loader_start(loader, NULL, 0, &err))
            note("%s", err.message);
        if (k % 3)
            wait_for_engines(loader);
        harness_take(loader, digests, k % BATCHES, NULL);
        if (k % 4 == 1) {
            st_loader_start(loader, NULL, 0, NULL);
            ok(harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES,
               "an epoch after one that was left");
        }
        st_loader_close(loader);
    }
    host.delay_us = 0;
    ok(host.wrong == 0 && engine.wrong == 0 && engine.open == 0 && engine.memory == 0 && host.open == 0,
       "everything was given back (%u, %u, %u, %u, %u)", host.wrong, engine.wrong, engine.open,
       engine.memory, host.open);
}

/* Batches that are let go of in one thread while another closes their loader; for ThreadSanitizer. */
static void *release_late(void *argument)
{
    const struct stoker_batch **batch = argument;
    for (int k = 0; k < 5000 && engine.open; k++)
        usleep(1000); /* until the engines are closed: what is left of them goes next */
    for (int k = 0; k < 3; k++)
        st_batch_release(batch[k], NULL);
    return NULL;
}

static void releases_while_closing(void)
{
    struct stoker_loader_options opt = fast_options();
    for (uint32_t k = 0; k < 8; k++) {
        const struct stoker_batch *batch[3] = {0};
        struct stoker_error err = {0};
        pthread_t thread;
        struct stoker_loader *loader = harness_open_on(&engine_devices, items, COUNT, texts[0], &opt, &err);
        wait_for_engines(loader);
        st_loader_start(loader, NULL, 0, NULL);
        for (int taken = 0; taken < 3; taken++)
            if (st_loader_next(loader, &batch[taken], &err))
                note("%s", err.message);
        const bool started = !pthread_create(&thread, NULL, release_late, batch);
        st_loader_close(loader);
        if (started)
            pthread_join(thread, NULL);
    }
    ok(host.wrong == 0 && engine.wrong == 0 && engine.memory == 0 && host.open == 0,
       "batches let go of while the loader closes");
}

/* Files, and more tickets in the engines' hands than the reader would hold for the workers alone. */
static void many(void)
{
    enum { MANY = 900 };
    struct stoker_loader_options opt = small_options(300, 2);
    struct stoker_error err = {0};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    char folder[] = "/tmp/stoker-engine-XXXXXX", path[COUNT][64];
    const char *paths[MANY];
    uint64_t digests[4];
    bool good = mkdtemp(folder) != NULL;
    for (uint32_t k = 0; k < COUNT; k++) {
        snprintf(path[k], sizeof path[k], "%s/%u", folder, k);
        FILE *file = fopen(path[k], "wb");
        good &= file && fwrite(items[k].data, 1, items[k].size, file) == items[k].size && !fclose(file);
    }
    for (uint32_t k = 0; k < MANY; k++)
        paths[k] = path[k % COUNT];
    opt.fidelity = STOKER_FIDELITY_FAST;
    good = good && !st_dataset_from_files(&data, paths, NULL, MANY, &err) &&
           !st_pipeline_open(&pipe, texts[0], &err) &&
           !st_loader_open(&loader, data, pipe, &opt, &engine_devices, &err);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    if (loader) {
        wait_for_engines(loader);
        st_loader_start(loader, NULL, 0, NULL);
        good = good && harness_take(loader, digests, 4, NULL) == 3;
        st_loader_stats(loader, &stats);
    }
    ok(good, "large chunks of files: readers and engines do not wait for each other (%s)", err.message);
    st_loader_close(loader);
    for (uint32_t k = 0; k < COUNT; k++)
        unlink(path[k]);
    rmdir(folder);
}

int main(void)
{
    items = test_items(COUNT);
    ends();
    releases_while_closing();
    many();
    test_items_free(items, COUNT);
    return done_testing();
}
