/* Loaders with JPEG hardware and little memory: for files, for batches, and for what is decoded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/fake_hardware.h"
#include "pipe/jpeg_work.h"
#include "source/kinds.h"

enum { LARGE = 512 << 10, LARGE_COUNT = 2 * COUNT };

/* A JPEG, and after its end so many zeros that the file is large. */
static int read_large(void *cookie, uint64_t sample, void *into, size_t capacity, size_t *size, struct stoker_error *err)
{
    const struct stoker_item *item = &items[sample % COUNT];
    (void)cookie, (void)err;
    *size = LARGE;
    if (capacity >= LARGE) {
        memset(into, 0, LARGE);
        memcpy(into, item->data, item->size);
    }
    return 0;
}

static bool large_epoch(void)
{
    const struct stoker_callbacks callbacks = {.size = sizeof callbacks, .count = LARGE_COUNT, .read = read_large};
    struct stoker_loader_options opt = small_options(COUNT, 1);
    struct stoker_error err = {0};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    uint64_t digests[3];
    opt.jpeg_hardware = STOKER_JPEG_HARDWARE_ALL;
    opt.max_memory = 96ull * LARGE;
    if (!st_dataset_from_callbacks(&data, &callbacks, NULL, &err) && !st_pipeline_open(&pipe, texts[0], &err))
        (void)st_loader_open(&loader, data, pipe, &opt, &hardware_devices, &err);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    if (!loader)
        return ok(false, "%s", err.message);
    wait_for_hardware(loader);
    st_loader_start(loader, NULL, 0, NULL);
    const bool all = harness_take(loader, digests, 3, NULL) == 2;
    stats = (struct stoker_stats){.size = sizeof stats};
    st_loader_stats(loader, &stats);
    st_loader_close(loader);
    return all;
}

/* Chunks of large files are made in parts. */
static void large_files(void)
{
    enum { TIMES = 5000 };
    bool good = true;
    stats.jpeg_hardware_rows = 0;
    for (int k = 0; k < TIMES && good && !stats.jpeg_hardware_rows; k++)
        good = large_epoch() && stats.memory_peak <= stats.memory_allowed;
    ok(good && stats.jpeg_hardware_rows, "large files stay within max_memory: %.1f of %.1f MB, %llu files by hardware",
       (double)stats.memory_peak / 1e6, (double)stats.memory_allowed / 1e6, (unsigned long long)stats.jpeg_hardware_rows);
}

/* ---- a batch that is too large -------------------------------------------------------------------- */

enum { BLOB = 300 << 10 };

static uint64_t blobs_count(const void *self) { return (void)self, COUNT; }
static void blobs_close(void *self) { (void)self; }
static const struct st_field *blobs_fields(const void *self, uint32_t *count)
{
    static const struct st_field fields[] = {{.name = "bin", .kind = ST_FIELD_BYTES},
                                             {.name = "jpg", .kind = ST_FIELD_IMAGE}};
    (void)self;
    *count = 2;
    return fields;
}
static struct st_bytes blobs_file; /* of all samples */
static int blobs_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err)
{
    (void)self, (void)sample, (void)err;
    out->memory = blobs_file.data;
    out->length = blobs_file.size;
    return 0;
}
static int blobs_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                       struct st_piece *pieces, struct stoker_error *err)
{
    static const uint8_t blob[BLOB];
    (void)self, (void)sample, (void)scratch, (void)err;
    pieces[0] = (struct st_piece){.bytes = {blob, sizeof blob}};
    pieces[1] = (struct st_piece){.bytes = raw};
    return 0;
}
static const struct st_source blobs = {.scheme = "blobs",
                                       .self_size = 1,
                                       .count = blobs_count,
                                       .label = st_label_zero,
                                       .name = st_name_by_number,
                                       .locate = blobs_locate,
                                       .fields = blobs_fields,
                                       .split = blobs_split,
                                       .close = blobs_close};

/* Whether the first batch is refused, as it is without hardware. */
static bool is_refused(void)
{
    struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    struct stoker_dataset *data = st_dataset_new(&blobs);
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    const struct stoker_batch *batch = NULL;
    opt.max_memory = 24 << 20;
    opt.workers = opt.prefetch = 1;
    if (!st_pipeline_open(&pipe, texts[0], &err))
        (void)st_loader_open(&loader, data, pipe, &opt, &hardware_devices, &err);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    if (!loader)
        return ok(false, "%s", err.message);
    wait_for_hardware(loader);
    st_loader_start(loader, NULL, 0, NULL);
    const int rc = st_loader_next(loader, &batch, &err);
    if (rc == STOKER_OK)
        st_batch_release(batch, NULL);
    stats = (struct stoker_stats){.size = sizeof stats};
    st_loader_stats(loader, &stats);
    st_loader_close(loader);
    return rc == STOKER_ELIMIT && strstr(err.message, "its batch of");
}

