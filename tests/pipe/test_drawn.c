/* Masks drawn from shapes: more and fewer objects than fit into a plane, what is removed, and what is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/harness.h"
#include "source/source.h"
#include "source/tree.h"

enum { WIDTH = 30, HEIGHT = 20, COUNT = 19 };

/* Image k has k objects: rectangles from (k, j) to (k + 8, j + 5), but the box of every third is one pixel wide. */
static void write_all(void)
{
    FILE *file = fopen(at("a.json"), "w");
    if (!file)
        abort();
    fprintf(file, "{\"categories\": [{\"id\": 3, \"name\": \"x\"}], \"images\": [");
    for (int k = 0; k < COUNT; k++)
        fprintf(file, "%s{\"id\": %d, \"file_name\": \"%d.ppm\"}", k ? ", " : "", k, k);
    fprintf(file, "], \"annotations\": [");
    for (int k = 0, n = 0; k < COUNT; k++)
        for (int j = 0; j < k; j++, n++)
            fprintf(file,
                    "%s{\"id\": %d, \"image_id\": %d, \"category_id\": 3, \"bbox\": [%d, %d, %d, 5], \"segmentation\": "
                    "[[%d, %d, %d, %d, %d, %d, %d, %d]]}\n",
                    n ? ", " : "", n, k, k, j, j % 3 ? 8 : 1, k, j, k + 8, j, k + 8, j + 5, k, j + 5);
    if (fprintf(file, "]}") < 0 || fclose(file))
        abort();
    mkdir(at("images"), 0777);
    for (int k = 0; k < COUNT; k++) {
        FILE *image = fopen(at("images/%d.ppm", k), "w");
        if (!image)
            abort();
        fprintf(image, "P6 %d %d 255\n", WIDTH, HEIGHT);
        for (int i = 0; i < 3 * WIDTH * HEIGHT; i++)
            fputc(i * 7 % 251, image);
        if (fclose(image))
            abort();
    }
}

static struct stoker_loader *open_coco(const char *json, const char *text, const char *boxes, const char *names,
                                       enum stoker_shapes kind, struct stoker_error *err)
{
    const struct stoker_pairs how = {
        .layout = STOKER_PAIRS_COCO, .masks = kind, .images = at("images"), .targets = at("%s", json)};
    struct stoker_loader_options opt = harness_options(1, 0);
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    opt.boxes = boxes;
    opt.masks = names;
    opt.order = STOKER_ORDER_SEQUENTIAL;
    int rc = st_dataset_from_pairs(&data, &how, NULL, err);
    if (!rc)
        rc = st_pipeline_open(&pipe, text, err);
    if (!rc)
        (void)st_loader_open(&loader, data, pipe, &opt, NULL, err);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    return loader;
}

static const struct stoker_column *column_of(const struct stoker_batch *batch, const char *name)
{
    for (uint32_t k = 0; k < batch->column_count; k++)
        if (!strcmp(batch->columns[k]->name, name))
            return batch->columns[k];
    return NULL;
}

/* Whether mask j of image k is its rectangle, mirrored or not; pycocotools leaves out the last column and row. */
static bool is_rectangle(const uint8_t *mask, int k, int j, bool mirrored)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            const int column = mirrored ? WIDTH - 1 - x : x;
            const bool inside = column >= k && column < k + 8 && y >= j && y < j + 5;
            if (mask[y * WIDTH + x] != inside)
                return false;
        }
    return true;
}

static void objects(const char *text, bool mirrored, bool sanitized)
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = open_coco("a.json", text, "boxes+labels+masks", NULL, STOKER_SHAPES_OBJECTS, &err);
    const struct stoker_batch *batch;
    int right = 0, images = 0, all = 0;
    ok(loader != NULL, "%s: %s", text, err.message);
    if (loader)
        st_loader_start(loader, NULL, 0, NULL);
    while (loader && !st_loader_next(loader, &batch, &err)) {
        const struct stoker_column *masks = column_of(batch, "masks");
        const int k = (int)batch->samples[0];
        int n = 0;
        for (int j = 0; j < k; j++) {
            if (sanitized && (j % 3 == 0 || j + 5 > HEIGHT)) /* too small, or not inside the image */
                continue;
            right += is_rectangle((const uint8_t *)masks->data + n * WIDTH * HEIGHT, k, j, mirrored);
            n++;
        }
        all += n;
        images += masks->dtype == STOKER_DTYPE_U8 && masks->ndim == 4 && masks->shape[1] == n &&
                  masks->shape[2] == HEIGHT && masks->shape[3] == WIDTH;
        st_batch_release(batch, NULL);
    }
    st_loader_close(loader);
    ok(images == COUNT, "%d of %d images have a mask for each object %s", images, COUNT, err.message);
    ok(right == all, "%d of %d masks are theirs", right, all);
}

