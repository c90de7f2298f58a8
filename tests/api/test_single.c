/* test_single.c - single images through a pipeline: a loader's rows, from any thread
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "images.h"
#include "tap.h"

#include <math.h>
#include <pthread.h>

enum { COUNT = 6, SEED = 11, EPOCH = 3, THREADS = 6, ROUNDS = 20 };

static const char steps[] = "random_resized_crop(size=24); random_horizontal_flip; color_jitter(brightness=0.4); "
                            "to_tensor; normalize(mean=[0.5,0.4,0.3], std=[0.2,0.3,0.4]); random_erasing(p=0.5)";

static struct stoker_single *open_single(const char *text, enum stoker_layout layout)
{
    struct stoker_single_options opt = stoker_single_defaults();
    struct stoker_pipeline *pipe;
    struct stoker_single *single = NULL;
    struct stoker_error err;
    opt.layout = layout;
    if (stoker_pipeline_open(&pipe, text, &err) == 0) {
        stoker_single_open(&single, pipe, &opt, &err);
        stoker_pipeline_close(pipe);
    }
    return single;
}

static struct stoker_picture picture_of(const struct stoker_item *item)
{
    return (struct stoker_picture){.size = sizeof(struct stoker_picture), .data = item->data, .bytes = item->size};
}

struct reader {
    struct stoker_single *single;
    const struct stoker_item *items;
    const float *rows;
    bool same;
};

/* Each thread makes all samples, in an order of its own. */
static void *read_all(void *argument)
{
    struct reader *reader = argument;
    struct stoker_tensor out;
    struct stoker_error err;
    for (uint32_t k = 0; reader->same && k < COUNT * share_of(ROUNDS); k++) {
        const uint32_t sample = k * 5 % COUNT;
        const struct stoker_picture picture = picture_of(&reader->items[sample]);
        reader->same = stoker_single_run(reader->single, &picture, SEED, EPOCH, sample, &out, &err) == 0 &&
                       out.dtype == STOKER_DTYPE_F32 && out.shape[0] == 3 && out.shape[1] == 24 && out.shape[2] == 24 &&
                       !memcmp(out.data, reader->rows + sample * 3 * 24 * 24, 3 * 24 * 24 * sizeof(float));
        free(out.data);
    }
    return NULL;
}

static void as_rows(struct stoker_dataset *data, const struct stoker_item *items)
{
    struct stoker_loader_options opt = stoker_loader_defaults();
    struct stoker_epoch epoch = stoker_epoch_defaults();
    struct stoker_loader *loader;
    struct stoker_pipeline *pipe;
    const struct stoker_batch *batch;
    struct stoker_error err;
    struct reader reader[THREADS];
    pthread_t thread[THREADS];
    opt.batch_size = COUNT;
    opt.workers = 0;
    opt.seed = SEED;
    epoch.epoch = EPOCH;
    if (!ok(stoker_pipeline_open(&pipe, steps, &err) == 0 && stoker_loader_open(&loader, data, pipe, &opt, &err) == 0 &&
                stoker_loader_start(loader, &epoch, &err) == 0 && stoker_loader_next(loader, &batch, &err) == 0,
            "a loader"))
        return;
    struct stoker_single *single = open_single(steps, STOKER_LAYOUT_NCHW);
    bool same = ok(single != NULL, "a single");
    for (uint32_t k = 0; k < THREADS; k++) {
        reader[k] = (struct reader){single, items, batch->images.data, same};
        pthread_create(&thread[k], NULL, read_all, &reader[k]);
    }
    for (uint32_t k = 0; k < THREADS; k++) {
        pthread_join(thread[k], NULL);
        same = same && reader[k].same;
    }
    ok(same, "%d threads at once make what the loader's rows hold, to the bit", THREADS);
    stoker_single_close(single);
    stoker_batch_release(batch);
    stoker_loader_close(loader);
    stoker_pipeline_close(pipe);
}

