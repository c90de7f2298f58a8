/* Masks follow their images, whoever decodes these: threads, JPEG hardware, or a thread after it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/fake_hardware.h"

enum { WIDTH = 52, CROP = 24 };

static struct stoker_item *masks;

static int32_t height_of(uint32_t sample) { return 40 + (int32_t)(sample * 37 % 61); }

/* Every pixel of a mask has another number than its neighbours. */
static uint8_t number_at(uint32_t sample, int32_t x, int32_t y) { return (uint8_t)(7 * x + 31 * y + (int32_t)sample); }

static struct stoker_item make_mask(uint32_t sample)
{
    char head[64];
    const int32_t height = height_of(sample);
    const int size = snprintf(head, sizeof head, "P5 %d %d 255\n", WIDTH, height);
    uint8_t *file = malloc((size_t)size + (size_t)(WIDTH * height));
    memcpy(file, head, (size_t)size);
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < WIDTH; x++)
            file[size + y * WIDTH + x] = number_at(sample, x, y);
    return (struct stoker_item){file, (size_t)size + (size_t)(WIDTH * height), 0};
}

static struct stoker_loader *open_pairs(const struct st_devices *devices, const char *text,
                                        const struct stoker_loader_options *opt, struct stoker_error *err)
{
    struct stoker_dataset *images = NULL, *others = NULL, *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    if (st_dataset_from_memory(&images, items, COUNT, err) || st_dataset_from_memory(&others, masks, COUNT, err) ||
        st_dataset_paired(&data, images, others, false, err) || st_pipeline_open(&pipe, text, err) ||
        st_loader_open(&loader, data, pipe, opt, devices, err))
        note("open: %s", err->message);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    st_dataset_drop(images);
    st_dataset_drop(others);
    return loader;
}

/* Whether the crop is a part of the sample's mask, perhaps mirrored. */
static bool is_part(const uint8_t *crop, uint32_t sample)
{
    for (int32_t y = 0; y + CROP <= height_of(sample); y++)
        for (int32_t x = 0; x + CROP <= WIDTH; x++) {
            bool plain = true, mirrored = true;
            for (int32_t k = 0; k < CROP * CROP && (plain || mirrored); k++) {
                const int32_t column = k % CROP, row = y + k / CROP;
                plain = plain && crop[k] == number_at(sample, x + column, row);
                mirrored = mirrored && crop[k] == number_at(sample, x + CROP - 1 - column, row);
            }
            if (plain || mirrored)
                return true;
        }
    return false;
}

/* The masks of an epoch, in order; how many are parts of what they should be. */
static uint32_t take_masks(struct stoker_loader *loader, uint8_t (*out)[CROP * CROP])
{
    const struct stoker_batch *batch;
    uint32_t right = 0, at = 0;
    st_loader_start(loader, NULL, 0, NULL);
    while (!st_loader_next(loader, &batch, NULL)) {
        const struct stoker_column *column = batch->columns[0];
        const bool whole = batch->column_count == 1 && column->kind == STOKER_COLUMN_ARRAY && column->ndim == 3 &&
                           column->shape[1] == CROP && column->shape[2] == CROP && column->dtype == STOKER_DTYPE_U8;
        for (uint32_t row = 0; whole && row < batch->count; row++, at++) {
            memcpy(out[at], (const uint8_t *)column->data + row * sizeof out[at], sizeof out[at]);
            right += is_part(out[at], (uint32_t)batch->samples[row]);
        }
        st_batch_release(batch, NULL);
    }
    return right;
}

/* `parts`: masks are crops of what they were. */
static void by_anyone(const char *text, bool parts)
{
    static uint8_t plain[COUNT][CROP * CROP], other[COUNT][CROP * CROP];
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    struct stoker_error err = {0};
    opt.masks = "mask";
    struct stoker_loader *loader = open_pairs(NULL, text, &opt, &err);
    const uint32_t right = take_masks(loader, plain);
    ok((right == COUNT) == parts, "%u of %u masks are crops of theirs: %s", right, (unsigned)COUNT, text);
    st_loader_close(loader);
    opt.jpeg_hardware = STOKER_JPEG_HARDWARE_ALL;
    hardware.lost = 3;
    hardware.images = 0;
    loader = open_pairs(&hardware_devices, text, &opt, &err);
    wait_for_hardware(loader);
    struct stoker_stats stats = {.size = sizeof stats};
    uint32_t equal = 0, epochs = 0;
    for (; epochs < TRIES && equal == epochs && (epochs < 2 || !hardware.images); epochs++) {
        take_masks(loader, other);
        equal += !memcmp(plain, other, sizeof plain);
    }
    st_loader_stats(loader, &stats);
    st_loader_close(loader);
    hardware.lost = 0;
    ok(stats.raw_rows == epochs * COUNT, "the device makes the images of %llu samples", (unsigned long long)stats.raw_rows);
    ok(equal == epochs && hardware.images > 0, "%u of %u epochs have the same ones, with %u images by hardware", equal,
       epochs, (unsigned)hardware.images);
}

