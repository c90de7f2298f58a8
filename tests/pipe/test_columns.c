/* Samples of several fields: the image goes its way, the rest become columns of the batch. */
#include "pipe/harness.h"
#include "source/kinds.h"

enum { COUNT = 22, BATCH = 5, BATCHES = (COUNT + BATCH - 1) / BATCH, BAD = 8 };
enum { IMAGE, AMOUNT, LABEL, BOX, STEPS, GRID, TITLE, META, BLOB, SOUND, THUMB, FIELDS };

static struct stoker_item *items;
static const struct st_field all_fields[FIELDS] = {
    [IMAGE] = {.name = "jpg", .kind = ST_FIELD_IMAGE},
    [AMOUNT] = {.name = "amount", .kind = ST_FIELD_FLOAT},
    [LABEL] = {.name = "cls", .kind = ST_FIELD_INT},
    [BOX] = {.name = "box", .kind = ST_FIELD_ARRAY, .dtype = STOKER_DTYPE_F32, .ndim = 2, .shape = {2, 3}},
    [STEPS] = {.name = "steps", .kind = ST_FIELD_ARRAY, .dtype = STOKER_DTYPE_I16, .ndim = 1, .shape = {-1}},
    [GRID] = {.name = "grid", .kind = ST_FIELD_ARRAY, .ndim = -1},
    [TITLE] = {.name = "txt", .kind = ST_FIELD_TEXT},
    [META] = {.name = "json", .kind = ST_FIELD_JSON},
    [BLOB] = {.name = "bin", .kind = ST_FIELD_BYTES},
    [SOUND] = {.name = "wav", .kind = ST_FIELD_AUDIO},
    [THUMB] = {.name = "png", .kind = ST_FIELD_IMAGE},
};

/* What the source of a test is like. */
static struct {
    struct st_field field[FIELDS];
    uint32_t count;
    bool bad; /* the box of sample BAD is of another shape */
    bool odd; /* the grid of sample BAD is of another type */
    uint64_t unreadable; /* so many of the first samples */
    int32_t channels; /* not 0: images are pixels; 2 dimensions where 1 */
} made;

static uint64_t made_count(const void *self) { return (void)self, COUNT; }
static void made_close(void *self) { (void)self; }
static const struct st_field *made_fields(const void *self, uint32_t *count)
{
    (void)self;
    *count = made.count;
    return made.field;
}

static int made_locate(const void *self, uint64_t sample, struct st_extent *out, struct stoker_error *err)
{
    (void)self, (void)err;
    out->memory = items[sample].data;
    out->length = items[sample].size;
    return 0;
}

static struct st_bytes text_of(uint64_t sample, char text[64])
{
    const int size = snprintf(text, 64, "%.*s", (int)(sample % 7 * 5), "a text of some length, or of none at all");
    return (struct st_bytes){(const uint8_t *)text, (size_t)size};
}

static struct st_bytes json_of(uint64_t sample, char text[64])
{
    const int size = snprintf(text, 64, "{\"number\": %llu}", (unsigned long long)sample);
    return (struct st_bytes){(const uint8_t *)text, (size_t)size};
}

static void pixels_of(struct st_piece *piece, uint8_t *at, uint64_t sample)
{
    const int64_t height = 12 + (int64_t)(sample % 3), width = 10;
    piece->dtype = STOKER_DTYPE_U8;
    piece->ndim = made.channels == 1 ? 2 : 3;
    piece->shape[0] = height;
    piece->shape[1] = width;
    piece->shape[2] = made.channels;
    piece->bytes = (struct st_bytes){at, (size_t)(height * width * made.channels)};
    for (size_t k = 0; k < piece->bytes.size; k++)
        at[k] = (uint8_t)(k * 7 + sample);
}

