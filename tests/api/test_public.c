/* The public interface as a user of the header meets it: defaults, sizes of structures, words for statuses. */
#include "images.h"
#include "tap.h"

enum { OPTIONAL_LIBRARIES = 6 };

static bool is_optional_library(const char *name)
{
    static const char *const known[OPTIONAL_LIBRARIES] = {"HDF5", "LMDB",       "libcurl",
                                                          "zstd", "libdeflate", "libsndfile"};
    for (int k = 0; k < OPTIONAL_LIBRARIES; k++)
        if (!strcmp(name, known[k]))
            return true;
    return false;
}

static void words(void)
{
    ok(!strcmp(stoker_status_name(STOKER_ECORRUPT), "ECORRUPT"), "statuses have names");
    ok(strlen(stoker_status_text(STOKER_ELIMIT)) > 10 && strlen(stoker_status_text(99)) > 10, "and meanings");
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", STOKER_VERSION_MAJOR, STOKER_VERSION_MINOR, STOKER_VERSION_PATCH);
    ok(!strcmp(version, stoker_version_string()) && stoker_version() == STOKER_VERSION,
       "header and library agree on the version (%s, %u)", version, stoker_version());
    ok(STOKER_VERSION == STOKER_VERSION_MAJOR * 10000 + STOKER_VERSION_MINOR * 100 + STOKER_VERSION_PATCH,
       "which is a number too");
    ok(!strcmp(stoker_status_name(STOKER_EINTERNAL), "EINTERNAL") && !strcmp(stoker_status_name(-99), "unknown"),
       "our own errors have a status");
    ok(stoker_cpu_count() >= 1, "there are CPUs");

    struct stoker_feature feature = {.size = sizeof feature};
    bool jpeg = false, kernels = false, told = true;
    uint32_t features = 0, libraries = 0;
    for (; stoker_feature_at(features, &feature); features++) {
        told = told && feature.name[0] && feature.detail && feature.detail[0];
        libraries += !strcmp(feature.kind, "library") && is_optional_library(feature.name);
        jpeg = jpeg || (!strcmp(feature.kind, "codec") && !strcmp(feature.name, "JPEG") && feature.present);
        kernels = kernels || !strcmp(feature.kind, "kernels");
    }
    ok(jpeg && kernels, "the features name codecs and kernels");
    ok(libraries == OPTIONAL_LIBRARIES, "and the libraries that a build may lack");
    ok(told, "each of the %u says what it does, or what is missing", features);
    feature.name = "untouched";
    ok(!stoker_feature_at(features + 1, &feature) && !stoker_feature_at(UINT32_MAX, &feature) &&
           !strcmp(feature.name, "untouched"),
       "the list ends");
    struct stoker_op op = {.size = sizeof op};
    uint32_t ops = 0;
    bool helped = true;
    while (stoker_op_at(ops, &op)) {
        helped = helped && op.name[0] && op.help && op.help[0];
        ops++;
    }
    ok(ops >= 17 && helped, "%u ops, each with a line of help", ops);
}

