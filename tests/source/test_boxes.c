/* Images with boxes: the fields of samples, what belongs to which image, and what is refused. */
#include "source/annotated/annotated.h"
#include "source/source.h"
#include "tap.h"
#include "tree.h"

#include <sys/stat.h>

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file))
        abort();
}

static bool is_array(const struct st_piece *piece, enum stoker_dtype dtype, int32_t ndim, int64_t rows)
{
    const uint64_t each = (dtype == STOKER_DTYPE_I64 ? 8 : 4) * (ndim == 2 ? 4 : 1);
    return piece->dtype == dtype && piece->ndim == ndim && piece->shape[0] == rows &&
           piece->bytes.size == each * (uint64_t)rows && (ndim == 1 || piece->shape[1] == 4);
}

static bool has_floats(const struct st_piece *piece, const float *want, size_t count)
{
    return piece->bytes.size == count * sizeof *want &&
           !memcmp(piece->bytes.data, want, count * sizeof *want);
}

static bool has_numbers(const struct st_piece *piece, const int64_t *want, size_t count)
{
    return piece->bytes.size == count * sizeof *want &&
           !memcmp(piece->bytes.data, want, count * sizeof *want);
}

static bool split(struct stoker_dataset *data, uint64_t sample, struct st_piece *pieces)
{
    const struct st_bytes raw = {(const uint8_t *)"image", 5};
    struct st_buffer scratch = {0};
    struct stoker_error err;
    const int rc = data->source->split(data->self, sample, raw, &scratch, pieces, &err);
    const bool unused = !scratch.data;
    st_buffer_free(&scratch);
    return !rc && unused && pieces[0].bytes.data == raw.data;
}

static const char about[] =
    "{\"annotations\": [\n"
    "{\"id\": 1, \"image_id\": 9, \"category_id\": 7, \"bbox\": [0.1, 2, 0.2, 4], \"area\": 3.5},\n"
    "{\"id\": 2, \"image_id\": 3, \"category_id\": 2, \"bbox\": [1, 1, 1, 1], \"iscrowd\": 1},\n"
    "{\"id\": 3, \"image_id\": 9, \"category_id\": 2, \"bbox\": [5, 6, 7, 8], \"area\": 1}],\n"
    "\"images\": [{\"id\": 9, \"file_name\": \"b.jpg\"}, {\"id\": 5, \"file_name\": \"c.jpg\"},\n"
    "{\"id\": 3, \"file_name\": \"a.jpg\"}],\n"
    "\"categories\": [{\"id\": 7, \"name\": \"cat\"}, {\"id\": 2, \"name\": \"dog\"}]}\n";

static void of_coco(bool contiguous)
{
    const struct stoker_pairs how = {.layout = STOKER_PAIRS_COCO,
                                     .contiguous = contiguous,
                                     .images = at("images"),
                                     .targets = at("file.json")};
    struct stoker_dataset *data = NULL;
    struct stoker_error err = {0};
    struct st_piece pieces[6];
    char name[512];
    uint32_t fields;
    const int rc = st_dataset_from_pairs(&data, &how, NULL, &err);
    ok(!rc && st_dataset_count(data) == 3, "three images: %s", err.message);
    data->source->fields(data->self, &fields);
    ok(fields == 6 && st_dataset_label(data, 2) == 9, "six fields, and the id is the label");
    const size_t size = st_dataset_name(data, 2, name, sizeof name);
    ok(size > 5 && !strcmp(name + size - 5, "b.jpg"), "images are in the order of their ids");
    const float boxes[] = {0.1f, 2, 0.1f + 0.2f, 6, 5, 6, 12, 14};
    const int64_t labels[] = {contiguous ? 1 : 7, contiguous ? 0 : 2};
    ok(split(data, 2, pieces) && is_array(&pieces[1], STOKER_DTYPE_F32, 2, 2) &&
           is_array(&pieces[2], STOKER_DTYPE_I64, 1, 2) &&
           is_array(&pieces[3], STOKER_DTYPE_F32, 1, 2) &&
           is_array(&pieces[4], STOKER_DTYPE_I64, 1, 2) && pieces[5].whole == 9,
       "two objects");
    ok(has_floats(&pieces[1], boxes, 8) && has_numbers(&pieces[2], labels, 2) &&
           has_floats(&pieces[3], (const float[]){3.5f, 1}, 2) &&
           has_numbers(&pieces[4], (const int64_t[]){0, 0}, 2),
       "are what the file says");
    ok(split(data, 1, pieces) && is_array(&pieces[1], STOKER_DTYPE_F32, 2, 0) &&
           is_array(&pieces[2], STOKER_DTYPE_I64, 1, 0) && pieces[5].whole == 5,
       "an image without objects has arrays without rows");
    ok(split(data, 0, pieces) && has_numbers(&pieces[4], (const int64_t[]){1}, 1), "a crowd");
    ok(st_dataset_class_count(data) == 2 && !strcmp(st_dataset_class_name(data, 0), "dog") &&
           st_dataset_class_label(data, 1) == (contiguous ? 1 : 7),
       "classes and their labels");
    struct stoker_dataset *subset = NULL;
    const int made = st_dataset_subset(&subset, data, (const uint64_t[]){2, 0}, 2, &err);
    st_dataset_drop(data);
    ok(!made && split(subset, 0, pieces) && has_floats(&pieces[1], boxes, 8) &&
           st_dataset_class_label(subset, 0) == (contiguous ? 0 : 2),
       "a subset outlives the dataset");
    st_dataset_drop(subset);
}

