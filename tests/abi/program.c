/* program.c - uses every structure of stoker.h that may grow, with a library of the same or another version
 *
 *     program same|newer|older FOLDER     what the library is, compared with the header; FOLDER is empty
 *
 * Compiled with LATER against the header that grow.py makes. Every structure is followed by bytes that the library must
 * leave alone. Prints what is wrong; exit status 1 if anything is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>

enum { IMAGES = 12, SIDE = 8, BATCH = 4, GUARD = 256 };

enum library { SAME, NEWER, OLDER };
static enum library library;
static int wrong;

static bool check(bool holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s\n", what);
        wrong = 1;
    }
    return holds;
}

/* A structure with bytes behind it that nobody may write to. */
#define GUARDED(type, name)                                                                               \
    struct {                                                                                              \
        struct type value;                                                                                \
        uint8_t behind[GUARD];                                                                            \
    } name;                                                                                               \
    memset(&name, 0xA5, sizeof name)

static bool is_all(const uint8_t *bytes, size_t count, uint8_t value)
{
    for (size_t k = 0; k < count; k++)
        if (bytes[k] != value)
            return false;
    return true;
}
#define INTACT(name) is_all((name).behind, GUARD, 0xA5)

/* Members that only a later library knows are 0, whatever was there before. */
#ifdef LATER
#define GROWN_IS_ZERO(name) is_all((const uint8_t *)(name).value.grown, sizeof (name).value.grown, 0)
#else
#define GROWN_IS_ZERO(name) true
#endif

/* ---- options -------------------------------------------------------------------------------------- */