static void sizes(struct stoker_dataset *data, struct stoker_pipeline *pipe)
{
    struct stoker_error err;
    struct stoker_loader *loader = NULL;
    struct stoker_loader_options opt = stoker_loader_defaults();
    ok(opt.size == sizeof opt && opt.batch_size == 1 && opt.workers == -1 && opt.pillow == 13, "defaults are filled in");
    opt.size = 0;
    ok(stoker_loader_open(&loader, data, pipe, &opt, &err) == STOKER_EINVAL && !loader, "size 0 is refused (%s)",
       err.message);

    opt.size = offsetof(struct stoker_loader_options, jpeg_hardware); /* the last member of the first version */
    ok(stoker_loader_open(&loader, data, pipe, &opt, &err) == STOKER_EINVAL && !loader,
       "and so is a structure shorter than that of the first version");
    opt.size = sizeof opt;
    opt.jpeg_hardware = (enum stoker_jpeg_hardware)(STOKER_JPEG_HARDWARE_OFF + 1);
    const int rc = stoker_loader_open(&loader, data, pipe, &opt, &err);
    ok(rc == STOKER_EINVAL && !loader && strstr(err.message, "jpeg_hardware is 3; allowed are 0 to 2"),
       "a value of jpeg_hardware that does not exist (%s)", err.message);
    opt.jpeg_hardware = STOKER_JPEG_HARDWARE_KNOWN;
    opt.size = 1 << 20;
    ok(stoker_loader_open(&loader, data, pipe, &opt, &err) == STOKER_EINVAL && !loader, "and one of a megabyte");

    /* A program compiled against a later header knows more members. */
    struct {
        struct stoker_loader_options opt;
        uint64_t later[2];
    } more;
    memset(&more, 0xEE, sizeof more);
    stoker_loader_options_init(&more.opt, sizeof more);
    ok(more.opt.size == sizeof more && more.opt.workers == -1 && !more.later[0] && !more.later[1],
       "defaults fill the whole structure of a later version");
    more.later[1] = 1;
    ok(stoker_loader_open(&loader, data, pipe, &more.opt, &err) == STOKER_EUNSUPPORTED && !loader,
       "a member that this version does not know is refused (%s)", err.message);
    more.later[1] = 0;
    more.opt.batch_size = 3;
    ok(stoker_loader_open(&loader, data, pipe, &more.opt, &err) == 0, "unless it is 0");
    const struct stoker_batch *batch;
    ok(stoker_loader_start(loader, NULL, &err) == 0 && stoker_loader_next(loader, &batch, &err) == 0 && batch->count == 3,
       "and the members that it knows count");
    ok(batch->size == sizeof *batch && STOKER_HAS(batch, lengths), "a batch states its size");
    stoker_batch_release(batch);
    ok(stoker_loader_start(loader, &(struct stoker_epoch){.epoch = 3}, &err) == STOKER_EINVAL,
       "an epoch that does not state its size is refused (%s)", err.message);
    struct stoker_decode_path path = {.size = sizeof path};
    const bool counted = stoker_loader_decode_path_at(loader, 0, &path);
    ok(counted && !strcmp(path.codec, "JPEG") && path.files >= 3,
       "files are counted by codec and path (%s, %s)", path.codec, path.path);
    ok(!stoker_loader_decode_path_at(loader, 1000, &path), "and the list of paths ends");

    struct {
        struct stoker_stats stats;
        uint64_t later, behind;
    } room = {.stats = {.size = sizeof(struct stoker_stats)}, .later = 41, .behind = 42};
    ok(stoker_loader_stats(loader, &room.stats) == 0 && room.stats.samples == 3 && room.later == 41,
       "statistics write no more than the caller has room for");
    room.stats.size = offsetof(__typeof__(room), behind);
    ok(stoker_loader_stats(loader, &room.stats) == 0 && room.later == 0 && room.behind == 42,
       "and zeros to the members of a later version");
    room.stats.size = 0;
    ok(stoker_loader_stats(loader, &room.stats) == STOKER_EINVAL, "and need to be told how much that is");
    struct stoker_worker_stats worker = {.size = sizeof worker};
    ok(stoker_loader_worker_stats_at(loader, 0, &worker) && !stoker_loader_worker_stats_at(loader, 1000, &worker),
       "each worker has statistics");
    worker.size = 8;
    ok(!stoker_loader_worker_stats_at(loader, 0, &worker), "which need a size too");
    stoker_loader_close(loader);
}

static void nulls(struct stoker_dataset *data, struct stoker_pipeline *pipe)
{
    struct stoker_error err;
    struct stoker_loader *loader;
    ok(stoker_loader_open(&loader, NULL, pipe, NULL, &err) == STOKER_EINVAL, "no dataset (%s)", err.message);
    ok(stoker_loader_open(&loader, data, pipe, NULL, NULL) == 0, "no options and no error object are fine");
    stoker_loader_close(loader);
    stoker_loader_close(NULL);
    stoker_pipeline_close(NULL);
    stoker_dataset_close(NULL);
    stoker_batch_release(NULL);
    struct stoker_dataset *none = (void *)&err;
    ok(stoker_dataset_open(&none, "/no/such/folder", NULL, &err) == STOKER_ENOTFOUND && none == NULL,
       "a folder that does not exist (%s)", err.message);
    ok(stoker_dataset_open(&none, "gopher:x", NULL, &err) < 0 && none == NULL, "a scheme that does not exist (%s)",
       err.message);
}