static int made_split(const void *self, uint64_t sample, struct st_bytes raw, struct st_buffer *scratch,
                      struct st_piece *pieces, struct stoker_error *err)
{
    (void)self;
    if (!st_buffer_reserve(scratch, 4096))
        return st_fail(err, STOKER_ENOMEM, "no memory for the pieces");
    if (sample < made.unreadable)
        return st_fail(err, STOKER_ECORRUPT, "unreadable");
    float *box = (float *)(void *)scratch->data;
    int16_t *steps = (int16_t *)(void *)(scratch->data + 64);
    double *grid = (double *)(void *)(scratch->data + 128);
    char *text = (char *)(scratch->data + 256);
    for (int k = 0; k < 6; k++)
        box[k] = (float)sample + (float)k / 8;
    for (int k = 0; k < 8; k++)
        steps[k] = (int16_t)(sample * 10 + (uint64_t)k);
    for (int k = 0; k < 4; k++)
        grid[k] = (double)sample / (k + 1);
    const struct st_bytes some = text_of(sample, text);
    for (uint32_t k = 0; k < made.count; k++) {
        struct st_piece *piece = &pieces[k];
        const char *name = made.field[k].name;
        *piece = (struct st_piece){.bytes = some, .whole = (int64_t)sample * 7 - 3, .real = (double)sample / 3};
        if (!strcmp(name, "jpg") || !strcmp(name, "png"))
            piece->bytes = raw;
        if (!strcmp(name, "json"))
            piece->bytes = json_of(sample, text + 64);
        if (!strcmp(name, "jpg") && made.channels)
            pixels_of(piece, scratch->data + 512, sample);
        if (!strcmp(name, "box"))
            *piece = (struct st_piece){.bytes = {(uint8_t *)box, 24}, .dtype = STOKER_DTYPE_F32, .ndim = 2,
                                       .shape = {2, made.bad && sample == BAD ? 4 : 3}};
        if (!strcmp(name, "steps"))
            *piece = (struct st_piece){.bytes = {(uint8_t *)steps, 2 * (1 + sample % 4)}, .dtype = STOKER_DTYPE_I16,
                                       .ndim = 1, .shape = {1 + (int64_t)(sample % 4)}};
        if (!strcmp(name, "grid"))
            *piece = (struct st_piece){.bytes = {(uint8_t *)grid, 32}, .dtype = STOKER_DTYPE_F64, .ndim = 2, .shape = {2, 2}};
        if (!strcmp(name, "grid") && made.odd && sample == BAD)
            piece->dtype = STOKER_DTYPE_I64;
    }
    return 0;
}

static const struct st_source made_source = {
    .scheme = "made",
    .self_size = 1,
    .count = made_count,
    .label = st_label_zero,
    .name = st_name_by_number,
    .locate = made_locate,
    .fields = made_fields,
    .split = made_split,
    .close = made_close,
};

static struct stoker_loader *open_made(const char *text, const struct stoker_loader_options *opt,
                                       struct stoker_error *err)
{
    struct stoker_dataset *data = st_dataset_new(&made_source);
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    if (!st_pipeline_open(&pipe, text, err) && !st_loader_open(&loader, data, pipe, opt, NULL, err))
        st_loader_start(loader, NULL, 0, err);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    return loader;
}

static void take_fields(const uint32_t *which, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        made.field[k] = all_fields[which[k]];
    made.count = count;
}

static const struct stoker_column *column(const struct stoker_batch *batch, uint32_t field)
{
    for (uint32_t k = 0; k < batch->column_count; k++)
        if (!strcmp(batch->columns[k]->name, all_fields[field].name))
            return batch->columns[k];
    return NULL;
}

/* ---- what stands in a batch ---------------------------------------------------------------------- */

