/* A device's JPEG hardware beside the workers: the same bytes, whoever decodes, and whatever fails.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/fake_hardware.h"
#include "pipe/jpeg_work.h"
#include "pipe/notify.h"
#include "pipe/tuning.h"
#include "source/kinds.h"

static void pipelines(void)
{
    const struct stoker_loader_options opt = fast_options();
    for (uint32_t k = 0; k < share_of(sizeof texts / sizeof *texts); k++) {
        const bool equal = same(texts[k], &opt, true);
        ok(equal && stats.jpeg_hardware_rows > 0 && stats.jpeg_hardware_failures == 0 && !*jpeg_hardware_note,
           "%llu of %d rows by hardware: %s", (unsigned long long)stats.jpeg_hardware_rows, COUNT, texts[k]);
    }
    ok(same("views(n=2); random_resized_crop(size=24); by_view{random_invert(p=1); random_horizontal_flip(p=1)}", &opt, true) &&
           stats.jpeg_hardware_rows > 0,
       "views of samples (%llu rows)", (unsigned long long)stats.jpeg_hardware_rows);
    ok(hardware.largest > 1, "hardware is given several images at once (%u)", hardware.largest);
    for (int k = 0; k < 20 && !hardware.grey; k++) /* which tickets they take is a matter of timing */
        same(texts[0], &opt, true);
    ok(hardware.grey > 0, "grey ones among them (%u)", hardware.grey);
    ok(hardware.parts > 0, "only parts of some are decoded (%u of %u)", hardware.parts, hardware.images);
    hardware.whole_images = true;
    ok(same(texts[0], &opt, true) && stats.jpeg_hardware_rows > 0, "whole images, if hardware cannot decode parts");
    hardware.whole_images = false;
    ok(same("random_rotation(degrees=[5,6]); random_resized_crop(size=24)", &opt, false) && stats.jpeg_hardware_rows == 0,
       "what needs pixels before the end is the CPU's");
    ok(same("random_resized_crop(size=24); grayscale", &opt, false) && stats.jpeg_hardware_rows == 0,
       "so are images of one channel");
}

static void fidelity(void)
{
    struct stoker_loader_options opt = fast_options();
    opt.jpeg_hardware = STOKER_JPEG_HARDWARE_OFF;
    const uint32_t before = hardware.images;
    ok(same(texts[0], &opt, false) && stats.jpeg_hardware_rows == 0 && hardware.images == before,
       "off: the hardware is left alone");
    opt = fast_options();
    opt.augment_on = STOKER_PLACE_CPU;
    ok(same(texts[0], &opt, false) && hardware.images == before,
       "so they are where the CPU finishes images");
    opt = fast_options();
    opt.workers = 0;
    ok(same(texts[0], &opt, false) && hardware.images == before && *jpeg_hardware_note,
       "and where there are no threads: %s", jpeg_hardware_note);
}

/* A JPEG thread finds out which files the hardware cannot have without decoding them: an op that needs
 * pixels is run only when the sample is made. */
static void decoded_once(const char *text)
{
    const struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, text, &opt, &err);
    uint64_t digests[BATCHES + 1], by_jpeg_threads = 0, decodes = 0, epochs = 0;
    wait_for_hardware(loader);
    for (; epochs < 200 && !by_jpeg_threads; epochs++) {
        st_loader_start(loader, NULL, 0, NULL);
        harness_take(loader, digests, BATCHES + 1, NULL);
        st_loader_stop(loader);
        for (uint32_t k = 0; k < loader->jpeg.count; k++)
            by_jpeg_threads += loader->jpeg.worker[k].worker.samples;
    }
    for (uint32_t codec = 0; codec < ST_CODECS_MAX; codec++)
        for (uint32_t path = 0; path < ST_PATHS_MAX; path++)
            decodes += st_loader_files(loader, codec, path);
    for (uint32_t k = 0; k < loader->jpeg.count; k++)
        decodes += loader->jpeg.worker[k].rows;
    ok(decodes == epochs * COUNT && by_jpeg_threads,
       "%llu decodes of %llu samples, of which JPEG threads made %llu: %s", (unsigned long long)decodes,
       (unsigned long long)epochs * COUNT, (unsigned long long)by_jpeg_threads, text);
    st_loader_close(loader);
}

