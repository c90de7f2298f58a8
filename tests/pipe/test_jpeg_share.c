/* Engine threads decode the cheapest files themselves, as many as they have time for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/fake_engines.h"
#include "pipe/jpeg_chunk.h"

static struct st_jpeg_engine_worker worker;

static void costs(void)
{
    const struct st_jpeg_frame frame = {.width = 400, .height = 300};
    const struct st_bytes file = {.size = 60000}, large = {.size = UINT64_MAX / 2};
    const uint64_t whole = st_jpeg_cpu_cost(&frame, file, (struct st_region){0, 0, 400, 300}),
                   low = st_jpeg_cpu_cost(&frame, file, (struct st_region){0, 200, 400, 100}),
                   narrow = st_jpeg_cpu_cost(&frame, file, (struct st_region){100, 0, 100, 300});
    ok(whole == 60000 + 60000 && 3 * low == whole && low < narrow && narrow < whole,
       "a window costs its rows of the file and its pixels: %llu, %llu, %llu", (unsigned long long)whole,
       (unsigned long long)low, (unsigned long long)narrow);
    ok(st_jpeg_cpu_cost(&frame, large, (struct st_region){0, 0, 400, 300}) > UINT64_MAX / 2 - 1000,
       "the size of a file does not overflow");
}

/* Whether exactly the picked items are the `share` cheapest. */
static bool picks_cheapest(const bool *mine, uint32_t share)
{
    uint64_t dearest = 0, cheapest = UINT64_MAX;
    uint32_t picked = 0;
    for (uint32_t k = 0; k < worker.count; k++) {
        const uint64_t cost = worker.item[k].cost;
        picked += mine[k];
        if (mine[k] && cost > dearest)
            dearest = cost;
        if (!mine[k] && cost < cheapest)
            cheapest = cost;
    }
    return picked == share && dearest <= cheapest;
}

static void picks(void)
{
    bool mine[ST_JPEG_CHUNK_MOST] = {0};
    uint32_t wrong = 0;
    for (uint32_t kind = 0; kind < 3; kind++)
        for (worker.count = 0; worker.count <= ST_JPEG_CHUNK_MOST; worker.count++)
            for (worker.share = 0; worker.share < ST_JPEG_SHARES; worker.share += 5) {
                for (uint32_t k = 0; k < worker.count; k++)
                    worker.item[k].cost = kind == 0 ? 7 : kind == 1 ? k * 2654435761u % 1000 : k % 3;
                const uint32_t share = worker.count * worker.share / ST_JPEG_SHARES;
                wrong += st_jpeg_share_pick(&worker, mine) != share;
                wrong += share && !picks_cheapest(mine, share);
            }
    ok(wrong == 0, "of any number, the cheapest are picked; of equal ones no more");
}

static void adapts(void)
{
    enum { MS = 1000000 };
    static const struct {
        const char *text;
        uint32_t share;
        struct st_jpeg_times times;
        bool rested;
        uint32_t ready, after;
    } cases[] = {
        {"it rested: more", 10, {10 * MS, 10 * MS, 5 * MS, 5 * MS}, true, 2, 11},
        {"it waited for the engines: more", 10, {10 * MS, 8 * MS, 5 * MS, 5 * MS}, false, 0, 11},
        {"not more than three quarters", 48, {10 * MS, 8 * MS, 5 * MS, 5 * MS}, true, 4, 48},
        {"no batch is ready: less", 16, {10 * MS, 10 * MS, 5 * MS, 5 * MS}, false, 0, 13},
        {"down to none", 1, {10 * MS, 10 * MS, 5 * MS, 5 * MS}, false, 0, 0},
        {"and not below", 0, {10 * MS, 10 * MS, 0, 0}, false, 0, 0},
        {"too few are ready: a little less", 16, {10 * MS, 10 * MS, 5 * MS, 5 * MS}, false, 1, 15},
        {"enough are ready: as it is", 16, {10 * MS, 10 * MS, 5 * MS, 5 * MS}, false, 2, 16},
        {"others have its CPU: less, though it rested", 16, {10 * MS, 5 * MS, 8 * MS, 5 * MS}, true, 4, 13},
        {"a moment says nothing", 16, {MS / 20, 0, MS / 20, 0}, false, 2, 16},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        worker.share = cases[k].share;
        worker.times = cases[k].times;
        st_jpeg_share_adapt(&worker, cases[k].rested, cases[k].ready, 4);
        ok(worker.share == cases[k].after, "%s (%u)", cases[k].text, worker.share);
    }
}

/* Engines for which their threads have to wait. */
static void together(void)
{
    enum { EPOCHS = 400 };
    struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    uint64_t cpu[BATCHES + 1], digests[BATCHES + 1];
    uint32_t equal = 0, epochs = 0, share = 0;
    double all = 0;
    for (uint32_t k = 0; k < COUNT; k++)
        all += (double)items[k].size / COUNT;
    epoch_on(NULL, texts[2], &opt, cpu);
    struct stoker_loader *loader = harness_open_on(&engine_devices, items, COUNT, texts[2], &opt, &err);
    wait_for_engines(loader);
    engine.delay_us = 100;
    for (; epochs < EPOCHS && share < ST_JPEG_SHARES / 2; epochs++) {
        st_loader_start(loader, NULL, 0, NULL);
        equal += harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES && !memcmp(cpu, digests, BATCHES * sizeof *cpu);
        st_loader_stop(loader); /* no thread is busy any more */
        share = loader->engines.worker[0].share;
    }
    engine.delay_us = 0;
    st_loader_close(loader);
    const double by_engines = engine.images ? (double)engine.bytes / engine.images : 0;
    ok(equal == epochs, "%u epochs are equal, while a thread's share grows", epochs);
    ok(share >= ST_JPEG_SHARES / 2, "to %u of %d", share, ST_JPEG_SHARES);
    ok(by_engines > all, "the engines have the large files: %.0f bytes on average, of all %.0f", by_engines, all);
}

int main(void)
{
    costs();
    picks();
    adapts();
    items = calloc(COUNT, sizeof *items);
    for (uint32_t k = 0; items && k < COUNT; k++)
        items[k] = test_jpeg_kind(k, 40 + 3 * (int)(k * 37 % COUNT), 52, TEST_JPEG_USUAL);
    together();
    test_items_free(items, COUNT);
    return done_testing();
}