static bool numbers_right(const struct stoker_batch *batch)
{
    const struct stoker_column *amount = column(batch, AMOUNT), *label = column(batch, LABEL), *box = column(batch, BOX);
    bool right = amount->kind == STOKER_COLUMN_FLOAT && amount->dtype == STOKER_DTYPE_F64 && amount->ndim == 1 &&
                 label->kind == STOKER_COLUMN_INT && label->dtype == STOKER_DTYPE_I64 && label->shape[0] == batch->count &&
                 box->ndim == 3 && box->shape[0] == batch->count && box->shape[1] == 2 && box->shape[2] == 3 &&
                 !box->offsets && box->dtype == STOKER_DTYPE_F32;
    for (uint32_t k = 0; k < batch->count; k++) {
        const uint64_t sample = batch->samples[k];
        right = right && ((const double *)amount->data)[k] == (double)sample / 3 &&
                ((const int64_t *)label->data)[k] == (int64_t)sample * 7 - 3 &&
                ((const int64_t *)batch->labels.data)[k] == (int64_t)sample * 7 - 3 &&
                ((const float *)box->data)[k * 6 + 5] == (float)sample + 5.0f / 8;
    }
    return right;
}

static bool arrays_right(const struct stoker_batch *batch)
{
    const struct stoker_column *steps = column(batch, STEPS), *grid = column(batch, GRID);
    bool right = steps->offsets && steps->shapes && steps->dtype == STOKER_DTYPE_I16 && grid->ndim == 3 && !grid->offsets &&
                 grid->shape[1] == 2 && grid->dtype == STOKER_DTYPE_F64;
    for (uint32_t k = 0; right && k < batch->count; k++) {
        const uint64_t sample = batch->samples[k], size = 1 + sample % 4;
        const int16_t *first = (const int16_t *)steps->data + steps->offsets[k];
        right = steps->offsets[k + 1] - steps->offsets[k] == size && steps->shapes[k][0] == (int64_t)size &&
                steps->shapes[k][1] == -1 && first[size - 1] == (int16_t)(sample * 10 + size - 1) &&
                ((const double *)grid->data)[4 * k + 3] == (double)sample / 4;
    }
    return right;
}

static bool blobs_right(const struct stoker_batch *batch)
{
    static const uint32_t blobs[] = {TITLE, META, BLOB, SOUND};
    static const enum stoker_column_kind kinds[] = {STOKER_COLUMN_TEXT, STOKER_COLUMN_JSON, STOKER_COLUMN_BYTES,
                                                    STOKER_COLUMN_AUDIO};
    bool right = true;
    for (uint32_t b = 0; b < 4; b++) {
        const struct stoker_column *c = column(batch, blobs[b]);
        right = right && c->kind == kinds[b] && c->offsets && c->dtype == STOKER_DTYPE_U8;
        for (uint32_t k = 0; right && k < batch->count; k++) {
            char text[64];
            const struct st_bytes want =
                blobs[b] == META ? json_of(batch->samples[k], text) : text_of(batch->samples[k], text);
            right = c->offsets[k + 1] - c->offsets[k] == want.size &&
                    !memcmp((const uint8_t *)c->data + c->offsets[k], want.data, want.size);
        }
    }
    return right;
}

/* ---- further images ------------------------------------------------------------------------------ */

/* Whether the second image of each sample lies in its column as `plain`, a batch of images alone, has it. */
static bool pictures_right(const struct stoker_batch *batch, const struct stoker_batch *plain)
{
    const struct stoker_column *thumb = column(batch, THUMB);
    bool right = thumb->kind == STOKER_COLUMN_ARRAY && thumb->dtype == STOKER_DTYPE_U8 && plain->ragged && thumb->offsets &&
                 thumb->shapes;
    for (uint32_t k = 0; right && k < batch->count; k++) {
        const struct stoker_tensor *want = &plain->items[k];
        const int64_t *shape = thumb->shapes[k], size = shape[0] * shape[1] * shape[2];
        right = shape[0] == want->shape[1] && shape[1] == want->shape[2] && shape[2] == 3 && shape[3] == -1 &&
                thumb->offsets[k + 1] - thumb->offsets[k] == (uint64_t)size &&
                !memcmp((const uint8_t *)thumb->data + thumb->offsets[k], want->data, (size_t)size);
    }
    return right;
}

