/* Datasets as a user of the header meets them: kinds, fields, names, classes, notes. The argument is
 * the folder of the files that other libraries wrote. */
#include "images.h"
#include "../source/tar_file.h"
#include "../source/tree.h"
#include "st_config.h"
#include "tap.h"

static const char *data_folder;

static struct stoker_dataset *open_data(const char *uri, const char *fields)
{
    struct stoker_dataset_options opt = stoker_dataset_defaults();
    struct stoker_dataset *data = NULL;
    struct stoker_error err;
    opt.fields = fields;
    opt.index_dir = tree_root;
    const int rc = stoker_dataset_open(&data, uri, &opt, &err);
    ok(rc == 0 && data, "%s opens (%s)", uri, rc ? err.message : "");
    return data;
}

/* Whether the fields are these: "jpg image, cls int". */
static bool has_fields(const struct stoker_dataset *data, const char *expected)
{
    char text[512] = "";
    struct stoker_field field = {.size = sizeof field};
    uint32_t count = 0;
    while (stoker_dataset_field_at(data, count, &field)) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s %s", count++ ? ", " : "", field.name,
                 field.type);
    }
    if (strcmp(text, expected))
        note("fields: %s", text);
    return !strcmp(text, expected) && !stoker_dataset_field_at(data, count + 1, &field) &&
           !stoker_dataset_field_at(data, UINT32_MAX, &field);
}

static bool is_kind(const struct stoker_dataset *data, const char *kind)
{
    const char *own = stoker_dataset_kind(data);
    return kind ? own && !strcmp(own, kind) : !own;
}

/* ---- opened by a path ---------------------------------------------------------------------------- */

static void write_image(const char *path, const struct stoker_item *image)
{
    tree_file(path, 0, 0);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(image->data, 1, image->size, file) != image->size || fclose(file))
        abort();
}

static void folders(const struct stoker_item *items)
{
    char name[512], shorter[8];
    write_image(at("tree/cat/0.jpg"), &items[0]);
    write_image(at("tree/cat/1.jpg"), &items[1]);
    write_image(at("tree/dog/0.jpg"), &items[2]);
    struct stoker_dataset *data = open_data(at("tree"), NULL);
    if (!data)
        return;
    ok(is_kind(data, "folder") && has_fields(data, "image image, label int"),
       "a folder of classes says so");
    ok(stoker_dataset_count(data) == 3 && stoker_dataset_label(data, 0) == 0 &&
           stoker_dataset_label(data, 2) == 1,
       "its samples are counted, with the labels of their folders");
    ok(stoker_dataset_class_count(data) == 2 && !strcmp(stoker_dataset_class_name(data, 1), "dog") &&
           !stoker_dataset_class_name(data, 2) && stoker_dataset_class_label(data, 1) == 1 &&
           stoker_dataset_class_label(data, 2) == -1,
       "the classes have names, and the list ends");
    const size_t length = stoker_dataset_name(data, 2, name, sizeof name);
    ok(length == strlen(name) && !strcmp(name, at("tree/dog/0.jpg")),
       "a sample is called by its path (%s)", name);
    ok(stoker_dataset_name(data, 2, shorter, sizeof shorter) == length && !strncmp(shorter, name, 7) &&
           shorter[7] == '\0' && stoker_dataset_name(data, 2, NULL, 0) == length,
       "what is too long for the buffer is cut, and its length told");
    ok(!stoker_dataset_note(data), "there is nothing to remark");
    stoker_dataset_close(data);
}

static void flat_folder(void)
{
    char uri[300];
    snprintf(uri, sizeof uri, "flat:%s", at("tree"));
    struct stoker_dataset *data = open_data(uri, NULL);
    if (!data)
        return;
    ok(is_kind(data, "flat") && stoker_dataset_count(data) == 3 &&
           stoker_dataset_class_count(data) == 0 && !stoker_dataset_class_name(data, 0) &&
           stoker_dataset_label(data, 2) == 0,
       "a flat one has no classes");
    stoker_dataset_close(data);
}

