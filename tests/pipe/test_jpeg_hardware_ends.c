/* Loaders with JPEG hardware that end early or begin again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/fake_hardware.h"
#include "pipe/jpeg_work.h"
#include "source/kinds.h"

/* Loaders that end early, or begin again, while hardware is at work. */
static void ends(void)
{
    struct stoker_loader_options opt = fast_options();
    host.delay_us = 300;
    for (uint32_t k = 0; k < 12; k++) {
        struct stoker_error err = {0};
        uint64_t digests[BATCHES + 1];
        struct stoker_loader *loader =
            harness_open_on(&hardware_devices, items, COUNT, texts[k % share_of(2)], &opt, &err);
        if (!loader || st_loader_start(loader, NULL, 0, &err))
            note("%s", err.message);
        if (k % 3)
            wait_for_hardware(loader);
        harness_take(loader, digests, k % BATCHES, NULL);
        if (k % 4 == 1) {
            st_loader_start(loader, NULL, 0, NULL);
            ok(harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES,
               "an epoch after one that was left");
        }
        st_loader_close(loader);
    }
    host.delay_us = 0;
    ok(host.wrong == 0 && hardware.wrong == 0 && hardware.open == 0 && hardware.memory == 0 && host.open == 0,
       "everything was given back (%u, %u, %u, %u, %u)", host.wrong, hardware.wrong, hardware.open,
       hardware.memory, host.open);
}

/* Batches that are let go of in one thread while another closes their loader; for ThreadSanitizer. */
static void *release_late(void *argument)
{
    const struct stoker_batch **batch = argument;
    for (int k = 0; k < 5000 && hardware.open; k++)
        usleep(1000); /* until the hardware is closed: what is left of it goes next */
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
        struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[0], &opt, &err);
        wait_for_hardware(loader);
        st_loader_start(loader, NULL, 0, NULL);
        for (int taken = 0; taken < 3; taken++)
            if (st_loader_next(loader, &batch[taken], &err))
                note("%s", err.message);
        const bool started = !pthread_create(&thread, NULL, release_late, batch);
        st_loader_close(loader);
        if (started)
            pthread_join(thread, NULL);
    }
    ok(host.wrong == 0 && hardware.wrong == 0 && hardware.memory == 0 && host.open == 0,
       "batches let go of while the loader closes");
}

/* A loader that closes while its hardware is being opened tells it so: nobody waits for the rest. */
static void closes_while_hardware_open(void)
{
    const struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    uint64_t digests[BATCHES + 1];
    hardware.opens_slowly = true;
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[0], &opt, &err);
    while (loader && hardware.opening < ST_JPEG_THREADS)
        usleep(200);
    st_loader_start(loader, NULL, 0, NULL);
    ok(harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES, "an epoch while the hardware is being opened");
    st_loader_close(loader); /* would not return otherwise */
    ok(hardware.opening == 0 && hardware.open == 0 && host.open == 0, "closing ends that");
    hardware.opens_slowly = false;
}

/* ---- stopping within a chunk ---------------------------------------------------------------------- */

/* Threads that hold tickets. */
static uint32_t busy(struct stoker_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    const uint32_t threads = loader->busy;
    pthread_mutex_unlock(&loader->lock);
    return threads;
}

/* Whether only the JPEG thread that is held back has tickets, or the epoch is over without one. */
static bool is_settled(struct stoker_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    const bool over = loader->next_ticket == COUNT && !loader->busy;
    pthread_mutex_unlock(&loader->lock);
    return over || (hardware.held && busy(loader) == 1);
}

/* Rows of an epoch that was stopped within a chunk of a JPEG thread, when all others were done: taken, but not
 * made. 0: no JPEG thread took a chunk that is large enough. */
static uint64_t unmade(const struct stoker_item *mixed, uint64_t epoch)
{
    enum { LEAST = 6 };
    struct stoker_loader_options opt = small_options(COUNT, 1);
    struct stoker_error err = {0};
    opt.jpeg_hardware = STOKER_JPEG_HARDWARE_ALL;
    struct stoker_loader *loader = harness_open_on(&hardware_devices, mixed, COUNT, texts[0], &opt, &err);
    if (!loader)
        return ok(false, "%s", err.message);
    wait_for_hardware(loader);
    hardware.held = 0;
    hardware.hold = LEAST;
    hardware.watched = loader;
    st_loader_start(loader, &(struct stoker_epoch){.size = sizeof(struct stoker_epoch), .epoch = epoch}, 0, NULL);
    while (!is_settled(loader))
        usleep(200);
    const uint32_t held = hardware.held;
    st_loader_stop(loader);
    stats = (struct stoker_stats){.size = sizeof stats};
    st_loader_stats(loader, &stats);
    const uint64_t left = loader->next_ticket - stats.raw_rows - stats.resized_rows;
    hardware.watched = NULL;
    st_loader_close(loader);
    return held ? left : 0;
}

/* Whoever stops an epoch waits for the hardware, but not for the files of a chunk that the CPU would decode: those
 * that hardware does not take, and those that it failed at. */
static void stops_within_a_chunk(void)
{
    enum { TIMES = 5000 }; /* on a busy machine the worker may be first */
    struct stoker_item mixed[COUNT];
    uint64_t left = 0;
    for (uint32_t k = 0; k < COUNT; k++)
        mixed[k] = k % 8 ? test_ppm(k, 60, 50) : test_jpeg(k, 60, 50);
    for (uint64_t k = 0; k < TIMES && !left; k++)
        left = unmade(mixed, k);
    ok(left > 2 * hardware.held + 4, "a chunk with %u files for the hardware is abandoned: %llu rows", hardware.held,
       (unsigned long long)left);
    for (uint32_t k = 0; k < COUNT; k++)
        free((void *)(uintptr_t)mixed[k].data);
}

int main(void)
{
    items = test_items(COUNT);
    ends();
    releases_while_closing();
    closes_while_hardware_open();
    stops_within_a_chunk();
    test_items_free(items, COUNT);
    return done_testing();
}