static void pictures(void)
{
    static const uint32_t which[] = {IMAGE, LABEL, THUMB};
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    struct stoker_error err = {0};
    const struct stoker_batch *batch, *other;
    bool right = true;
    uint32_t batches = 0;
    take_fields(which, 3);
    opt.layout = STOKER_LAYOUT_NHWC;
    struct stoker_loader *loader = open_made("center_crop(size=8); to_tensor", &opt, &err);
    struct stoker_loader *plain = harness_open(items, COUNT, "", &opt);
    st_loader_start(plain, NULL, 0, NULL);
    for (; right && st_loader_next(loader, &batch, &err) == 0; batches++) {
        right = st_loader_next(plain, &other, NULL) == 0 && pictures_right(batch, other) && batch->images.shape[3] == 8;
        st_batch_release(other, NULL);
        st_batch_release(batch, NULL);
    }
    ok(right && batches == BATCHES, "a second image comes as its pixels, untouched by the pipeline (%s)", err.message);
    st_loader_close(loader);
    st_loader_close(plain);

    opt.batch_size = 1;
    loader = open_made("center_crop(size=8)", &opt, &err);
    ok(st_loader_next(loader, &batch, &err) == 0 && column(batch, THUMB)->ndim == 4 && !column(batch, THUMB)->offsets &&
           column(batch, THUMB)->shape[0] == 1 && column(batch, THUMB)->shape[3] == 3,
       "images of one size are stacked");
    st_batch_release(batch, NULL);
    st_loader_close(loader);
}

static void bad_pictures(void)
{
    static const uint32_t which[] = {IMAGE, LABEL, THUMB};
    struct stoker_loader_options opt = harness_options(1, 0);
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    take_fields(which, 3);
    made.field[2].name = "mask"; /* whose bytes are a text */
    struct stoker_loader *loader = open_made("center_crop(size=8)", &opt, &err);
    ok(st_loader_next(loader, &batch, &err) == STOKER_ECORRUPT && strstr(err.message, "field mask"), "%s", err.message);
    st_loader_close(loader);
    opt.on_error = STOKER_ON_ERROR_REPLACE;
    loader = open_made("center_crop(size=8)", &opt, &err);
    const bool came = st_loader_next(loader, &batch, &err) == 0;
    ok(came && ((const int64_t *)batch->labels.data)[0] == -100 && batch->columns[1]->shapes[0][0] == 0,
       "a second image that is none makes the sample a bad one");
    st_batch_release(came ? batch : NULL, NULL);
    st_loader_close(loader);
}

/* ---- all of them --------------------------------------------------------------------------------- */

static void columns(void)
{
    static const uint32_t which[] = {AMOUNT, IMAGE, LABEL, BOX, STEPS, GRID, TITLE, META, BLOB, SOUND, THUMB};
    struct stoker_error err = {0};
    take_fields(which, FIELDS);
    for (int32_t workers = 0; workers < 4; workers += 3) {
        const struct stoker_loader_options opt = harness_options(BATCH, workers);
        struct stoker_loader *plain = harness_open(items, COUNT, train_text, &opt);
        struct stoker_loader *loader = open_made(train_text, &opt, &err);
        const struct stoker_batch *batch, *other, *kept = NULL;
        bool right = loader != NULL, images = right;
        uint32_t batches = 0;
        st_loader_start(plain, NULL, 0, NULL);
        for (; right && st_loader_next(loader, &batch, &err) == 0; batches++) {
            right = batch->column_count == FIELDS - 1 && numbers_right(batch) && arrays_right(batch) && blobs_right(batch);
            images = images && st_loader_next(plain, &other, NULL) == 0 &&
                     !memcmp(batch->images.data, other->images.data, tensor_bytes(&batch->images));
            st_batch_release(other, NULL);
            st_batch_release(kept, NULL);
            kept = batch;
        }
        ok(right && batches == BATCHES, "%d workers: every field of every sample is in its column", workers);
        ok(images, "and the images are those of a dataset without fields");
        st_loader_close(loader);
        st_loader_close(plain);
        ok(kept && numbers_right(kept) && blobs_right(kept), "a batch outlives its loader, names and all");
        st_batch_release(kept, NULL);
    }
}