static void devices(struct stoker_dataset *data, struct stoker_pipeline *pipe)
{
    static const char *const wrong[] = {"", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cudas", "tpu", "cuda:99999999999"};
    struct stoker_loader_options opt = stoker_loader_defaults();
    struct stoker_loader *loader;
    struct stoker_error err;
    const struct stoker_batch *batch;
    bool refused = true;
    for (uint32_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        opt.device = wrong[k];
        refused = refused && stoker_loader_open(&loader, data, pipe, &opt, &err) == STOKER_EINVAL && !loader &&
                  strstr(err.message, "device is");
    }
    ok(refused, "names that no device has are refused (%s)", err.message);
    opt.device = "cpu";
    opt.batch_size = 3;
    if (!ok(stoker_loader_open(&loader, data, pipe, &opt, &err) == 0, "the CPU has a name too"))
        return;
    stoker_loader_start(loader, NULL, &err);
    stoker_loader_next(loader, &batch, &err);
    ok(batch->device_type == 1 && batch->device_id == 0 && batch->column_count == 0 &&
           stoker_batch_join(batch, 0, &err) == 0 && stoker_batch_sync(batch, &err) == 0,
       "there, nothing has to be waited for");
    stoker_batch_mark(batch, 7);
    stoker_batch_release_on(batch, 0);
    stoker_batch_mark(NULL, 7);
    ok(stoker_loader_next(loader, &batch, &err) == 0, "and streams keep nothing back");
    stoker_batch_release(batch);
    stoker_loader_close(loader);
}

static void decode(const struct stoker_item *item)
{
    struct stoker_error err;
    struct stoker_image whole, part;
    struct stoker_image_options opt = stoker_image_defaults();
    if (!ok(stoker_image_decode(&whole, item->data, item->size, "x", NULL, &err) == 0, "one image is decoded"))
        return;
    opt.x = 5;
    opt.y = 7;
    opt.width = 11;
    opt.height = 13;
    bool same = stoker_image_decode(&part, item->data, item->size, "x", &opt, &err) == 0;
    for (uint32_t y = 0; same && y < 13; y++)
        same = !memcmp(part.pixels + y * 33, whole.pixels + ((y + 7) * whole.width + 5) * 3, 33);
    ok(same && part.width == 11 && part.height == 13, "a region is the crop of the whole");
    stoker_image_close(&part);
    opt.width = 100000;
    ok(stoker_image_decode(&part, item->data, item->size, "x", &opt, &err) == STOKER_EINVAL, "a region outside is refused (%s)",
       err.message);
    opt = stoker_image_defaults();
    opt.pixel_limit = 10;
    ok(stoker_image_decode(&part, item->data, item->size, "photo.jpg", &opt, &err) == STOKER_ELIMIT &&
           strstr(err.message, "photo.jpg"),
       "too many pixels are refused (%s)", err.message);
    ok(stoker_image_decode(&part, item->data, 0, "empty.jpg", NULL, &err) == STOKER_ECORRUPT, "no bytes (%s)", err.message);
    stoker_image_close(&whole);
}

int main(void)
{
    enum { COUNT = 6 };
    struct stoker_item *items = test_items(COUNT);
    struct stoker_dataset *data;
    struct stoker_pipeline *pipe;
    struct stoker_error err;
    ok(stoker_dataset_from_memory(&data, items, COUNT, &err) == 0 && stoker_dataset_count(data) == COUNT,
       "a dataset in memory");
    ok(stoker_pipeline_open(&pipe, "resize(size=[8,8]); to_tensor", &err) == 0, "a pipeline");
    words();
    sizes(data, pipe);
    nulls(data, pipe);
    devices(data, pipe);
    decode(&items[0]);
    stoker_pipeline_close(pipe);
    stoker_dataset_close(data);
    test_items_free(items, COUNT);
    return done_testing();
}
