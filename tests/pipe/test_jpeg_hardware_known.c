/* Which files the JPEG hardware is given: those that are known to decode, as they are now.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/fake_hardware.h"
#include "source/known/known.h"

enum { EPOCHS = 4 };

/* `rows`: by hardware, in each epoch. */
static bool epochs_on(const struct st_devices *devices, void (*between)(uint32_t epoch),
                      uint64_t digests[EPOCHS][BATCHES + 1], uint64_t rows[EPOCHS])
{
    struct stoker_loader_options opt = small_options(BATCH, 2);
    opt.on_error = STOKER_ON_ERROR_REPLACE;
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(devices, items, COUNT, texts[0], &opt, &err);
    bool good = loader != NULL;
    if (good)
        wait_for_hardware(loader);
    uint64_t before = 0;
    for (uint32_t k = 0; good && k < EPOCHS; k++) {
        if (between)
            between(k);
        good = !st_loader_start(loader, &(struct stoker_epoch){.size = sizeof(struct stoker_epoch), .epoch = k}, 0, NULL) &&
               harness_take(loader, digests[k], BATCHES + 1, NULL) == BATCHES;
        stats = (struct stoker_stats){.size = sizeof stats};
        st_loader_stats(loader, &stats);
        rows[k] = stats.jpeg_hardware_rows - before;
        before = stats.jpeg_hardware_rows;
    }
    st_loader_close(loader);
    return good;
}

/* The batches of all epochs are those of the CPU. Hardware are seen at work in the epochs of `wanted`, a
 * bit set, and in no other. */
static bool same_epochs(void (*between)(uint32_t epoch), uint32_t wanted)
{
    uint64_t cpu[EPOCHS][BATCHES + 1], device[EPOCHS][BATCHES + 1], rows[EPOCHS] = {0};
    bool equal = epochs_on(NULL, between, cpu, rows);
    uint32_t seen = 0; /* epochs in which the hardware had a part, in any try */
    const uint32_t before = host.wrong + hardware.wrong;
    for (int try = 0; equal && seen != wanted && try < TRIES; try++) {
        equal = epochs_on(&hardware_devices, between, device, rows);
        for (uint32_t k = 0; equal && k < EPOCHS; k++) {
            equal = !memcmp(cpu[k], device[k], BATCHES * sizeof cpu[k][0]) && (wanted & 1u << k || !rows[k]);
            seen |= (uint32_t)(rows[k] > 0) << k;
        }
    }
    note("%s; rows by hardware: %llu, %llu, %llu, %llu", equal ? "equal" : "not equal", (unsigned long long)rows[0], (unsigned long long)rows[1],
         (unsigned long long)rows[2], (unsigned long long)rows[3]);
    return equal && seen == wanted && host.wrong + hardware.wrong == before;
}

static uint8_t *data_of(uint32_t item) { return (uint8_t *)(uintptr_t)items[item].data; }

/* Flips bits of every third file, in the entropy-coded data behind most crops. */
static void flip(uint32_t which)
{
    for (uint32_t k = which; k < COUNT; k += 3)
        for (size_t at = items[k].size * 5 / 8; at < items[k].size - 8; at += 97)
            data_of(k)[at] ^= 0x10;
}

static void damage_before_third(uint32_t epoch)
{
    if (epoch == 2)
        flip(1);
    if (epoch == 3)
        flip(1); /* whole again, and with that known again after one more decode */
}

static void known(void)
{
    ok(same_epochs(NULL, 0xe), "hardware decodes what workers have decoded to the end once");
    ok(stats.jpeg_hardware_open > 0 && stats.jpeg_hardware_known > COUNT / 2 && stats.jpeg_hardware_known <= COUNT, "%llu files are known",
       (unsigned long long)stats.jpeg_hardware_known);
    flip(0);
    ok(same_epochs(NULL, 0xe), "they do not get damaged files");
    flip(0);
    ok(same_epochs(damage_before_third, 0xe), "nor files that change after they were known");
}

/* ---- closing while what is known is exchanged ---------------------------------------------------- */

static int no_read(void *cookie, uint64_t sample, void *into, size_t capacity, size_t *size, struct stoker_error *e)
{
    (void)cookie, (void)sample, (void)into, (void)capacity, (void)size;
    return st_fail(e, STOKER_EIO, "nobody reads this");
}

/* A loader of samples that nobody reads, with a table so large that exchanging it takes milliseconds. */
static struct stoker_loader *open_large(const char *file)
{
    const struct stoker_callbacks callbacks = {.size = sizeof callbacks, .count = 1 << 20, .read = no_read};
    const struct stoker_loader_options opt = small_options(BATCH, 1);
    struct stoker_error err = {0};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    if (!st_dataset_from_callbacks(&data, &callbacks, NULL, &err) && !st_pipeline_open(&pipe, texts[0], &err)) {
        data->known_file = strdup(file);
        struct st_known *known = st_known_of(data, NULL);
        if (known) {
            st_known_learn(known, 7, 1);
            st_known_share(known);
        }
        (void)st_loader_open(&loader, data, pipe, &opt, &hardware_devices, &err);
    }
    if (!loader)
        note("%s", err.message);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    return loader;
}

/* Waits until a JPEG thread exchanges what is known, which is the first thing it does. */
static bool is_sharing(struct stoker_loader *loader)
{
    const uint64_t until = st_now_ns() + 500000000;
    bool sharing = false;
    while (!sharing && st_now_ns() < until) {
        pthread_mutex_lock(&loader->lock);
        sharing = loader->jpeg.sharing;
        pthread_mutex_unlock(&loader->lock);
    }
    return sharing;
}

static void closed_while_sharing(void)
{
    enum { TIMES = 5, PATIENCE_S = 120 };
    char file[] = "/tmp/stoker-known-XXXXXX";
    const int fd = mkstemp(file);
    int met = 0;
    close(fd);
    alarm(PATIENCE_S); /* ends the test if a JPEG thread waits for ever */
    for (unsigned k = 0; k < share_of(TIMES); k++) {
        struct stoker_loader *loader = open_large(file);
        if (!loader)
            break;
        met += is_sharing(loader);
        st_loader_close(loader);
    }
    alarm(0);
    ok(fd >= 0, "closed while a JPEG thread exchanges what is known (%d times)", met);
    unlink(file);
}

int main(void)
{
    items = test_items(COUNT);
    known();
    closed_while_sharing();
    test_items_free(items, COUNT);
    return done_testing();
}
