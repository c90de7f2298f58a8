/* A device's JPEG engines beside the workers: the same bytes, whoever decodes, and whatever fails. The
 * engines here are libjpeg, asked for planes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/headers.h"
#include "codec/jpeg_planes.h"
#include "pipe/harness.h"
#include "pipe/host_device.h"
#include "source/kinds.h"

enum { COUNT = 96, BATCH = 24, BATCHES = COUNT / BATCH };

/* What a test wants of the engines, and what they saw. */
static struct {
    bool open_fails, no_memory, takes_nothing;
    uint32_t lost; /* every `lost`th image does not arrive; 0: all do */
    _Atomic uint32_t open, images, wrong, memory, largest;
} engine;

struct st_jpeg_engine {
    bool under_way;
};

static int engine_open(struct st_jpeg_engine **out, struct st_device *device, uint32_t most,
                       struct stoker_error *err)
{
    if (engine.open_fails)
        return st_fail(err, STOKER_EUNSUPPORTED, "the engines are on strike");
    engine.wrong += !device || !most;
    *out = calloc(1, sizeof **out);
    engine.open++;
    return 0;
}

static void engine_close(struct st_jpeg_engine *self)
{
    free(self);
    engine.open--;
}

static bool engine_takes(const struct st_jpeg_frame *frame)
{
    return !engine.takes_nothing && frame->components == 3;
}

/* Writes nothing before `finish`, as late as engines may be. */
static void engine_start(struct st_jpeg_engine *self, struct st_jpeg_engine_image *image, uint32_t count)
{
    engine.wrong += self->under_way || !count || image[0].there;
    self->under_way = true;
    if (count > engine.largest)
        engine.largest = count;
}

static bool engine_decode(const struct st_jpeg_engine_image *image)
{
    uint8_t *to[3];
    size_t pitch[3];
    for (int c = 0; c < 3; c++) {
        const struct st_jpeg_engine_plane *plane = &image->plane[c];
        to[c] = (uint8_t *)(uintptr_t)plane->at;
        pitch[c] = plane->stride;
        engine.wrong += !plane->at || plane->width < 1 || plane->height < 1 || plane->stride < (uint32_t)plane->width;
    }
    return jpeg_planes(image->bytes.data, image->bytes.size, to, pitch);
}

static void engine_finish(struct st_jpeg_engine *self, struct st_jpeg_engine_image *image, uint32_t count)
{
    engine.wrong += !self->under_way;
    self->under_way = false;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t number = ++engine.images;
        image[k].there = !(engine.lost && number % engine.lost == 0) && engine_decode(&image[k]);
    }
}

static uint64_t engine_take(struct st_device *device, uint64_t bytes)
{
    (void)device;
    if (engine.no_memory)
        return 0;
    engine.memory++;
    void *memory = malloc(bytes);
    memset(memory, HOST_SPOILT, bytes);
    return (uint64_t)(uintptr_t)memory;
}

static void engine_give(struct st_device *device, uint64_t memory)
{
    (void)device;
    engine.memory--;
    free((void *)(uintptr_t)memory);
}

static const struct st_jpeg_engine_kind engine_kind = {"test",       engine_open,  engine_close,
                                                  engine_takes, engine_start, engine_finish,
                                                  engine_take,  engine_give};
static const struct st_devices engine_devices = {.kind = &host_kind, .engine = &engine_kind};

static struct stoker_item *items;
static struct stoker_stats stats; /* of the loader that ran last */
static char engine_note[256];     /* of its engines */

/* Engines take a while to open. */
static void wait_for_engines(struct stoker_loader *loader)
{
    for (int k = 0; k < 500; k++) {
        pthread_mutex_lock(&loader->lock);
        const bool settled =
            loader->engines.ready == loader->engines.threads || loader->engines.note.code;
        pthread_mutex_unlock(&loader->lock);
        if (settled)
            return;
        usleep(2000);
    }
}

static uint32_t epoch_on(const struct st_devices *devices, const char *text,
                         const struct stoker_loader_options *opt, uint64_t digests[BATCHES + 1])
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(devices, items, COUNT, text, opt, &err);
    uint32_t taken = 0;
    stats = (struct stoker_stats){.size = sizeof stats};
    if (!loader) {
        note("%s", err.message);
        return 0;
    }
    wait_for_engines(loader);
    if (st_loader_start(loader, NULL, 0, NULL) == 0)
        taken = harness_take(loader, digests, BATCHES + 1, NULL);
    st_loader_stats(loader, &stats);
    snprintf(engine_note, sizeof engine_note, "%s", stats.engine_note ? stats.engine_note : "");
    st_loader_close(loader);
    return taken;
}

static struct stoker_loader_options fast_options(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    opt.engines = STOKER_ENGINES_ALL;
    return opt;
}

/* Engines had their part in the epoch. On a busy machine the workers may be through before they come to
 * it. */