static void parts_and_pixels(const struct stoker_item *item)
{
    struct stoker_single *single = open_single("", STOKER_LAYOUT_NHWC);
    struct stoker_picture picture = picture_of(item);
    struct stoker_tensor whole, part, again;
    struct stoker_error err;
    if (!ok(single && stoker_single_run(single, &picture, 0, 0, 0, &whole, &err) == 0 && whole.dtype == STOKER_DTYPE_U8 &&
                whole.shape[2] == 3,
            "a pipeline without ops decodes"))
        return;
    const uint32_t height = (uint32_t)whole.shape[0], width = (uint32_t)whole.shape[1];
    picture.x = 5;
    picture.y = 7;
    picture.crop_width = 11;
    picture.crop_height = 13;
    bool same = stoker_single_run(single, &picture, 0, 0, 0, &part, &err) == 0;
    for (uint32_t y = 0; same && y < 13; y++)
        same = !memcmp((uint8_t *)part.data + y * 33, (uint8_t *)whole.data + ((y + 7) * width + 5) * 3, 33);
    ok(same && part.shape[0] == 13 && part.shape[1] == 11, "a part of it is the crop");
    free(part.data);

    uint8_t *wide = malloc((size_t)width * height * 4);
    for (uint32_t k = 0; wide && k < width * height; k++) {
        memcpy(wide + 4 * k, (uint8_t *)whole.data + 3 * k, 3);
        wide[4 * k + 3] = (uint8_t)k;
    }
    struct stoker_picture pixels = {.size = sizeof pixels, .data = wide, .bytes = (size_t)width * height * 4,
                                    .width = width, .height = height, .channels = 4};
    ok(wide && stoker_single_run(single, &pixels, 0, 0, 0, &again, &err) == 0 &&
           !memcmp(again.data, whole.data, (size_t)width * height * 3),
       "pixels of four channels give the first three");
    free(again.data);
    const size_t bytes = (size_t)width * height * 3;
    uint8_t *mine = malloc(bytes + 1);
    if (mine)
        memset(mine, 77, bytes + 1);
    ok(mine && stoker_single_run_into(single, &pixels, 0, 0, 0, mine, bytes, &again, &err) == 0 &&
           again.data == mine && !memcmp(mine, whole.data, bytes) && mine[bytes] == 77 && again.shape[1] == width,
       "memory of the caller's gets the same, and nothing beyond");
    ok(mine && stoker_single_run_into(single, &pixels, 0, 0, 0, mine, bytes + 1, &again, &err) == STOKER_EINVAL &&
           !again.data && mine[0] == ((uint8_t *)whole.data)[0],
       "memory of another size is refused (%s)", err.message);
    ok(stoker_single_run_into(single, &pixels, 0, 0, 0, NULL, 0, &again, &err) == STOKER_EINVAL, "no memory is refused");
    free(mine);
    pixels.bytes--;
    ok(stoker_single_run(single, &pixels, 0, 0, 0, &again, &err) < 0 && !again.data, "too few of them are refused (%s)",
       err.message);
    free(wide);
    free(whole.data);
    stoker_single_close(single);
}

static bool made(struct stoker_single *single, const struct stoker_item *item, const struct stoker_edit *edits,
                 size_t count, struct stoker_tensor *out, struct stoker_error *err)
{
    struct stoker_picture picture = picture_of(item);
    picture.edits = edits;
    picture.edit_count = count;
    return stoker_single_run(single, &picture, 0, 0, 0, out, err) == 0;
}