#define CHECK_INIT(type, init)                                                                            \
    do {                                                                                                  \
        GUARDED(type, of);                                                                                \
        init(&of.value, sizeof of.value);                                                                 \
        check(INTACT(of), #init " writes behind the structure");                                          \
        check(of.value.size == sizeof of.value, #init " does not set the program's size");                \
        check(GROWN_IS_ZERO(of), #init " leaves members uninitialised");                                  \
    } while (0)

static void all_options(void)
{
    CHECK_INIT(stoker_dataset_options, stoker_dataset_options_init);
    CHECK_INIT(stoker_order_options, stoker_order_options_init);
    CHECK_INIT(stoker_loader_options, stoker_loader_options_init);
    CHECK_INIT(stoker_epoch, stoker_epoch_init);
    CHECK_INIT(stoker_image_options, stoker_image_options_init);
    CHECK_INIT(stoker_single_options, stoker_single_options_init);
    CHECK_INIT(stoker_sound_options, stoker_sound_options_init);
    const struct stoker_loader_options opt = stoker_loader_defaults();
    check(opt.batch_size == 1 && opt.workers == -1 && opt.pillow == 13 && opt.error_limit == UINT64_MAX &&
              opt.jpeg_hardware == STOKER_JPEG_HARDWARE_KNOWN,
          "the defaults of a loader");
}

static void all_lists(void)
{
    GUARDED(stoker_op, op);
    op.value.size = sizeof op.value;
    check(stoker_op_at(0, &op.value) && op.value.name[0] && op.value.help[0] && INTACT(op) && GROWN_IS_ZERO(op),
          "the list of ops");
    GUARDED(stoker_feature, feature);
    feature.value.size = sizeof feature.value;
    check(stoker_feature_at(0, &feature.value) && feature.value.name[0] && feature.value.detail[0] &&
              INTACT(feature) && GROWN_IS_ZERO(feature),
          "the list of features");
    feature.value.size = 0;
    check(!stoker_feature_at(0, &feature.value), "a list without a size");
}

/* ---- data ------------------------------------------------------------------------------------------ */

static uint8_t pixels[IMAGES][SIDE * SIDE * 3];
static uint8_t files[IMAGES][SIDE * SIDE * 3 + 32]; /* PPM */
static size_t head;

static void make_images(void)
{
    for (int k = 0; k < IMAGES; k++) {
        for (size_t i = 0; i < sizeof pixels[k]; i++)
            pixels[k][i] = (uint8_t)(k * 19 + (int)i);
        head = (size_t)sprintf((char *)files[k], "P6\n%d %d\n255\n", SIDE, SIDE);
        memcpy(files[k] + head, pixels[k], sizeof pixels[k]);
    }
}

/* A table with the columns file, label and score, the last file damaged. */
static bool write_table(const char *folder, char *path, size_t room)
{
    snprintf(path, room, "%s/table.csv", folder);
    FILE *table = fopen(path, "w");
    if (!table)
        return false;
    fputs("file,label,score\n", table);
    for (int k = 0; k < IMAGES; k++) {
        char name[4096];
        fprintf(table, "%d.ppm,%d,%d.5\n", k, k % 3, k);
        snprintf(name, sizeof name, "%s/%d.ppm", folder, k);
        FILE *image = fopen(name, "wb");
        if (!image)
            return false;
        fwrite(files[k], 1, k == IMAGES - 1 ? 3 : head + sizeof pixels[k], image);
        fclose(image);
    }
    return !fclose(table);
}

static int read_file(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                     struct stoker_error *err)
{
    (void)cookie, (void)err;
    *size = head + sizeof pixels[sample];
    if (*size <= capacity)
        memcpy(buffer, files[sample], *size);
    return STOKER_OK;
}

static void other_data(struct stoker_error *err)
{
    struct stoker_dataset *data = NULL;
    const struct stoker_callbacks calls = {.size = sizeof calls, .count = IMAGES, .read = read_file};
    check(!stoker_dataset_from_callbacks(&data, &calls, NULL, err) && stoker_dataset_count(data) == IMAGES,
          "a dataset of callbacks");
    stoker_dataset_close(data);
    const struct stoker_pixels raw = {.size = sizeof raw, .data = pixels[0], .count = IMAGES, .height = SIDE,
                                      .width = SIDE, .channels = 3,
                                      .stride = {sizeof pixels[0], SIDE * 3, 3, 1}};
    check(!stoker_dataset_from_pixels(&data, &raw, err) && stoker_dataset_count(data) == IMAGES,
          "a dataset of pixels");
    stoker_dataset_close(data);
    struct stoker_pixels unset = raw;
    unset.size = 0;
    check(stoker_dataset_from_pixels(&data, &unset, err) == STOKER_EINVAL && !data, "pixels without a size");
}

/* ---- batches --------------------------------------------------------------------------------------- */

/* One sample of the batch is what the table says. */
static bool row_is_right(const struct stoker_batch *batch, uint32_t row)
{
    const uint64_t sample = batch->samples[row];
    const uint8_t *image = (const uint8_t *)batch->images.data + row * batch->images.stride[0];
    const struct stoker_column *label = batch->columns[0], *score = batch->columns[1];
    if (sample >= IMAGES - 1 || strcmp(label->name, "label") || strcmp(score->name, "score"))
        return false;
    for (int k = 0; k < SIDE * SIDE * 3; k++)
        if (image[k] != pixels[sample][k])
            return false;
    return ((const int64_t *)label->data)[row] == (int64_t)sample % 3 &&
           ((const double *)score->data)[row] == (double)sample + 0.5 &&
           ((const int64_t *)batch->labels.data)[row] == (int64_t)sample % 3;
}

static void take_batch(const struct stoker_batch *batch)
{
    check(STOKER_HAS(batch, lengths) && batch->column_count == 2 && STOKER_HAS(batch->columns[1], shapes),
          "a batch has the members of the first version");
    check(library == NEWER ? batch->size > sizeof *batch : library == OLDER ? batch->size < sizeof *batch
                                                                            : batch->size == sizeof *batch,
          "a batch states its size");
#ifdef LATER
    check(STOKER_HAS(batch, grown) == (library == SAME) && STOKER_HAS(batch->columns[0], grown) == (library == SAME),
          "STOKER_HAS tells whether a batch has a member");
#endif
    for (uint32_t row = 0; batch->column_count == 2 && row < batch->count; row++)
        check(row_is_right(batch, row), "a sample of a batch");
}

static void all_statistics(const struct stoker_loader *loader)
{
    GUARDED(stoker_stats, stats);
    stats.value.size = sizeof stats.value;
    check(!stoker_loader_stats(loader, &stats.value) && stats.value.samples == IMAGES && stats.value.bad == 1 &&
              stats.value.size == sizeof stats.value && stats.value.stage_ns[STOKER_STAGE_COUNT] == 0,
          "statistics");
    check(INTACT(stats) && GROWN_IS_ZERO(stats), "statistics stay inside of their structure");
    GUARDED(stoker_worker_stats, worker);
    worker.value.size = sizeof worker.value;
    check(stoker_loader_worker_stats_at(loader, 0, &worker.value) && worker.value.samples > 0 && INTACT(worker) &&
              GROWN_IS_ZERO(worker),
          "statistics of a worker");
    GUARDED(stoker_decode_path, path);
    path.value.size = sizeof path.value;
    check(stoker_loader_decode_path_at(loader, 0, &path.value) && path.value.codec[0] && path.value.files > 0 &&
              INTACT(path) && GROWN_IS_ZERO(path),
          "paths of decoding");
    GUARDED(stoker_bad_sample, bad);
    bad.value.size = sizeof bad.value;
    check(stoker_loader_bad_sample_at(loader, 0, &bad.value) && bad.value.sample == IMAGES - 1 &&
              bad.value.code < 0 && bad.value.reason[0] && INTACT(bad) && GROWN_IS_ZERO(bad),
          "the ledger");
}

static void all_fields(const struct stoker_dataset *data)
{
    GUARDED(stoker_field, field);
    field.value.size = sizeof field.value;
    check(stoker_dataset_field_at(data, 2, &field.value) && !strcmp(field.value.name, "score") &&
              !strcmp(field.value.type, "float") && INTACT(field) && GROWN_IS_ZERO(field),
          "the fields of a dataset");
}

static void load(struct stoker_dataset *data, struct stoker_pipeline *pipe, struct stoker_error *err)
{
    struct stoker_loader_options opt = stoker_loader_defaults();
    struct stoker_epoch epoch = stoker_epoch_defaults();
    struct stoker_loader *loader = NULL;
    const struct stoker_batch *batch;
    uint32_t samples = 0;
    int rc;
    opt.batch_size = BATCH;
    opt.workers = 1;
    opt.order = STOKER_ORDER_SHUFFLE;
    opt.seed = 5;
    opt.on_error = STOKER_ON_ERROR_SKIP;
    opt.layout = STOKER_LAYOUT_NHWC;
    opt.pinned_limit = 1 << 20;
    opt.jpeg_hardware = STOKER_JPEG_HARDWARE_OFF; /* the last member of the first version */
    epoch.epoch = 2;
    if (!check(!stoker_loader_open(&loader, data, pipe, &opt, err) && !stoker_loader_start(loader, &epoch, err),
               err->message))
        return;
    while (!(rc = stoker_loader_next(loader, &batch, err))) {
        check(batch->epoch == 2, "the number of the epoch");
        take_batch(batch);
        samples += batch->count;
        stoker_batch_release(batch);
    }
    check(rc == STOKER_END && samples == IMAGES, rc == STOKER_END ? "samples of an epoch" : err->message);
    all_statistics(loader);
    stoker_loader_close(loader);

    opt.jpeg_hardware = (enum stoker_jpeg_hardware)3;
    check(stoker_loader_open(&loader, data, pipe, &opt, err) == STOKER_EINVAL && !loader &&
              strstr(err->message, "jpeg_hardware is 3; allowed are 0 to 2"),
          "a value that no version has");
    opt = stoker_loader_defaults();
    opt.size = offsetof(struct stoker_loader_options, jpeg_hardware);
    check(stoker_loader_open(&loader, data, pipe, &opt, err) == STOKER_EINVAL && !loader,
          "options shorter than any version are refused");
#ifdef LATER
    opt.size = offsetof(struct stoker_loader_options, grown);
    check(!stoker_loader_open(&loader, data, pipe, &opt, err), "a program of the first version");
    stoker_loader_close(loader);
    loader = NULL;
    opt = stoker_loader_defaults();
    opt.grown[1] = 1;
    rc = stoker_loader_open(&loader, data, pipe, &opt, err);
    check(rc == (library == OLDER ? STOKER_EUNSUPPORTED : STOKER_OK), "a member that an earlier library lacks");
    stoker_loader_close(loader);
#endif
}

/* ---- single images, orders -------------------------------------------------------------------------- */

static void singles(struct stoker_pipeline *pipe, struct stoker_error *err)
{
    struct stoker_single_options opt = stoker_single_defaults();
    const struct stoker_picture picture = {.size = sizeof picture, .data = files[3], .bytes = head + sizeof pixels[3]};
    struct stoker_single *single = NULL;
    struct stoker_tensor out;
    opt.layout = STOKER_LAYOUT_NHWC;
    check(!stoker_single_open(&single, pipe, &opt, err), "a pipeline for single images");
    if (check(single && !stoker_single_run(single, &picture, 0, 0, 0, &out, err), "a single image")) {
        check(!memcmp(out.data, pixels[3], sizeof pixels[3]), "the pixels of a single image");
        free(out.data);
    }
    stoker_single_close(single);
    struct stoker_image_options region = stoker_image_defaults();
    struct stoker_image image;
    region.x = region.y = 1;
    region.width = region.height = 2;
    check(!stoker_image_decode(&image, files[3], head + sizeof pixels[3], "x", &region, err) && image.width == 2 &&
              !memcmp(image.pixels, pixels[3] + (SIDE + 1) * 3, 6),
          "a region of an image");
    stoker_image_close(&image);
}

static void orders(struct stoker_error *err)
{
    struct stoker_order_options opt = stoker_order_defaults();
    struct stoker_order *order = NULL;
    opt.rank = 1;
    opt.world = 3;
    check(!stoker_order_open(&order, 9, &opt, err) && !stoker_order_start(order, 0, NULL, 0, err) &&
              stoker_order_count(order) == 3 && stoker_order_at(order, 1) == 4,
          "an order");
    stoker_order_close(order);
}

int main(int argc, char **argv)
{
    struct stoker_error err = {0};
    struct stoker_dataset_options opt = stoker_dataset_defaults();
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    char table[4096];
    if (argc != 3)
        return 2;
    library = !strcmp(argv[1], "newer") ? NEWER : !strcmp(argv[1], "older") ? OLDER : SAME;
    check(library == NEWER   ? stoker_version() > STOKER_VERSION
          : library == OLDER ? stoker_version() < STOKER_VERSION
                             : stoker_version() == STOKER_VERSION,
          "the versions of header and library");
    make_images();
    all_options();
    all_lists();
    orders(&err);
    other_data(&err);
    opt.fields = "file=image,label,score";
    if (check(write_table(argv[2], table, sizeof table), "the table cannot be written") &&
        check(!stoker_dataset_open(&data, table, &opt, &err), err.message) &&
        check(!stoker_pipeline_open(&pipe, "pil_to_tensor", &err), err.message)) {
        all_fields(data);
        load(data, pipe, &err);
        singles(pipe, &err);
    }
    stoker_pipeline_close(pipe);
    stoker_dataset_close(data);
    return wrong;
}