static void bad(void)
{
    static const uint32_t which[] = {IMAGE, LABEL, BOX, STEPS, GRID, TITLE};
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    take_fields(which, 6);
    made.bad = true;
    opt.on_error = STOKER_ON_ERROR_REPLACE;
    struct stoker_loader *loader = open_made("center_crop(size=8)", &opt, &err);
    bool right = false;
    while (st_loader_next(loader, &batch, &err) == 0) {
        for (uint32_t k = 0; k < batch->count; k++)
            if (batch->samples[k] == BAD) {
                const struct stoker_column *text = column(batch, TITLE), *grid = column(batch, GRID);
                right = ((const int64_t *)batch->labels.data)[k] == -100 &&
                        ((const int64_t *)column(batch, LABEL)->data)[k] == -100 &&
                        ((const float *)column(batch, BOX)->data)[6 * k] == 0 && text->offsets[k] == text->offsets[k + 1] &&
                        column(batch, STEPS)->shapes[k][0] == 0 && grid->ndim == 3 &&
                        ((const double *)grid->data)[4 * k] == 0;
            }
        st_batch_release(batch, NULL);
    }
    ok(right, "a replaced sample is blank in every column");
    struct stoker_bad_sample entry;
    ok(st_loader_bad(loader, 0, &entry) && entry.sample == BAD && strstr(entry.reason, "box"), "%s", entry.reason);
    st_loader_close(loader);
    opt.on_error = STOKER_ON_ERROR_SKIP;
    loader = open_made("center_crop(size=8)", &opt, &err);
    right = true;
    while (st_loader_next(loader, &batch, &err) == 0) {
        for (uint32_t k = 0; k < batch->count; k++)
            right = right && batch->samples[k] != BAD &&
                    ((const int64_t *)batch->labels.data)[k] == (int64_t)batch->samples[k] * 7 - 3;
        st_batch_release(batch, NULL);
    }
    ok(right, "a substitute brings its own fields");
    st_loader_close(loader);
    made.bad = false;
}

/* An array of another type than that of the dataset's first good sample is a bad sample, whoever comes first. */
static void odd_types(enum stoker_on_error policy, int32_t workers, uint64_t unreadable)
{
    static const uint32_t which[] = {IMAGE, LABEL, GRID};
    struct stoker_loader_options opt = harness_options(BATCH, workers);
    struct stoker_error err = {0};
    struct stoker_bad_sample entry = {0};
    const struct stoker_batch *batch;
    uint32_t good = 0, failed = 0, odd = 0, wrong = 0;
    int rc;
    opt.on_error = policy;
    take_fields(which, 3);
    made.odd = true;
    made.unreadable = unreadable;
    struct stoker_loader *loader = open_made("center_crop(size=8)", &opt, &err);
    while (loader && (rc = st_loader_next(loader, &batch, &err)) != STOKER_END && failed <= BATCHES) {
        if (rc) {
            failed++;
            continue;
        }
        const struct stoker_column *grid = column(batch, GRID);
        good++;
        wrong += grid->dtype != STOKER_DTYPE_F64;
        for (uint32_t k = 0; k < batch->count; k++)
            odd += batch->samples[k] == BAD && ((const int64_t *)batch->labels.data)[k] != -100;
        st_batch_release(batch, NULL);
    }
    uint32_t listed = 0, others = 0;
    for (uint32_t k = 0; loader && st_loader_bad(loader, k, &entry); k++) {
        listed += entry.sample == BAD && strstr(entry.reason, "an array of i64") != NULL;
        others += entry.sample != BAD && entry.sample >= unreadable;
    }
    ok(loader && !odd && !wrong && listed == 1 && !others && good + failed == BATCHES &&
           (policy == STOKER_ON_ERROR_RAISE ? failed >= 1 && rc == STOKER_END : failed == 0),
       "policy %d, %d workers: one array of another type is one bad sample (%u batches fail)", (int)policy, workers,
       failed);
    st_loader_close(loader);
    made.odd = false;
    made.unreadable = 0;
}