/* JPEG threads that get no file for the hardware leave the next tickets to the workers. */
static void no_files_for_hardware(const struct stoker_loader_options *opt)
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[0], opt, &err);
    uint64_t digests[BATCHES + 1], rests = 0;
    wait_for_hardware(loader);
    for (int k = 0; k < 200 && !rests; k++) {
        st_loader_start(loader, NULL, 0, NULL);
        harness_take(loader, digests, BATCHES + 1, NULL);
        pthread_mutex_lock(&loader->lock);
        rests = loader->jpeg.steer.rest_until;
        pthread_mutex_unlock(&loader->lock);
    }
    ok(rests > COUNT, "hardware without files rests until ticket %llu", (unsigned long long)rests);
    st_loader_close(loader);
}

/* Hardware that never give anything are left alone after a while. */
static void lost_hardware(const struct stoker_loader_options *opt)
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[0], opt, &err);
    uint64_t digests[BATCHES + 1];
    wait_for_hardware(loader);
    jpeg_hardware_note[0] = 0;
    for (int k = 0; k < 200 && !*jpeg_hardware_note; k++) {
        st_loader_start(loader, NULL, 0, NULL);
        harness_take(loader, digests, BATCHES + 1, NULL);
        stats = (struct stoker_stats){.size = sizeof stats};
        st_loader_stats(loader, &stats);
        snprintf(jpeg_hardware_note, sizeof jpeg_hardware_note, "%s", stats.jpeg_hardware_note ? stats.jpeg_hardware_note : "");
    }
    ok(strstr(jpeg_hardware_note, "no longer used") && stats.jpeg_hardware_rows == 0, "lost hardware: %s", jpeg_hardware_note);
    st_loader_close(loader);
}

static void failures(void)
{
    const struct stoker_loader_options opt = fast_options();
    hardware.lost = 3;
    ok(same(texts[1], &opt, true) && stats.jpeg_hardware_rows > 0 && stats.jpeg_hardware_failures > 0,
       "images that the hardware fails at are the CPU's (%llu)", (unsigned long long)stats.jpeg_hardware_failures);
    hardware.lost = 1;
    ok(same(texts[0], &opt, true) && stats.jpeg_hardware_rows == 0, "also if that is all of them");
    lost_hardware(&opt);
    hardware.lost = 0;
    hardware.takes_nothing = true;
    ok(same(texts[0], &opt, false) && stats.jpeg_hardware_rows == 0 && stats.jpeg_hardware_failures == 0,
       "files that are not theirs");
    no_files_for_hardware(&opt);
    hardware.takes_nothing = false;
    hardware.no_memory = true;
    ok(same(texts[0], &opt, true) && stats.jpeg_hardware_rows == 0 && strstr(jpeg_hardware_note, "MB"),
       "no memory on the device: %s", jpeg_hardware_note);
    hardware.no_memory = false;
    hardware.open_fails = true;
    ok(same(texts[0], &opt, false) && strstr(jpeg_hardware_note, "strike"),
       "hardware that does not open is no error, and stats says why: %s", jpeg_hardware_note);
    hardware.open_fails = false;
}

/* The hardware's pinned memory is part of pinned_limit. */
static uint64_t hardware_pin(uint64_t limit)
{
    struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    opt.pinned_limit = limit;
    struct stoker_loader *loader = harness_open_on(&hardware_devices, items, COUNT, texts[0], &opt, &err);
    wait_for_hardware(loader);
    stats = (struct stoker_stats){.size = sizeof stats};
    st_loader_stats(loader, &stats);
    pthread_mutex_lock(&loader->lock);
    const uint64_t bytes = loader->jpeg.pinned_bytes;
    pthread_mutex_unlock(&loader->lock);
    st_loader_close(loader);
    return bytes;
}

static void pinned(void)
{
    const uint64_t both = hardware_pin(256 << 20);
    ok(both && both == 2 * hardware.offered && stats.pinned_bytes > both && stats.pinned_bytes <= 256 << 20,
       "hardware pins %llu bytes, which are counted", (unsigned long long)both);
    ok(hardware_pin(1 << 20) == 0 && !hardware.offered && stats.pinned_bytes <= 1 << 20,
       "none beyond pinned_limit");
    hardware.pins_nothing = true;
    ok(hardware_pin(256 << 20) == 0 && hardware.offered, "and what could not be pinned is not counted");
    hardware.pins_nothing = false;
}

