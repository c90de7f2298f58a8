/* A device's JPEG engines beside the workers: the same bytes, whoever decodes, and whatever fails.
 *
 * The engines here are our own decoder, so that what comes out can be compared with the CPU's exactly;
 * the pipelines leave nothing to a reduced decode.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/baseline.h"
#include "codec/jpeg/headers.h"
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

struct st_engine {
    struct st_jpeg *decoder;
    struct st_arena arena;
    bool under_way;
};

static int engine_open(struct st_engine **out, struct st_device *device, uint32_t most,
                       struct stoker_error *err)
{
    if (engine.open_fails)
        return st_fail(err, STOKER_EUNSUPPORTED, "the engines are on strike");
    engine.wrong += !device || !most;
    *out = calloc(1, sizeof **out);
    (*out)->decoder = st_jpeg_new();
    engine.open++;
    return 0;
}

static void engine_close(struct st_engine *self)
{
    st_jpeg_free(self->decoder);
    st_arena_free(&self->arena);
    free(self);
    engine.open--;
}

static bool engine_takes(const struct st_jpeg_frame *frame)
{
    return !engine.takes_nothing && frame->components == 3;
}

/* Writes nothing before `finish`, as late as engines may be. */
static void engine_start(struct st_engine *self, struct st_engine_image *image, uint32_t count)
{
    engine.wrong += self->under_way || !count || image[0].there;
    self->under_way = true;
    if (count > engine.largest)
        engine.largest = count;
}

static bool engine_decode(struct st_engine *self, const struct st_engine_image *image)
{
    struct st_view view;
    st_arena_reset(&self->arena);
    const struct st_region whole = {0, 0, (uint32_t)image->width, (uint32_t)image->height};
    if (st_jpeg_decode(self->decoder, image->bytes, whole, &self->arena, &view) != ST_JPEG_OURS)
        return false;
    engine.wrong += image->stride < 3 * (uint32_t)image->width || !image->pixels;
    for (int32_t y = 0; y < view.height; y++)
        memcpy((uint8_t *)(uintptr_t)image->pixels + (size_t)y * image->stride, st_row(&view, y),
               3 * (size_t)view.width);
    return true;
}

static void engine_finish(struct st_engine *self, struct st_engine_image *image, uint32_t count)
{
    engine.wrong += !self->under_way;
    self->under_way = false;
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t number = ++engine.images;
        image[k].there = !(engine.lost && number % engine.lost == 0) && engine_decode(self, &image[k]);
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

static const struct st_engine_kind engine_kind = {"test",       engine_open,  engine_close,
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
    opt.fidelity = STOKER_FIDELITY_FAST;
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

/* Outputs larger than half of any image, so that nothing is decoded at a reduced scale. */
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
    opt.fidelity = STOKER_FIDELITY_EXACT;
    const uint32_t before = engine.images;
    ok(same(texts[0], &opt, false) && stats.engine_rows == 0 && engine.images == before,
       "exact: the engines are left alone");
    opt = fast_options();
    opt.augment_on = STOKER_PLACE_CPU;
    ok(same(texts[0], &opt, false) && engine.images == before,
       "so they are where the CPU finishes images");
    opt = fast_options();
    opt.workers = 0;
    ok(same(texts[0], &opt, false) && engine.images == before && *engine_note,
       "and where there are no threads: %s", engine_note);
}

static void failures(void)
{
    const struct stoker_loader_options opt = fast_options();
    engine.lost = 3;
    ok(same(texts[1], &opt, true) && stats.engine_rows > 0 && stats.engine_failures > 0,
       "images that engines fail at are the CPU's (%llu)", (unsigned long long)stats.engine_failures);
    engine.lost = 1;
    ok(same(texts[0], &opt, true) && stats.engine_rows == 0, "also if that is all of them");
    engine.lost = 0;
    engine.takes_nothing = true;
    ok(same(texts[0], &opt, false) && stats.engine_rows == 0 && stats.engine_failures == 0,
       "files that are not theirs");
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
    failures();
    damaged();
    ends();
    releases_while_closing();
    many();
    fields();
    test_items_free(items, COUNT);
    return done_testing();
}