/* Which field is the last, and whether its shapes are those of the sample's image. */
static bool ends_with(const char *name, enum stoker_shapes masks, bool keypoints)
{
    const struct stoker_pairs how = {.layout = STOKER_PAIRS_COCO,
                                     .masks = masks,
                                     .keypoints = keypoints,
                                     .images = at("images"),
                                     .targets = at("drawn.json")};
    struct stoker_dataset *data = NULL;
    struct stoker_error err = {0};
    struct st_piece pieces[8];
    uint32_t fields = 0;
    const int rc = st_dataset_from_pairs(&data, &how, NULL, &err);
    if (rc)
        return note("%s", err.message), false;
    const struct st_field *field = data->source->fields(data->self, &fields);
    bool good = fields == 7u + keypoints && field[fields - 1].drawn && split(data, 1, pieces) &&
                !strcmp(field[fields - 1].name, name);
    const struct st_annotated *table = good ? pieces[fields - 1].table : NULL;
    good = table && pieces[fields - 1].whole == 1 && table->images[1].count == 2 &&
           st_annotated_object(table, 1, 1)->id == 8 && st_dataset_class_count(data) == 1;
    st_dataset_drop(data);
    return good;
}

static void with_masks(void)
{
    put(at("drawn.json"),
        "{\"images\": [{\"id\": 2, \"file_name\": \"b.jpg\"}, {\"id\": 1, \"file_name\": \"a.jpg\"}],\n"
        "\"categories\": [{\"id\": 255, \"name\": \"x\"}], \"annotations\": [\n"
        "{\"id\": 9, \"image_id\": 2, \"category_id\": 255, \"bbox\": [1, 2, 3, 4], \"segmentation\": []},\n"
        "{\"id\": 8, \"image_id\": 2, \"category_id\": 255, \"bbox\": [1, 2, 3, 4], \"keypoints\": [1, 2, 2],\n"
        "\"segmentation\": [[1, 2, 3, 4, 5, 6]]}]}");
    ok(ends_with("masks", STOKER_SHAPES_OBJECTS, false), "masks of objects");
    ok(ends_with("mask", STOKER_SHAPES_CLASSES, false), "a mask of classes");
    ok(ends_with("masks", STOKER_SHAPES_OBJECTS, true), "masks come behind key points");
}

static void of_voc(void)
{
    const struct stoker_pairs how = {
        .layout = STOKER_PAIRS_VOC_BOXES, .images = at("voc"), .set = "train"};
    struct stoker_dataset *data = NULL;
    struct stoker_error err = {0};
    struct st_piece pieces[4];
    uint32_t fields;
    const int rc = st_dataset_from_pairs(&data, &how, NULL, &err);
    ok(!rc && st_dataset_count(data) == 2, "two images of VOC: %s", err.message);
    data->source->fields(data->self, &fields);
    ok(fields == 4 && split(data, 0, pieces) && is_array(&pieces[1], STOKER_DTYPE_F32, 2, 0),
       "the first has no objects");
    ok(split(data, 1, pieces) && has_floats(&pieces[1], (const float[]){8, 7, 6, 5}, 4) &&
           has_numbers(&pieces[2], (const int64_t[]){15}, 1) &&
           has_numbers(&pieces[3], (const int64_t[]){1}, 1),
       "the second has one, as written");
    ok(st_dataset_class_count(data) == 21 && st_dataset_class_label(data, 15) == 15, "21 classes");
    st_dataset_drop(data);
}