/* A chunk that does not fit into pinned memory is decoded in parts. */
static void little_pinned(void)
{
    const struct stoker_loader_options opt = fast_options();
    const uint64_t most = hardware.held_most;
    hardware.held_most = 0;
    hardware.pins = most / 4;
    const bool equal = same(texts[0], &opt, true) && stats.jpeg_hardware_rows > 0;
    const uint64_t less = hardware.held_most;
    ok(equal && less && less <= most / 3, "with little pinned memory, a call is for %llu of %llu bytes",
       (unsigned long long)less, (unsigned long long)most);
    hardware.pins = 1;
    ok(same(texts[0], &opt, true) && stats.jpeg_hardware_rows > 0, "even where nothing fits, images are decoded");
    hardware.pins = 0;
}

/* Workers leave CPUs to the threads that drive the hardware, and to the consumer. */
static void resting_workers(void)
{
    static const struct {
        double cpus;
        uint32_t ready, active;
    } cases[] = {{16, 2, 8}, {11, 2, 8}, {10, 2, 7}, {4, 2, 1}, {3, 2, 0}, {1, 2, 0}, {4, 1, 2}};
    struct stoker_loader loader = {.worker_count = 8};
    uint32_t wrong = 0;
    st_tune_lever(&loader.tuning.tune, ST_TUNE_WORKERS, 1, 8, 8);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        loader.tuning.cpus = cases[k].cpus;
        loader.jpeg.ready = cases[k].ready;
        loader.jpeg.steer.engaged = true;
        wrong += st_tuning_active(&loader) != cases[k].active;
        loader.jpeg.steer.engaged = false;
        wrong += st_tuning_active(&loader) != 8;
    }
    ok(wrong == 0, "workers rest while hardware works, as CPUs are few");
}

static bool is_ahead(const struct stoker_loader *loader, uint32_t thread)
{
    const struct st_steer_seen seen = st_jpeg_threads_see(loader, thread);
    return st_steer_is_ahead(&seen);
}

/* JPEG threads rest while half of the batches are ready; where CPUs are few, the second one while any is. Workers take
 * over only when the hardware has rested for a while. */
static void resting_hardware(void)
{
    struct st_slot slots[4] = {{.next = &slots[1]}, {.next = &slots[2]}, {.next = &slots[3]}};
    struct stoker_loader loader = {.worker_count = 8, .slots = slots, .opt.batch_size = 4,
                                   .jpeg = {.kind = &hardware_kind}};
    uint32_t wrong = 0;
    pthread_cond_init(&loader.tuning.rest, NULL);
    for (uint32_t k = 0; k < ST_JPEG_THREADS; k++)
        pthread_cond_init(&loader.jpeg.work[k], NULL);
    st_tune_lever(&loader.tuning.tune, ST_TUNE_PREFETCH, 4, 4, 4);
    for (uint32_t ready = 0; ready <= 4; ready++) {
        for (uint32_t k = 0; k < 4; k++)
            slots[k].state = k < ready ? ST_SLOT_READY : ST_SLOT_FREE;
        loader.jpeg.ready = 2;
        loader.tuning.cpus = 4;
        wrong += is_ahead(&loader, 0) != (ready >= 2);
        wrong += is_ahead(&loader, 1) != (ready >= 2);
        loader.tuning.cpus = 3.5;
        wrong += is_ahead(&loader, 0) != (ready >= 2);
        wrong += is_ahead(&loader, 1) != (ready >= 1);
        loader.jpeg.ready = 1; /* the first one has given up */
        wrong += is_ahead(&loader, 1) != (ready >= 2);
    }
    ok(wrong == 0, "JPEG threads rest while batches are ready");
    st_jpeg_threads_engage(&loader, true);
    st_jpeg_threads_wake(&loader);
    const bool still = loader.jpeg.steer.engaged;
    loader.jpeg.steer.worked_ns -= 1100000000;
    st_jpeg_threads_wake(&loader);
    ok(still && !loader.jpeg.steer.engaged, "workers take over when the hardware has not worked for a second");
}

/* Damaged files are reported as they are without hardware. */
static void damaged(void)
{
    struct stoker_loader_options opt = fast_options();
    opt.on_error = STOKER_ON_ERROR_REPLACE;
    uint8_t *whole = (uint8_t *)(uintptr_t)items[10].data;
    const size_t size = items[10].size;
    items[10].size = size / 2;
    ok(same(texts[0], &opt, true) && stats.bad == 1, "a file that is cut off is replaced");
    items[10].size = size;
    const uint8_t kept = whole[2];
    whole[2] = 0x12;
    ok(same(texts[0], &opt, true) && stats.bad == 1, "so is one with a broken header");
    whole[2] = kept;
}

/* ---- samples of several fields -------------------------------------------------------------------- */

static bool in_scratch; /* the image is copied out of the sample's bytes */