/* Edits give what a pipeline with the same steps gives, if nothing is drawn in it. */
static void edits_are_steps(const struct stoker_item *item)
{
    static const char text[] = "center_crop(size=[40,50]); resize(size=[20,30], interpolation=bicubic); "
                               "random_horizontal_flip(p=1); random_vertical_flip(p=1); color_jitter(brightness=[0.5,0.5]); "
                               "color_jitter(contrast=[1.5,1.5]); color_jitter(saturation=[0.25,0.25]); "
                               "color_jitter(hue=[-0.25,-0.25]); random_adjust_sharpness(sharpness_factor=1.7, p=1); "
                               "random_equalize(p=1); random_solarize(threshold=99.5, p=1); random_posterize(bits=5, p=1); "
                               "random_autocontrast(p=1); random_order{random_choice{random_invert(p=1)}}; grayscale(num_output_channels=3)";
    const struct stoker_edit edits[] = {
        {.kind = STOKER_EDIT_CROP, .x = 15, .y = 10, .width = 50, .height = 40}, /* the image is 80 x 60 */
        {.kind = STOKER_EDIT_RESIZE, .width = 30, .height = 20, .filter = STOKER_FILTER_BICUBIC},
        {.kind = STOKER_EDIT_MIRROR},
        {.kind = STOKER_EDIT_FLIP},
        {.kind = STOKER_EDIT_BRIGHTNESS, .factor = 0.5},
        {.kind = STOKER_EDIT_CONTRAST, .factor = 1.5},
        {.kind = STOKER_EDIT_SATURATION, .factor = 0.25},
        {.kind = STOKER_EDIT_HUE, .factor = -0.25},
        {.kind = STOKER_EDIT_SHARPNESS, .factor = 1.7},
        {.kind = STOKER_EDIT_EQUALIZE},
        {.kind = STOKER_EDIT_SOLARIZE, .factor = 99.5},
        {.kind = STOKER_EDIT_POSTERIZE, .factor = 5},
        {.kind = STOKER_EDIT_AUTOCONTRAST},
        {.kind = STOKER_EDIT_SOLARIZE, .factor = 0},
        {.kind = STOKER_EDIT_PERMUTE, .x = 1, .y = 2, .width = 0},
        {.kind = STOKER_EDIT_PERMUTE, .x = 2, .y = 0, .width = 1}, /* and back */
        {.kind = STOKER_EDIT_GREY},
    };
    const size_t count = sizeof edits / sizeof *edits;
    struct stoker_single *by_steps = open_single(text, STOKER_LAYOUT_NHWC), *none = open_single("", STOKER_LAYOUT_NHWC);
    struct stoker_tensor steps_out = {0}, edits_out = {0};
    struct stoker_error err;
    const bool both = by_steps && none && made(by_steps, item, NULL, 0, &steps_out, &err) &&
                      made(none, item, edits, count, &edits_out, &err);
    ok(both && edits_out.shape[0] == 20 && edits_out.shape[1] == 30 && !memcmp(steps_out.data, edits_out.data, 20 * 30 * 3),
       "edits give what the same steps give");
    free(steps_out.data);
    free(edits_out.data);

    const struct stoker_edit bad[] = {
        {.kind = STOKER_EDIT_CROP, .x = 60, .y = 0, .width = 50, .height = 40},
        {.kind = STOKER_EDIT_RESIZE, .width = 0, .height = 20},
        {.kind = STOKER_EDIT_RESIZE, .width = 30, .height = 20, .filter = (enum stoker_filter)6},
        {.kind = STOKER_EDIT_RESIZE, .width = UINT32_MAX, .height = 1},
        {.kind = STOKER_EDIT_BRIGHTNESS, .factor = -1},
        {.kind = STOKER_EDIT_HUE, .factor = 0.75},
        {.kind = STOKER_EDIT_CONTRAST, .factor = NAN},
        {.kind = STOKER_EDIT_SHARPNESS, .factor = 2e6},
        {.kind = STOKER_EDIT_SOLARIZE, .factor = NAN},
        {.kind = STOKER_EDIT_POSTERIZE, .factor = 0},
        {.kind = STOKER_EDIT_POSTERIZE, .factor = 2.5},
        {.kind = STOKER_EDIT_PERMUTE, .x = 1, .y = 1, .width = 2},
        {.kind = STOKER_EDIT_PERMUTE, .x = 1, .y = 2, .width = 3},
        {.kind = (enum stoker_edit_kind)99},
        {.kind = STOKER_EDIT_AFFINE, .width = 30, .height = 20, .map = {1, 0, 0, 0, NAN}},
        {.kind = STOKER_EDIT_AFFINE, .width = 0, .height = 20, .map = {1, 0, 0, 0, 1}},
        {.kind = STOKER_EDIT_AFFINE, .width = UINT32_MAX, .height = 20, .map = {1, 0, 0, 0, 1}},
        {.kind = STOKER_EDIT_AFFINE, .width = 1 << 20, .height = 1 << 20, .map = {1, 0, 0, 0, 1}},
        {.kind = STOKER_EDIT_PERSPECTIVE, .width = 30, .height = 20, .map = {1, 0, 0, 0, 1, 0, 0, INFINITY}},
        {.kind = STOKER_EDIT_AFFINE, .width = 30, .height = 20, .filter = STOKER_FILTER_LANCZOS, .map = {1, 0, 0, 0, 1}},
        {.kind = STOKER_EDIT_BOX_BLUR, .map = {-1, 0}},
        {.kind = STOKER_EDIT_BOX_BLUR, .map = {0, 65536}},
        {.kind = STOKER_EDIT_GAUSSIAN_BLUR, .map = {1, NAN}},
        {.kind = STOKER_EDIT_GAUSSIAN_BLUR, .map = {INFINITY, 1}},
        {.kind = STOKER_EDIT_POINT},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        const bool refused = !made(none, item, &bad[k], 1, &edits_out, &err) && !edits_out.data;
        ok(refused, "an edit that cannot be made (%s)", err.message);
    }
    struct stoker_picture picture = picture_of(item);
    picture.edit_count = 1;
    const int rc = stoker_single_run(none, &picture, 0, 0, 0, &edits_out, &err);
    ok(rc == STOKER_EINVAL, "edits that are not there (%s)", err.message);
    stoker_single_close(by_steps);
    stoker_single_close(none);
}