static void of_yolo(void)
{
    struct stoker_pairs how = {
        .layout = STOKER_PAIRS_YOLO, .images = at("yolo/images"), .names = "cat\ndog"};
    struct stoker_dataset *data = NULL;
    struct stoker_error err = {0};
    struct st_piece pieces[3];
    uint32_t fields;
    const int rc = st_dataset_from_pairs(&data, &how, NULL, &err);
    ok(!rc && st_dataset_count(data) == 2, "two images of YOLO: %s", err.message);
    data->source->fields(data->self, &fields);
    ok(fields == 3 && split(data, 0, pieces) && is_array(&pieces[1], STOKER_DTYPE_F32, 2, 0),
       "the first has no file");
    ok(split(data, 1, pieces) && has_floats(&pieces[1], (const float[]){0.5f, 0.25f, 1, 0.5f}, 4) &&
           has_numbers(&pieces[2], (const int64_t[]){1}, 1),
       "the second has an object, as written");
    ok(st_dataset_class_count(data) == 2 && st_dataset_class_label(data, 1) == 1, "two classes");
    st_dataset_drop(data);
    data = NULL;
    how.names = "cat";
    const int few = st_dataset_from_pairs(&data, &how, NULL, &err);
    ok(few < 0 && !data && strstr(err.message, "2.txt, line 1: the class is 1"), "%s", err.message);
    how.images = at("yolo/list.txt");
    how.names = NULL;
    put(at("yolo/list.txt"), "./images/2.jpg\n");
    const int listed = st_dataset_from_pairs(&data, &how, NULL, &err);
    ok(!listed && st_dataset_count(data) == 1, "a list: %s", err.message);
    st_dataset_drop(data);
}

static void refused(const char *json, const char *words)
{
    const struct stoker_pairs how = {
        .layout = STOKER_PAIRS_COCO, .images = at("images"), .targets = at("bad.json")};
    struct stoker_dataset *data = NULL;
    struct stoker_error err = {0};
    put(at("bad.json"), json);
    const int rc = st_dataset_from_pairs(&data, &how, NULL, &err);
    ok(rc < 0 && !data && strstr(err.message, words), "refused: %s", err.message);
}

int main(void)
{
    tree_make();
    mkdir(at("images"), 0777);
    const char *const folders[] = {"voc", "voc/JPEGImages", "voc/Annotations", "voc/ImageSets",
                                   "voc/ImageSets/Main"};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
        mkdir(at("%s", folders[k]), 0777);
    for (const char *name = "abc"; *name; name++)
        put(at("images/%c.jpg", *name), "image");
    put(at("file.json"), about);
    put(at("voc/JPEGImages/1.jpg"), "image");
    put(at("voc/JPEGImages/2.jpg"), "image");
    put(at("voc/ImageSets/Main/train.txt"), "1\n2\n");
    put(at("voc/Annotations/1.xml"), "<annotation></annotation>");
    put(at("voc/Annotations/2.xml"),
        "<annotation><object><name>person</name><difficult>1</difficult><bndbox><xmin>8</xmin>"
        "<ymin>7</ymin><xmax>6</xmax><ymax>5</ymax></bndbox></object></annotation>");
    of_coco(false);
    of_coco(true);
    with_masks();
    of_voc();
    const char *const yolo[] = {"yolo", "yolo/images", "yolo/labels"};
    for (size_t k = 0; k < sizeof yolo / sizeof *yolo; k++)
        mkdir(at("%s", yolo[k]), 0777);
    put(at("yolo/images/1.jpg"), "image");
    put(at("yolo/images/2.jpg"), "image");
    put(at("yolo/labels/2.txt"), "1 0.5 0.25 1 0.5\n");
    of_yolo();
#define IMAGES "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\"}], \"annotations\": [{\"id\": 4, "
    refused(IMAGES "\"image_id\": 1, \"category_id\": 1}]}", "a.jpg: annotation 4 has no box");
    refused(IMAGES "\"image_id\": 1, \"bbox\": [1, 2, 3, 4]}]}", "a.jpg: annotation 4 has no category");
    refused(IMAGES "\"image_id\": 1, \"category_id\": 1, \"bbox\": [3e38, 2, 3e38, 4]}]}",
            "too large for float32");
    refused("{\"images\": [{\"id\": 1, \"file_name\": \"x.jpg\"}]}", "x.jpg");
    tree_remove();
    return done_testing();
}
