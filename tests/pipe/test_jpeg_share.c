/* JPEG threads decode the cheapest files themselves, as many as they have time for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "pipe/fake_hardware.h"
#include "pipe/jpeg_threads.h"
#include "pipe/jpeg_share.h"

#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

static struct st_jpeg_thread worker;

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
            for (worker.steer.share = 0; worker.steer.share < ST_STEER_SHARES; worker.steer.share += 5) {
                for (uint32_t k = 0; k < worker.count; k++)
                    worker.item[k].cost = kind == 0 ? 7 : kind == 1 ? k * 2654435761u % 1000 : k % 3;
                const uint32_t share = worker.count * worker.steer.share / ST_STEER_SHARES;
                wrong += st_jpeg_share_pick(&worker, mine) != share;
                wrong += share && !picks_cheapest(mine, share);
            }
    ok(wrong == 0, "of any number, the cheapest are picked; of equal ones no more");
}

static double mean_size(void)
{
    double sum = 0;
    for (uint32_t k = 0; k < COUNT; k++)
        sum += (double)items[k].size;
    return sum / COUNT;
}

/* Whether the hardware has had much larger files than there are on average. */
static bool have_large_files(void)
{
    return hardware.images > 8 * COUNT && (double)hardware.bytes > 1.03 * mean_size() * hardware.images;
}

/* Hardware for which their threads have to wait. */
static void together(void)
{
    const uint64_t began = st_now_ns(), second = 1000000000u;
    struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    uint64_t cpu[BATCHES + 1], digests[BATCHES + 1];
    uint32_t equal = 0, epochs = 0;
    epoch_on(NULL, texts[2], &opt, cpu);
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[2], &opt, &err);
    wait_for_hardware(loader);
    hardware.delay_us = 100;
    for (; equal == epochs && !have_large_files() && st_now_ns() - began < 240 * second; epochs++) {
        st_loader_start(loader, NULL, 0, NULL);
        equal += harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES && !memcmp(cpu, digests, BATCHES * sizeof *cpu);
    }
    hardware.delay_us = 0;
    st_loader_close(loader);
    ok(epochs && equal == epochs, "%u epochs are equal, while a thread's share changes", epochs);
    ok(have_large_files(), "the hardware has the large files: %.0f bytes on average, of all %.0f",
       (double)hardware.bytes / hardware.images, mean_size());
}

/* How many threads of this name run at a lower priority than this one; `*all`: of how many. */
static uint32_t lowered(const char *name, uint32_t *all)
{
    const int usual = getpriority(PRIO_PROCESS, 0);
    uint32_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    *all = 0;
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[300], comm[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "r");
        const bool named = file && fgets(comm, sizeof comm, file) && !strncmp(comm, name, strlen(name));
        if (file)
            fclose(file);
        *all += named;
        count += named && getpriority(PRIO_PROCESS, (id_t)atoi(task->d_name)) > usual;
    }
    if (tasks)
        closedir(tasks);
    return count;
}

/* On the consumer's CPU, JPEG threads have a lower priority, as workers always have. */
static void gives_way(void)
{
    struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    cpu_set_t before, one;
    uint32_t threads, workers, low;
    sched_getaffinity(0, sizeof before, &before);
    CPU_ZERO(&one);
    for (size_t k = 0; k < CPU_SETSIZE && !CPU_COUNT(&one); k++)
        if (CPU_ISSET(k, &before))
            CPU_SET(k, &one);
    sched_setaffinity(0, sizeof one, &one);
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[2], &opt, &err);
    wait_for_hardware(loader);
    low = lowered("stoker-jpeg", &threads);
    ok(loader->tuning.cpus < 2 && threads == 2 && low == 2, "%u of %u JPEG threads give way with one CPU", low, threads);
    for (int k = 0; k < 20000 && lowered("stoker-worker", &workers) < (uint32_t)opt.workers; k++)
        usleep(10000);
    low = lowered("stoker-worker", &workers);
    ok(low == workers && workers == (uint32_t)opt.workers, "and %u of %u workers", low, workers);
    st_loader_close(loader);
    sched_setaffinity(0, sizeof before, &before);
    if (CPU_COUNT(&before) < 3) {
        skip("JPEG threads with their own CPUs do not", "there are fewer than three CPUs");
        return;
    }
    loader = harness_open_on(&hardware_devices, items, COUNT, texts[2], &opt, &err);
    wait_for_hardware(loader);
    low = lowered("stoker-jpeg", &threads);
    ok(threads == 2 && low == (loader->tuning.cpus < 3 ? 2 : 0), "JPEG threads with their own CPUs do not (%u of %u)", low, threads);
    st_loader_close(loader);
}

int main(void)
{
    costs();
    picks();
    items = calloc(COUNT, sizeof *items);
    for (uint32_t k = 0; items && k < COUNT; k++)
        items[k] = test_jpeg_kind(k, 40 + 3 * (int)(k * 37 % COUNT), 52, TEST_JPEG_USUAL);
    together();
    gives_way();
    test_items_free(items, COUNT);
    return done_testing();
}