/* A value of a line whose ends go on for ever. */
static uint32_t value_at(const uint8_t *first, int32_t step, int32_t length, int32_t at)
{
    return first[(at < 0 ? 0 : at >= length ? length - 1 : at) * step];
}

/* By definition: means of boxes whose ends count as a part, in integers; across, then down. */
static void plain_blur(uint8_t *pixels, int32_t width, int32_t height, bool down, double radius)
{
    const int32_t whole = (int32_t)radius, length = down ? height : width, step = down ? width * 3 : 3;
    const int32_t near = whole < length ? whole : length; /* further off is one end or the other */
    const uint32_t weight = (uint32_t)((float)(1 << 24) / ((float)radius * 2 + 1));
    const uint32_t part = ((1u << 24) - (uint32_t)(2 * whole + 1) * weight) / 2;
    for (int32_t line = 0; line < (down ? width : height) * 3; line++) {
        uint8_t *first = pixels + (down ? line : line / 3 * width * 3 + line % 3), made[128];
        for (int32_t at = 0; at < length; at++) {
            const uint32_t ends = value_at(first, step, length, at - whole - 1) +
                                  value_at(first, step, length, at + whole + 1);
            uint32_t sum = (1 << 23) + ends * part + ends * weight * (uint32_t)(whole - near);
            for (int32_t k = -near; k <= near; k++)
                sum += value_at(first, step, length, at + k) * weight;
            made[at] = (uint8_t)(sum >> 24);
        }
        for (int32_t at = 0; at < length; at++)
            first[at * step] = made[at];
    }
}

/* Blurs and tables of values. */
static void values_are_edits(const struct stoker_item *item)
{
    static const double radius[][2] = {{0, 0}, {1, 0}, {0, 2.5}, {0.3, 0.7}, {7.2, 100.5}, {500, 65535}};
    struct stoker_single *none = open_single("", STOKER_LAYOUT_NHWC);
    struct stoker_tensor plain = {0}, out;
    struct stoker_error err;
    uint8_t table[768];
    if (!ok(none && made(none, item, NULL, 0, &plain, &err), "the image as it is"))
        return;
    const size_t bytes = 60 * 80 * 3;
    uint8_t *expected = malloc(bytes);
    for (size_t k = 0; expected && k < sizeof radius / sizeof *radius; k++) {
        const struct stoker_edit edits[] = {{.kind = STOKER_EDIT_MIRROR},
                                            {.kind = STOKER_EDIT_BOX_BLUR, .map = {radius[k][0], radius[k][1]}},
                                            {.kind = STOKER_EDIT_MIRROR}};
        memcpy(expected, plain.data, bytes);
        plain_blur(expected, 80, 60, false, radius[k][0]);
        plain_blur(expected, 80, 60, true, radius[k][1]);
        ok(made(none, item, edits, 3, &out, &err) && !memcmp(out.data, expected, bytes), "a blur of %g and %g", radius[k][0],
           radius[k][1]);
        free(out.data);
    }
    for (uint32_t k = 0; k < 768; k++)
        table[k] = (uint8_t)(k * 7 + k / 256);
    for (size_t k = 0; expected && k < bytes; k++)
        expected[k] = table[k % 3 * 256 + ((const uint8_t *)plain.data)[k]];
    const struct stoker_edit point = {.kind = STOKER_EDIT_POINT, .table = table};
    ok(expected && made(none, item, &point, 1, &out, &err) && !memcmp(out.data, expected, bytes), "a table for each channel");
    free(out.data);
    free(expected);
    free(plain.data);
    stoker_single_close(none);
}