static bool had_part(void)
{
    if (engine.no_memory)
        return *engine_note;
    return (engine.lost == 1 || stats.engine_rows) && (!engine.lost || stats.engine_failures);
}

enum { TRIES = 50 };

/* The batches are those of the CPU, with engines at work if `wanted`. */
static bool same(const char *text, const struct stoker_loader_options *opt, bool wanted)
{
    uint64_t cpu[BATCHES + 1], device[BATCHES + 1];
    bool equal = epoch_on(NULL, text, opt, cpu) == BATCHES;
    const uint32_t before = host.wrong + engine.wrong;
    for (int try = 0; equal && try < TRIES; try++) {
        equal = epoch_on(&engine_devices, text, opt, device) == BATCHES &&
                !memcmp(cpu, device, BATCHES * sizeof *cpu);
        if (!wanted || had_part())
            break;
    }
    return equal && host.wrong + engine.wrong == before;
}

static const char *const texts[] = {
    "random_resized_crop(size=60); random_horizontal_flip; to_tensor; "
    "normalize(mean=[0.5,0.4,0.3],std=[0.2,0.3,0.4])",
    "random_resized_crop(size=60, interpolation=bicubic); random_vertical_flip; "
    "color_jitter(brightness=0.4,contrast=0.4); "
    "gaussian_blur(kernel_size=5); to_tensor; random_erasing(p=0.7, value=random)",
    "resize(size=[50,60], interpolation=nearest); random_horizontal_flip",
    "center_crop(size=24); random_vertical_flip; to_tensor",
    "resize(size=70); center_crop(size=60); random_grayscale(p=0.5)",
};

static void pipelines(void)
{
    const struct stoker_loader_options opt = fast_options();
    for (uint32_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        const bool equal = same(texts[k], &opt, true);
        ok(equal && stats.engine_rows > 0 && stats.engine_failures == 0 && !*engine_note,
           "%llu of %d rows by engines: %s", (unsigned long long)stats.engine_rows, COUNT, texts[k]);
    }
    ok(engine.largest > 1, "engines are given several images at once (%u)", engine.largest);
    ok(same("pad(padding=2); random_resized_crop(size=60)", &opt, false) && stats.engine_rows == 0,
       "what needs pixels before the end is the CPU's");
    ok(same("random_resized_crop(size=60); grayscale", &opt, false) && stats.engine_rows == 0,
       "so are images of one channel");
}

static void fidelity(void)
{
    struct stoker_loader_options opt = fast_options();
    opt.engines = STOKER_ENGINES_OFF;
    const uint32_t before = engine.images;
    ok(same(texts[0], &opt, false) && stats.engine_rows == 0 && engine.images == before,
       "off: the engines are left alone");
    opt = fast_options();
    opt.augment_on = STOKER_PLACE_CPU;
    ok(same(texts[0], &opt, false) && engine.images == before,
       "so they are where the CPU finishes images");
    opt = fast_options();
    opt.workers = 0;
    ok(same(texts[0], &opt, false) && engine.images == before && *engine_note,
       "and where there are no threads: %s", engine_note);
}

/* ---- which files are known ------------------------------------------------------------------------ */

enum { EPOCHS = 4 };

/* `rows`: by engines, in each epoch. */
static bool epochs_on(const struct st_devices *devices, void (*between)(uint32_t epoch),
                      uint64_t digests[EPOCHS][BATCHES + 1], uint64_t rows[EPOCHS])
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    opt.on_error = STOKER_ON_ERROR_REPLACE;
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(devices, items, COUNT, texts[0], &opt, &err);
    bool good = loader != NULL;
    if (good)
        wait_for_engines(loader);
    uint64_t before = 0;
    for (uint32_t k = 0; good && k < EPOCHS; k++) {
        if (between)
            between(k);
        good = !st_loader_start(loader, &(struct stoker_epoch){.size = sizeof(struct stoker_epoch), .epoch = k}, 0, NULL) &&
               harness_take(loader, digests[k], BATCHES + 1, NULL) == BATCHES;
        stats = (struct stoker_stats){.size = sizeof stats};
        st_loader_stats(loader, &stats);
        rows[k] = stats.engine_rows - before;
        before = stats.engine_rows;
    }
    st_loader_close(loader);
    return good;
}

/* The batches of all epochs are those of the CPU. Engines are seen at work in the epochs of `wanted`, a
 * bit set, and in no other. */