/* A second image, which is the first one again, becomes the same. */
static void second_images(enum stoker_layout layout, bool on_device)
{
    struct stoker_loader_options opt = harness_options(BATCH, 2);
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    uint32_t equal = 0;
    struct stoker_item *const kept = masks;
    masks = items;
    opt.masks = "mask=image";
    opt.layout = layout;
    struct stoker_loader *loader =
        open_pairs(on_device ? &hardware_devices : NULL,
                   "random_crop(size=24); random_horizontal_flip; color_jitter(brightness=0.5); to_tensor; "
                   "normalize(mean=[0.5,0.4,0.3], std=[0.1,0.2,0.3]); random_erasing(p=1, value=random)", &opt, &err);
    ok(loader != NULL, "a loader of two images for each sample %s", err.message);
    st_loader_start(loader, NULL, 0, NULL);
    while (loader && !st_loader_next(loader, &batch, NULL)) {
        const struct stoker_column *column = batch->columns[0];
        const uint64_t bytes = (uint64_t)batch->count * 3 * CROP * CROP * sizeof(float);
        const bool fits = column->dtype == STOKER_DTYPE_F32 && column->ndim == 4 && column->shape[1] == 3 &&
                          column->shape[2] == CROP && column->shape[3] == CROP;
        equal += fits && (layout != STOKER_LAYOUT_NCHW || on_device || !memcmp(column->data, batch->images.data, bytes))
                     ? batch->count : 0;
        st_batch_release(batch, NULL);
    }
    st_loader_close(loader);
    masks = kept;
    ok(equal == COUNT, "%u of %u second images are right", equal, (unsigned)COUNT);
}

static void refusals(void)
{
    struct stoker_loader_options opt = harness_options(BATCH, 1);
    struct stoker_error err = {0};
    opt.masks = "mask,none";
    ok(!open_pairs(NULL, "to_tensor", &opt, &err) && strstr(err.message, "no field is named \"none\"; there are image, mask"),
       "%s", err.message);
    opt.masks = "mask=wide=image";
    ok(!open_pairs(NULL, "to_tensor", &opt, &err) && strstr(err.message, "no field is named"), "%s", err.message);
    opt.masks = "mask=image=wide";
    ok(!open_pairs(NULL, "to_tensor", &opt, &err) && strstr(err.message, "both a mask and an image"), "%s", err.message);
    opt.masks = "image";
    ok(!open_pairs(NULL, "to_tensor", &opt, &err) && strstr(err.message, "is the first image"), "%s", err.message);
    opt.masks = "";
    struct stoker_loader *loader = open_pairs(NULL, "center_crop(size=8); to_tensor", &opt, &err);
    ok(loader != NULL, "no names are no masks");
    st_loader_close(loader);
}

int main(void)
{
    items = calloc(COUNT, sizeof *items);
    masks = calloc(COUNT, sizeof *masks);
    for (uint32_t k = 0; k < COUNT; k++) {
        items[k] = test_jpeg_kind(k, WIDTH, height_of(k), TEST_JPEG_USUAL);
        masks[k] = make_mask(k);
    }
    by_anyone("random_crop(size=24); random_horizontal_flip; color_jitter(brightness=0.5); to_tensor", true);
    by_anyone("random_crop(size=24); random_horizontal_flip; random_rotation(degrees=40); random_vertical_flip; "
              "rand_augment(num_ops=3, magnitude=20, mask_fill=9); to_tensor", false);
    second_images(STOKER_LAYOUT_NCHW, false);
    second_images(STOKER_LAYOUT_NHWC, false);
    second_images(STOKER_LAYOUT_NCHW, true);
    refusals();
    test_items_free(items, COUNT);
    test_items_free(masks, COUNT);
    return done_testing();
}