static void types(void)
{
    for (int policy = STOKER_ON_ERROR_RAISE; policy <= STOKER_ON_ERROR_REPLACE; policy++)
        for (int32_t workers = 0; workers <= 4; workers += 4)
            odd_types((enum stoker_on_error)policy, workers, 0);
    odd_types(STOKER_ON_ERROR_SKIP, 3, 2);

    static const uint32_t which[] = {IMAGE, GRID};
    struct stoker_loader_options opt = harness_options(1, 0);
    struct stoker_error err = {0};
    uint64_t digests[COUNT + 1];
    take_fields(which, 2);
    made.odd = true;
    struct stoker_loader *loader = open_made("center_crop(size=8)", &opt, &err);
    ok(harness_take(loader, digests, COUNT + 1, NULL) == COUNT, "a sample alone in its batch agrees with itself");
    st_loader_close(loader);
    made.odd = false;
}

static void pixels(void)
{
    static const uint32_t which[] = {IMAGE, LABEL};
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    opt.layout = STOKER_LAYOUT_NHWC;
    take_fields(which, 2);
    for (made.channels = 1; made.channels <= 4; made.channels++) {
        struct stoker_loader *loader = open_made("center_crop(size=10)", &opt, &err);
        bool right = loader != NULL;
        while (loader && st_loader_next(loader, &batch, &err) == 0) {
            for (uint32_t k = 0; k < batch->count; k++) {
                const uint64_t sample = batch->samples[k], height = 12 + sample % 3;
                const uint64_t top = height == 12 ? 1 : 2, c = (uint64_t)made.channels;
                const uint8_t *row = (const uint8_t *)batch->images.data + k * 300;
                for (uint64_t x = 0; x < 10; x++)
                    for (uint64_t i = 0; i < 3; i++)
                        right = right && row[3 * x + i] == (uint8_t)((((top * 10) + x) * c + (c > 2 ? i : 0)) * 7 + sample);
            }
            st_batch_release(batch, NULL);
        }
        ok(right, "pixels of %d channels are images", made.channels);
        st_loader_close(loader);
    }
    made.channels = 5;
    struct stoker_loader *loader = open_made("center_crop(size=10)", &opt, &err);
    ok(st_loader_next(loader, &batch, &err) == STOKER_ECORRUPT && strstr(err.message, "5 channels"), "%s", err.message);
    st_loader_close(loader);
    made.channels = 0;
}

static void imageless(void)
{
    static const uint32_t which[] = {TITLE, LABEL, STEPS, META};
    const struct stoker_loader_options opt = harness_options(BATCH, 2);
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    take_fields(which, 4);
    struct stoker_loader *loader = open_made("", &opt, &err);
    uint32_t samples = 0;
    bool right = loader != NULL;
    while (loader && st_loader_next(loader, &batch, &err) == 0) {
        right = right && batch->images.ndim == 0 && !batch->ragged && batch->column_count == 4;
        samples += batch->count;
        st_batch_release(batch, NULL);
    }
    ok(right && samples == COUNT, "samples without an image are columns alone");
    st_loader_close(loader);
    ok(!open_made("center_crop(size=10)", &opt, &err), "which nothing can be cropped from (%s)", err.message);
}

int main(void)
{
    items = test_items(COUNT);
    columns();
    pictures();
    bad_pictures();
    bad();
    types();
    pixels();
    imageless();
    test_items_free(items, COUNT);
    return done_testing();
}