static void archives(void)
{
    tar_samples(at("x.tar"), 4, 10);
    struct stoker_dataset *data = open_data(at("x.tar"), "__key__,cls,bin");
    if (data) {
        char name[300];
        ok(is_kind(data, "tar") && has_fields(data, "__key__ text, cls int, bin bytes"),
           "a tar file is known by its name, and has the fields that were asked for, in their order");
        stoker_dataset_name(data, 3, name, sizeof name);
        ok(stoker_dataset_count(data) == 4 && strstr(name, "x.tar") && strstr(name, "00003"),
           "its samples are named by file and key (%s)", name);
        stoker_dataset_close(data);
    }
    struct stoker_dataset_options opt = stoker_dataset_defaults();
    struct stoker_error err;
    opt.fields = "bin,pyd";
    opt.index_dir = tree_root;
    data = (void *)&err;
    ok(stoker_dataset_open(&data, at("x.tar"), &opt, &err) < 0 && !data && strstr(err.message, "pyd"),
       "a field that cannot be read is refused (%s)", err.message);
}

static void tables(void)
{
    static const struct {
        const char *file, *fields, *kind, *expected, *note;
    } cases[] = {
        {"npy/rgb.npy", NULL, "npy", "row image"},
        {"npz/stored.npz", NULL, "npz", NULL},
        {"zip/stored.zip", "name,label,image", "zip", "name text, label int, image image"},
        {"manifest/usual.csv", NULL, "csv", NULL},
        {"lmdb/images", "key,image", "lmdb", "key text, image image", "keys that are not samples"},
        {"tfrecord/examples.tfrecord", "score=float,box=float[2x2],image/class/text=text", "tfrecord",
         "score float, box array, image/class/text text"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", data_folder, cases[k].file);
        struct stoker_dataset *data = open_data(path, cases[k].fields);
        const char *note = data ? stoker_dataset_note(data) : NULL;
        if (data)
            ok(is_kind(data, cases[k].kind) && stoker_dataset_count(data) > 0 &&
                   (cases[k].note ? note && strstr(note, cases[k].note) : !note) &&
                   (!cases[k].expected || has_fields(data, cases[k].expected)),
               "and is %s with fields of the types it should have", cases[k].kind);
        stoker_dataset_close(data);
    }
}

/* What only the library can read is told by the dataset, by one made of it, and by the loader's
 * numbers. */
static void notes(void)
{
    if (!ST_HAVE_HDF5) {
        skip("fields that only the HDF5 library reads", "built without HDF5");
        return;
    }
    char path[1024];
    snprintf(path, sizeof path, "%s/hdf5/filters.h5", data_folder);
    struct stoker_dataset *data = open_data(path, "images,scaleoffset,labels"), *whole = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    struct stoker_error err = {0};
    if (!data)
        return;
    const char *said = stoker_dataset_note(data);
    ok(is_kind(data, "hdf5") && has_fields(data, "images image, scaleoffset array, labels int"),
       "an HDF5 file");
    ok(said && strstr(said, "scaleoffset") && !strstr(said, "labels"), "says what is slow in it (%s)",
       said ? said : "");
    ok(stoker_dataset_concat(&whole, &data, 1, &err) == 0 && stoker_dataset_note(whole) &&
           !strcmp(stoker_dataset_note(whole), said),
       "so does a dataset made of it");
    struct stoker_stats stats = {.size = sizeof stats};
    ok(stoker_pipeline_open(&pipe, "resize(size=[4,4])", &err) == 0 &&
           stoker_loader_open(&loader, whole, pipe, NULL, &err) == 0 &&
           stoker_loader_stats(loader, &stats) == 0 && stats.source_note &&
           !strcmp(stats.source_note, said),
       "and a loader's statistics (%s)", err.message);
    stoker_loader_close(loader);
    stoker_dataset_close(whole);
    stoker_dataset_close(data);

    data = open_data(path, "images,labels");
    stats = (struct stoker_stats){.size = sizeof stats};
    ok(data && !stoker_dataset_note(data) && stoker_loader_open(&loader, data, pipe, NULL, &err) == 0 &&
           stoker_loader_stats(loader, &stats) == 0 && !stats.source_note,
       "none of them says a word where such fields are left out");
    stoker_loader_close(loader);
    stoker_pipeline_close(pipe);
    stoker_dataset_close(data);
}

/* ---- without a path ------------------------------------------------------------------------------ */

static int read_nothing(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                        struct stoker_error *err)
{
    (void)cookie, (void)sample, (void)buffer, (void)capacity, (void)err;
    *size = 0;
    return STOKER_OK;
}

static void pathless(const struct stoker_item *items)
{
    struct stoker_dataset *memory = NULL, *files = NULL, *called = NULL, *part = NULL, *mixed = NULL;
    struct stoker_error err = {0};
    const char *const paths[] = {at("tree/cat/0.jpg"), at("tree/dog/0.jpg")};
    const struct stoker_callbacks callbacks = {
        .size = sizeof callbacks, .count = 5, .read = read_nothing};
    char name[300];
    ok(stoker_dataset_from_memory(&memory, items, 3, &err) == 0 &&
           stoker_dataset_from_files(&files, paths, (const int64_t[]){7, 8}, 2, &err) == 0 &&
           stoker_dataset_from_callbacks(&called, &callbacks, NULL, &err) == 0,
       "datasets of memory, files and callbacks (%s)", err.message);
    if (!memory || !files || !called)
        return;
    ok(is_kind(memory, NULL) && is_kind(files, NULL) && is_kind(called, NULL),
       "have no kind, for no path opened them");
    ok(has_fields(memory, "image image, label int") && has_fields(called, "image image, label int"),
       "their samples are an image and a label");
    ok(stoker_dataset_label(files, 1) == 8 && stoker_dataset_label(called, 4) == 0 &&
           stoker_dataset_count(called) == 5,
       "labels are those given, or 0");
    stoker_dataset_name(memory, 2, name, sizeof name);
    ok(!strcmp(name, "sample 2"), "what has no path has a number (%s)", name);

    struct stoker_dataset *const both[] = {memory, files};
    const double weights[] = {1, 1};
    ok(stoker_dataset_subset(&part, files, (const uint64_t[]){1, 1, 0}, 3, &err) == 0 &&
           stoker_dataset_mix(&mixed, both, weights, 2, 10, 1, &err) == 0,
       "a part and a mixture (%s)", err.message);
    stoker_dataset_close(memory);
    stoker_dataset_close(files);
    ok(part && is_kind(part, NULL) && stoker_dataset_count(part) == 3 &&
           stoker_dataset_label(part, 0) == 8 && stoker_dataset_label(part, 2) == 7,
       "a part keeps what it is made of, and has no kind of its own");
    stoker_dataset_name(part, 2, name, sizeof name);
    ok(!strcmp(name, paths[0]), "its samples keep their names");
    ok(mixed && stoker_dataset_count(mixed) == 10 && has_fields(mixed, "image image, label int"),
       "so does a mixture");
    ok(stoker_dataset_subset(&memory, part, (const uint64_t[]){3}, 1, &err) == STOKER_EINVAL && !memory,
       "a sample beyond the last is refused (%s)", err.message);
    stoker_dataset_close(part);
    stoker_dataset_close(mixed);
    stoker_dataset_close(called);
}

int main(int argc, char **argv)
{
    enum { COUNT = 3 };
    if (argc != 2)
        return 2;
    data_folder = argv[1];
    struct stoker_item *items = test_items(COUNT);
    tree_make();
    folders(items);
    flat_folder();
    archives();
    tables();
    notes();
    pathless(items);
    tree_remove();
    test_items_free(items, COUNT);
    return done_testing();
}