static bool same_epochs(void (*between)(uint32_t epoch), uint32_t wanted)
{
    uint64_t cpu[EPOCHS][BATCHES + 1], device[EPOCHS][BATCHES + 1], rows[EPOCHS] = {0};
    bool equal = epochs_on(NULL, between, cpu, rows);
    uint32_t seen = 0; /* epochs in which engines had a part, in any try */
    const uint32_t before = host.wrong + engine.wrong;
    for (int try = 0; equal && seen != wanted && try < TRIES; try++) {
        equal = epochs_on(&engine_devices, between, device, rows);
        for (uint32_t k = 0; equal && k < EPOCHS; k++) {
            equal = !memcmp(cpu[k], device[k], BATCHES * sizeof cpu[k][0]) && (wanted & 1u << k || !rows[k]);
            seen |= (uint32_t)(rows[k] > 0) << k;
        }
    }
    note("%s; rows by engines: %llu, %llu, %llu, %llu", equal ? "equal" : "not equal", (unsigned long long)rows[0], (unsigned long long)rows[1],
         (unsigned long long)rows[2], (unsigned long long)rows[3]);
    return equal && seen == wanted && host.wrong + engine.wrong == before;
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
    ok(same_epochs(NULL, 0xe), "engines decode what workers have decoded to the end once");
    flip(0);
    ok(same_epochs(NULL, 0xe), "they do not get damaged files");
    flip(0);
    ok(same_epochs(damage_before_third, 0xe), "nor files that change after they were known");
}

/* Engine threads that get no file for the engines leave the next tickets to the workers. */
static void no_files_for_engines(const struct stoker_loader_options *opt)
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(&engine_devices, items, COUNT, texts[0], opt, &err);
    uint64_t digests[BATCHES + 1], rests = 0;
    wait_for_engines(loader);
    for (int k = 0; k < 200 && !rests; k++) {
        st_loader_start(loader, NULL, 0, NULL);
        harness_take(loader, digests, BATCHES + 1, NULL);
        pthread_mutex_lock(&loader->lock);
        rests = loader->engines.rest_until;
        pthread_mutex_unlock(&loader->lock);
    }
    ok(rests > COUNT, "engines without files rest until ticket %llu", (unsigned long long)rests);
    st_loader_close(loader);
}

/* Engines that never give anything are left alone after a while. */
static void lost_engines(const struct stoker_loader_options *opt)
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(&engine_devices, items, COUNT, texts[0], opt, &err);
    uint64_t digests[BATCHES + 1];
    wait_for_engines(loader);
    engine_note[0] = 0;
    for (int k = 0; k < 200 && !*engine_note; k++) {
        st_loader_start(loader, NULL, 0, NULL);
        harness_take(loader, digests, BATCHES + 1, NULL);
        stats = (struct stoker_stats){.size = sizeof stats};
        st_loader_stats(loader, &stats);
        snprintf(engine_note, sizeof engine_note, "%s", stats.engine_note ? stats.engine_note : "");
    }
    ok(strstr(engine_note, "no longer used") && stats.engine_rows == 0, "lost engines: %s", engine_note);
    st_loader_close(loader);
}

static void failures(void)
{
    const struct stoker_loader_options opt = fast_options();
    engine.lost = 3;
    ok(same(texts[1], &opt, true) && stats.engine_rows > 0 && stats.engine_failures > 0,
       "images that engines fail at are the CPU's (%llu)", (unsigned long long)stats.engine_failures);
    engine.lost = 1;
    ok(same(texts[0], &opt, true) && stats.engine_rows == 0, "also if that is all of them");
    lost_engines(&opt);
    engine.lost = 0;
    engine.takes_nothing = true;
    ok(same(texts[0], &opt, false) && stats.engine_rows == 0 && stats.engine_failures == 0,
       "files that are not theirs");
    no_files_for_engines(&opt);
    engine.takes_nothing = false;
    engine.no_memory = true;
    ok(same(texts[0], &opt, true) && stats.engine_rows == 0 && strstr(engine_note, "MB"),
       "no memory on the device: %s", engine_note);
    engine.no_memory = false;
    engine.open_fails = true;
    ok(same(texts[0], &opt, false) && strstr(engine_note, "strike"),
       "engines that do not open are no error, and stats says why: %s", engine_note);
    engine.open_fails = false;
}

/* Damaged files are reported as they are without engines. */
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
    struct stoker_loader_options opt = harness_options(300, 2);
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
    wait_for_engines(loader);
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
        equal = pairs_on(&engine_devices) == wanted;
        if (in_scratch || had_part())
            break;
    }
    return equal;
}

static void fields(void)
{
    const uint64_t wanted = pairs_on(NULL);
    ok(same_pairs(wanted) && stats.engine_rows > 0,
       "samples of several fields: %llu files by engines, and their columns",
       (unsigned long long)stats.engine_rows);
    engine.lost = 2;
    ok(same_pairs(wanted) && stats.engine_failures > 0, "also if half of them fail");
    engine.lost = 0;
    in_scratch = true;
    ok(same_pairs(wanted) && stats.engine_rows == 0,
       "files that do not stay where they are, are the CPU's");
}

int main(void)
{
    items = test_items(COUNT);
    pipelines();
    fidelity();
    known();
    failures();
    damaged();
    ends();
    releases_while_closing();
    many();
    fields();
    test_items_free(items, COUNT);
    return done_testing();
}