static void classes(void)
{
    struct stoker_error err = {0};
    struct stoker_loader *loader =
        open_coco("a.json", "random_horizontal_flip(p=0)", "boxes+labels", "mask", STOKER_SHAPES_CLASSES, &err);
    const struct stoker_batch *batch;
    int right = 0;
    if (loader)
        st_loader_start(loader, NULL, 0, NULL);
    while (loader && !st_loader_next(loader, &batch, &err)) {
        const struct stoker_column *mask = column_of(batch, "mask");
        const int k = (int)batch->samples[0];
        int pixels = 0;
        for (int i = 0; i < WIDTH * HEIGHT; i++)
            pixels += ((const uint8_t *)mask->data)[i] == 3;
        const int wide = k + 8 < WIDTH ? 8 : WIDTH - k, high = k + 4 < HEIGHT ? k + 4 : HEIGHT;
        right += pixels == (k ? wide * high : 0);
        st_batch_release(batch, NULL);
    }
    st_loader_close(loader);
    ok(right == COUNT, "%d of %d masks of classes %s", right, COUNT, err.message);
}

static void refused(const char *boxes, const char *masks, enum stoker_shapes kind, const char *words)
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = open_coco("a.json", "", boxes, masks, kind, &err);
    ok(!loader && strstr(err.message, words), "%s", err.message);
    st_loader_close(loader);
}

static void cannot_be_drawn(const char *shape, const char *words)
{
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    FILE *file = fopen(at("bad.json"), "w");
    if (!file ||
        fprintf(file,
                "{\"images\": [{\"id\": 1, \"file_name\": \"1.ppm\"}], \"categories\": [{\"id\": 3, \"name\": \"x\"}],\n"
                "\"annotations\": [{\"id\": 8, \"image_id\": 1, \"category_id\": 3, \"bbox\": [1, 1, 2, 2],\n"
                "\"segmentation\": %s}]}",
                shape) < 0 ||
        fclose(file))
        abort();
    struct stoker_loader *loader = open_coco("bad.json", "", "boxes+masks", NULL, STOKER_SHAPES_OBJECTS, &err);
    if (loader)
        st_loader_start(loader, NULL, 0, NULL);
    ok(loader && st_loader_next(loader, &batch, &err) < 0 && strstr(err.message, "field masks: annotation 8: ") &&
           strstr(err.message, words),
       "%s", err.message);
    st_loader_close(loader);
}

int main(void)
{
    tree_make();
    write_all();
    objects("random_horizontal_flip(p=0)", false, false);
    objects("random_horizontal_flip(p=1)", true, false);
    objects("sanitize_bounding_boxes(min_size=2); random_horizontal_flip(p=1)", true, true);
    classes();
    refused("boxes+labels", NULL, STOKER_SHAPES_OBJECTS, "the field masks is made for the image: name it in boxes=");
    refused(NULL, NULL, STOKER_SHAPES_CLASSES, "the field mask is made for the image: name it in masks=");
    refused("masks+labels", NULL, STOKER_SHAPES_OBJECTS, "it comes after their boxes and '+'");
    refused("boxes", "masks", STOKER_SHAPES_OBJECTS, "masks: the field masks is of type array");
    cannot_be_drawn("{\"size\": [20, 30], \"counts\": [599]}", "add up to 599");
    cannot_be_drawn("{\"size\": [20, 30], \"counts\": \"~~~\"}", "damaged at its character 1");
    cannot_be_drawn("{\"size\": [2, 3], \"counts\": [6]}", "the mask has 3 x 2 pixels, but the image 30 x 20");
    cannot_be_drawn("[[0, 0, 9e9, 0, 1, 1]]", "coordinates");
    tree_remove();
    return done_testing();
}