static void large_batches(void)
{
    enum { TIMES = 20 };
    bool refused = true;
    struct stoker_item item = test_jpeg(1, 60, 50);
    blobs_file = (struct st_bytes){item.data, item.size};
    for (uint32_t k = 0; k < share_of(TIMES) && refused; k++)
        refused = is_refused();
    ok(refused, "a batch of more than a quarter of max_memory is refused, whoever makes its rows");
    free((void *)(uintptr_t)item.data);
}

/* A consumer that keeps all batches of an epoch. */
static void kept_batches(void)
{
    enum { SMALL = 4, KEPT = COUNT / SMALL, MOST = 10 /* twice the slots in regular use */ };
    struct stoker_loader_options opt = small_options(SMALL, 1);
    const struct stoker_batch *batch[KEPT] = {0};
    struct stoker_error err = {0};
    opt.jpeg_hardware = STOKER_JPEG_HARDWARE_ALL;
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[0], &opt, &err);
    bool good = loader != NULL;
    if (good) {
        wait_for_hardware(loader);
        st_loader_start(loader, NULL, 0, NULL);
    }
    for (int k = 0; good && k < KEPT; k++)
        good = !st_loader_next(loader, &batch[k], &err);
    const uint32_t memory = hardware.memory;
    ok(good && memory <= MOST, "%d batches are kept, and %u of them have memory of the hardware: %s", KEPT, memory,
       err.message);
    for (int k = 0; k < KEPT; k++)
        st_batch_release(batch[k], NULL);
    st_loader_close(loader);
}

static void set_block(struct stoker_loader *loader, uint64_t bytes)
{
    pthread_mutex_lock(&loader->lock);
    loader->shape.hw_bytes = bytes;
    for (struct st_slot *slot = loader->slots; slot; slot = slot->next)
        slot->shape.hw_bytes = bytes;
    pthread_mutex_unlock(&loader->lock);
}

/* How many blocks of device memory the slot with the most has. */
static uint32_t most_blocks(struct stoker_loader *loader)
{
    uint32_t most = 0;
    pthread_mutex_lock(&loader->jpeg.memory);
    pthread_mutex_lock(&loader->lock);
    for (const struct st_slot *slot = loader->slots; slot; slot = slot->next) {
        uint32_t has = 0;
        while (has < ST_JPEG_HW_BLOCKS && slot->hw_memory.block[has])
            has++;
        most = has > most ? has : most;
    }
    pthread_mutex_unlock(&loader->lock);
    pthread_mutex_unlock(&loader->jpeg.memory);
    return most;
}

/* A batch that does not fit into a block of device memory gets more of them, up to a limit; the rows for which there is no
 * room are the CPU's. Returns the most blocks that a batch got. */
static uint32_t blocks_of(uint64_t bytes, uint32_t wanted, bool *equal)
{
    enum { LEAST = 4, MOST = 10000 }; /* epochs */
    const struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    uint64_t cpu[BATCHES + 1], device[BATCHES + 1];
    struct stoker_loader *plain = harness_open_on(NULL, items, COUNT, texts[0], &opt, &err);
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[0], &opt, &err);
    uint32_t has = 0;
    const uint32_t wrong = hardware.wrong + host.wrong;
    *equal = plain && loader;
    if (!*equal)
        return 0;
    set_block(loader, bytes);
    wait_for_hardware(loader);
    for (int k = 0; *equal && k < MOST && (has < wanted || k < LEAST); k++) {
        st_loader_start(plain, NULL, 0, NULL);
        st_loader_start(loader, NULL, 0, NULL);
        *equal = harness_take(plain, cpu, BATCHES + 1, NULL) == BATCHES &&
                 harness_take(loader, device, BATCHES + 1, NULL) == BATCHES &&
                 !memcmp(cpu, device, BATCHES * sizeof *cpu);
        has = most_blocks(loader);
    }
    st_loader_close(loader);
    st_loader_close(plain);
    *equal = *equal && hardware.wrong + host.wrong == wrong;
    return has;
}

static void blocks(void)
{
    bool equal;
    const uint32_t apart = hardware.apart;
    uint32_t has = blocks_of(16 << 20, 1, &equal);
    ok(equal && has == 1 && hardware.apart == apart, "a large block is enough (%u), and images lie one behind the other", has);
    has = blocks_of(64 << 10, 2, &equal);
    ok(equal && has > 1, "of smaller ones, batches have up to %u", has);
    has = blocks_of(12 << 10, ST_JPEG_HW_BLOCKS, &equal);
    ok(equal && has == ST_JPEG_HW_BLOCKS, "of the smallest, all that they may have (%u)", has);
}