/* Where they change nothing, and what comes from outside. */
static void maps_are_edits(const struct stoker_item *item)
{
    const struct stoker_edit same[] = {
        {.kind = STOKER_EDIT_AFFINE, .width = 80, .height = 60, .filter = STOKER_FILTER_BICUBIC, .map = {1, 0, 0, 0, 1}},
        {.kind = STOKER_EDIT_PERSPECTIVE, .width = 80, .height = 60, .filter = STOKER_FILTER_BILINEAR, .map = {1, 0, 0, 0, 1}},
        {.kind = STOKER_EDIT_AFFINE, .width = 80, .height = 60, .map = {1, 0, 0, 0, 1}},
    };
    const struct stoker_edit outside = {
        .kind = STOKER_EDIT_AFFINE, .width = 7, .height = 5, .map = {1, 0, 80, 0, 1}, .fill = {9, 8, 7}};
    struct stoker_single *single = open_single("", STOKER_LAYOUT_NHWC);
    struct stoker_tensor plain = {0}, mapped = {0}, filled = {0};
    struct stoker_error err;
    const bool all = made(single, item, NULL, 0, &plain, &err) && made(single, item, same, 3, &mapped, &err) &&
                     made(single, item, &outside, 1, &filled, &err);
    ok(all && !memcmp(plain.data, mapped.data, 80 * 60 * 3), "maps that change nothing");
    bool is_fill = all && filled.shape[0] == 5 && filled.shape[1] == 7;
    for (int k = 0; is_fill && k < 5 * 7 * 3; k++)
        is_fill = ((const uint8_t *)filled.data)[k] == outside.fill[k % 3];
    ok(is_fill, "what comes from outside is filled");
    free(plain.data);
    free(mapped.data);
    free(filled.data);
    stoker_single_close(single);
}

static void refusals(const struct stoker_item *item)
{
    struct stoker_single *single = open_single("random_crop(size=4000); to_tensor", STOKER_LAYOUT_NCHW);
    struct stoker_picture picture = picture_of(item);
    struct stoker_pipeline *pipe;
    struct stoker_single *none = (void *)&picture;
    struct stoker_tensor out;
    struct stoker_error err;
    picture.name = "small.jpg";
    ok(stoker_single_run(single, &picture, 0, 0, 0, &out, &err) < 0 && !out.data && strstr(err.message, "small.jpg"),
       "a crop larger than the image (%s)", err.message);
    picture.bytes /= 2;
    ok(stoker_single_run(single, &picture, 0, 0, 0, &out, &err) < 0 && !out.data, "half a file (%s)", err.message);
    picture.size = 0;
    ok(stoker_single_run(single, &picture, 0, 0, 0, &out, &err) == STOKER_EINVAL, "a picture without its size (%s)",
       err.message);
    ok(stoker_single_run(NULL, &picture, 0, 0, 0, &out, &err) == STOKER_EINVAL, "nothing to run");
    stoker_single_close(single);
    stoker_single_close(NULL);
    stoker_pipeline_open(&pipe, "audio_mono", &err);
    ok(stoker_single_open(&none, pipe, NULL, &err) == STOKER_EINVAL && !none, "a pipeline for sounds (%s)", err.message);
    stoker_pipeline_close(pipe);
    struct stoker_single_options opt = stoker_single_defaults();
    stoker_pipeline_open(&pipe, "to_tensor", &err);
    opt.pillow = 7;
    ok(stoker_single_open(&none, pipe, &opt, &err) == STOKER_EINVAL && !none, "a Pillow that never was (%s)", err.message);
    stoker_pipeline_close(pipe);
}

int main(void)
{
    struct stoker_item *items = test_items(COUNT);
    struct stoker_item jpeg = test_jpeg(1, 80, 60), progressive = test_jpeg_progressive(1, 80, 60);
    struct stoker_dataset *data;
    struct stoker_error err;
    uint32_t width = 0, height = 0, components = 0;
    if (!ok(stoker_dataset_from_memory(&data, items, COUNT, &err) == 0, "a dataset"))
        return done_testing();
    as_rows(data, items);
    parts_and_pixels(&jpeg);
    edits_are_steps(&jpeg);
    maps_are_edits(&jpeg);
    values_are_edits(&jpeg);
    refusals(&jpeg);
    ok(stoker_jpeg_is_regular(jpeg.data, jpeg.size, &width, &height, &components) && width == 80 && height == 60 &&
           components == 3,
       "a whole JPEG is regular");
    ok(!stoker_jpeg_is_regular(jpeg.data, jpeg.size - 2, &width, &height, &components) &&
           !stoker_jpeg_is_regular(progressive.data, progressive.size, &width, &height, &components) &&
           !stoker_jpeg_is_regular(NULL, 0, &width, &height, &components),
       "one without its end is not, nor a progressive one, nor nothing");
    stoker_dataset_close(data);
    test_items_free(items, COUNT);
    free((void *)(uintptr_t)jpeg.data);
    free((void *)(uintptr_t)progressive.data);
    return done_testing();
}