static uint64_t pair_count(const void *self) { return (void)self, COUNT; }
static void pair_close(void *self) { (void)self; }
static const struct st_field *pair_fields(const void *self, uint32_t *count)
{
    static const struct st_field fields[] = {{.name = "cls", .kind = ST_FIELD_INT},
                                             {.name = "txt", .kind = ST_FIELD_TEXT},
                                             {.name = "jpg", .kind = ST_FIELD_IMAGE}};
    (void)self;
    *count = 3;
    return fields;
}

static int pair_locate(const void *self, uint64_t sample, struct st_extent *out,
                       struct stoker_error *err)
{
    (void)self, (void)err;
    out->memory = items[sample].data;
    out->length = items[sample].size;
    return 0;
}

static int pair_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                      struct st_piece *pieces, struct stoker_error *err)
{
    (void)self, (void)err;
    if (!st_buffer_reserve(scratch, 1 << 16))
        return STOKER_ENOMEM;
    pieces[0] = (struct st_piece){.whole = (int64_t)sample * 3};
    pieces[1] = (struct st_piece){.bytes = {raw.data, sample % 9}};
    pieces[2] = (struct st_piece){.bytes = raw};
    if (in_scratch)
        pieces[2].bytes.data = memcpy(scratch->data, raw.data, raw.size);
    return 0;
}

static const struct st_source pair_source = {.scheme = "pairs",
                                             .self_size = 1,
                                             .count = pair_count,
                                             .label = st_label_zero,
                                             .name = st_name_by_number,
                                             .locate = pair_locate,
                                             .fields = pair_fields,
                                             .split = pair_split,
                                             .close = pair_close};

static uint64_t pairs_on(const struct st_devices *devices)
{
    const struct stoker_loader_options opt = fast_options();
    struct stoker_error err = {0};
    struct stoker_dataset *data = st_dataset_new(&pair_source);
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    const struct stoker_batch *batch;
    uint64_t sum = 1;
    stats = (struct stoker_stats){.size = sizeof stats};
    if (!st_pipeline_open(&pipe, texts[0], &err))
        (void)st_loader_open(&loader, data, pipe, &opt, devices, &err);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    if (!loader) {
        note("%s", err.message);
        return 0;
    }
    wait_for_hardware(loader);
    st_loader_start(loader, NULL, 0, NULL);
    while (st_loader_next(loader, &batch, &err) == STOKER_OK) {
        st_batch_sync(batch, NULL);
        sum = sum * 31 + digest_batch(batch);
        for (uint32_t k = 0; k < batch->column_count; k++) {
            const struct stoker_column *column = batch->columns[k];
            sum = digest_bytes(sum, column->data,
                               column->offsets ? column->offsets[batch->count] : 8 * batch->count);
        }
        st_batch_release(batch, NULL);
    }
    st_loader_stats(loader, &stats);
    st_loader_close(loader);
    return sum;
}

static bool same_pairs(uint64_t wanted)
{
    bool equal = wanted > 1;
    for (int try = 0; equal && try < TRIES; try++) {
        equal = pairs_on(&hardware_devices) == wanted;
        if (in_scratch || had_part())
            break;
    }
    return equal;
}

static void fields(void)
{
    const uint64_t wanted = pairs_on(NULL);
    ok(same_pairs(wanted) && stats.jpeg_hardware_rows > 0,
       "samples of several fields: %llu files by hardware, and their columns",
       (unsigned long long)stats.jpeg_hardware_rows);
    hardware.lost = 2;
    ok(same_pairs(wanted) && stats.jpeg_hardware_failures > 0, "also if half of them fail");
    hardware.lost = 0;
    in_scratch = true;
    ok(same_pairs(wanted) && stats.jpeg_hardware_rows == 0,
       "files that do not stay where they are, are the CPU's");
}

int main(void)
{
    items = test_items(COUNT);
    for (uint32_t k = 1; k < COUNT; k += 3) {
        if (k % 5 == 4)
            continue; /* not a JPEG */
        free((void *)(uintptr_t)items[k].data);
        items[k] = test_jpeg_kind(k, 45 + (int)k, 52, TEST_JPEG_GREY);
    }
    pipelines();
    decoded_once("pad(padding=2); random_resized_crop(size=24)");
    decoded_once("random_apply(p=0.5){color_jitter(contrast=0.9)}; random_resized_crop(size=24)");
    fidelity();
    failures();
    pinned();
    little_pinned();
    resting_workers();
    resting_hardware();
    damaged();
    fields();
    test_items_free(items, COUNT);
    return done_testing();
}