/* As if the hardware made one row per second and the workers a million times as many, whatever they really make. */
static void set_rates(struct stoker_loader *loader)
{
    enum { ROWS = 16 };
    const uint64_t many = 1ull << 40;
    pthread_mutex_lock(&loader->lock);
    for (uint32_t k = 0; k < loader->worker_count; k++) {
        atomic_store(&loader->worker[k].samples, many);
        atomic_store(&loader->worker[k].stage_ns[0], many * 1000);
    }
    for (uint32_t k = 0; k < loader->jpeg.threads; k++) {
        struct st_jpeg_thread *self = &loader->jpeg.worker[k];
        self->steer.started = true;
        self->steer.busy_rows = ROWS;
        self->steer.busy_ns = ROWS * 1000000000ull;
    }
    pthread_mutex_unlock(&loader->lock);
}

/* Whether the hardware is passed over; and from now on until then, if `until` is given. */
static bool passed_over(struct stoker_loader *loader, uint64_t until)
{
    pthread_mutex_lock(&loader->lock);
    const bool passed = loader->jpeg.steer.slow_until_ns;
    if (until)
        loader->jpeg.steer.slow_until_ns = until;
    pthread_mutex_unlock(&loader->lock);
    return passed;
}

/* Rows of an epoch's batches that the hardware made; all batches have to come. */
static uint64_t rows_by_hardware(struct stoker_loader *loader, bool *complete)
{
    uint64_t digests[BATCHES + 1];
    const uint64_t before = stats.jpeg_hardware_rows;
    st_loader_start(loader, NULL, 0, NULL);
    *complete = *complete && harness_take(loader, digests, BATCHES + 1, NULL) == BATCHES;
    stats = (struct stoker_stats){.size = sizeof stats};
    st_loader_stats(loader, &stats);
    return stats.jpeg_hardware_rows - before;
}

/* Hardware that are much slower than the workers are passed over, also for many short epochs, and then tried again. */
static void slow_hardware(void)
{
    enum { EPOCHS = 8, TRIES_MOST = 100000 };
    const struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    bool complete = true, passed = false;
    uint64_t rows = 0, after = 0;
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[0], &opt, &err);
    wait_for_hardware(loader);
    set_rates(loader);
    stats.jpeg_hardware_rows = 0;
    /* The workers may be through with an epoch before a JPEG thread looks. */
    for (int k = 0; k < TRIES_MOST && complete && !passed && !rows; k++) {
        rows += rows_by_hardware(loader, &complete);
        passed = passed_over(loader, 0);
    }
    ok(complete && passed && rows == 0, "slow hardware is passed over, after %llu rows", (unsigned long long)rows);
    passed_over(loader, UINT64_MAX);
    for (int k = 0; k < EPOCHS && complete; k++)
        rows += rows_by_hardware(loader, &complete);
    ok(complete && rows == 0, "also over %d epochs: they make %llu rows", EPOCHS, (unsigned long long)rows);
    for (int k = 0; k < TRIES_MOST && complete && !after; k++) {
        passed_over(loader, 1); /* a moment that is past */
        after = rows_by_hardware(loader, &complete);
    }
    ok(complete && after, "and then tried again: %llu rows", (unsigned long long)after);
    st_loader_close(loader);
}

/* Device memory that is short for a while is asked for again. */
static void memory_comes_back(void)
{
    const struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    uint64_t digests[BATCHES + 1], rows = 0;
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[0], &opt, &err);
    wait_for_hardware(loader);
    hardware.no_memory = true;
    stats.jpeg_hardware_note = NULL;
    for (int k = 0; k < 3000 && !stats.jpeg_hardware_note; k++) { /* on a busy machine the workers may be first */
        st_loader_start(loader, NULL, 0, NULL);
        harness_take(loader, digests, BATCHES + 1, NULL);
        stats = (struct stoker_stats){.size = sizeof stats};
        st_loader_stats(loader, &stats);
    }
    hardware.no_memory = false;
    for (int k = 0; k < 3000 && !rows; k++) {
        st_loader_start(loader, NULL, 0, NULL);
        harness_take(loader, digests, BATCHES + 1, NULL);
        stats = (struct stoker_stats){.size = sizeof stats};
        st_loader_stats(loader, &stats);
        rows = stats.jpeg_hardware_rows;
        usleep(10000);
    }
    ok(rows > 0 && stats.jpeg_hardware_note && strstr(stats.jpeg_hardware_note, "MB"),
       "hardware works again when there is memory: %s", stats.jpeg_hardware_note ? stats.jpeg_hardware_note : "");
    st_loader_close(loader);
}

int main(void)
{
    items = test_items(COUNT);
    large_files();
    large_batches();
    kept_batches();
    blocks();
    slow_hardware();
    memory_comes_back();
    test_items_free(items, COUNT);
    return done_testing();
}
