/* Images of pixels in memory, in every layout. */
#include "source/reader/reader.h"
#include "tap.h"
#include "tree.h"

enum { COUNT = 5, HEIGHT = 4, WIDTH = 6 };

static uint8_t value(int64_t image, int64_t y, int64_t x, int64_t c)
{
    return (uint8_t)(image * 97 + y * 31 + x * 5 + c * 3);
}

/* A dataset whose memory is written so that the pixel at (image, y, x, c) is value(...), wherever it
 * lies. */
static struct stoker_pixels lay_out(uint8_t *memory, size_t size, const int64_t stride[4],
                                    int32_t channels)
{
    struct stoker_pixels pixels = {.size = sizeof pixels,
                                   .data = memory + size / 2,
                                   .count = COUNT,
                                   .height = HEIGHT,
                                   .width = WIDTH,
                                   .channels = channels};
    memcpy(pixels.stride, stride, sizeof pixels.stride);
    memset(memory, 0xee, size);
    for (int64_t i = 0; i < COUNT; i++)
        for (int64_t y = 0; y < HEIGHT; y++)
            for (int64_t x = 0; x < WIDTH; x++)
                for (int64_t c = 0; c < (channels ? channels : 1); c++)
                    memory[(int64_t)size / 2 + i * stride[0] + y * stride[1] + x * stride[2] +
                           c * stride[3]] = value(i, y, x, c);
    return pixels;
}

static bool is_image(struct stoker_dataset *data, uint64_t sample, int64_t image, int32_t channels,
                     int64_t label)
{
    struct st_buffer buffer = {0}, scratch = {0};
    struct st_bytes raw;
    struct st_piece pieces[2];
    struct stoker_error err = {0};
    bool same = !st_read_sample(data, sample, &buffer, &raw, &err) &&
                !data->source->split(data->self, sample, raw, &scratch, pieces, &err) &&
                pieces[0].ndim == (channels ? 3 : 2) && pieces[0].shape[0] == HEIGHT &&
                pieces[0].shape[1] == WIDTH && pieces[1].whole == label;
    const int64_t depth = channels ? channels : 1;
    same = same && pieces[0].bytes.size == (size_t)(HEIGHT * WIDTH * depth);
    for (int64_t k = 0; same && k < HEIGHT * WIDTH * depth; k++)
        same = pieces[0].bytes.data[k] == value(image, k / depth / WIDTH, k / depth % WIDTH, k % depth);
    st_buffer_free(&buffer);
    st_buffer_free(&scratch);
    return same;
}

static void layouts(void)
{
    static const struct {
        const char *name;
        int32_t channels;
        int64_t stride[4];
    } cases[] = {
        {"in order", 3, {72, 18, 3, 1}},
        {"with gaps between images and rows", 3, {100, 20, 3, 1}},
        {"with gaps between pixels", 3, {200, 48, 8, 1}},
        {"planes", 3, {72, 6, 1, 24}},
        {"planes of other images between them", 3, {24, 6, 1, 120}},
        {"backwards", 3, {-72, -18, -3, -1}},
        {"upside down", 3, {72, -18, 3, 1}},
        {"columns first", 3, {72, 3, 12, 1}},
        {"grey", 0, {24, 6, 1, 0}},
        {"grey, mirrored", 0, {24, 6, -1, 0}},
        {"one channel", 1, {24, 6, 1, 77}},
        {"two channels", 2, {48, 12, 2, 1}},
        {"four channels, blue first", 4, {96, 24, 4, -1}},
    };
    static uint8_t memory[4096];
    const int64_t labels[COUNT] = {4, -1, 1ll << 40, 0, 9};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct stoker_pixels pixels = lay_out(memory, sizeof memory, cases[k].stride, cases[k].channels);
        struct stoker_dataset *data = NULL;
        struct stoker_error err;
        pixels.labels = labels;
        bool same = !st_dataset_from_pixels(&data, &pixels, &err) && st_dataset_count(data) == COUNT;
        for (uint64_t i = 0; same && i < COUNT; i++)
            same = is_image(data, i, (int64_t)i, cases[k].channels, labels[i]);
        ok(same, "%s", cases[k].name);
        st_dataset_drop(data);
    }
}

static void live(void)
{
    static uint8_t memory[4096];
    int64_t labels[COUNT] = {0};
    struct stoker_pixels pixels = lay_out(memory, sizeof memory, (int64_t[4]){72, 18, 3, 1}, 3);
    struct stoker_dataset *data = NULL;
    pixels.labels = labels;
    st_dataset_from_pixels(&data, &pixels, NULL);
    ok(is_image(data, 1, 1, 3, 0), "an image");
    memmove(memory + sizeof memory / 2 + 72, memory + sizeof memory / 2 + 3 * 72, 72);
    labels[1] = 8;
    ok(is_image(data, 1, 3, 3, 8), "and what is written over it, and over its label");
    st_dataset_drop(data);
}

/* Beside files a compound reads parts in memory too. */
static void beside_others(void)
{
    static uint8_t memory[4096];
    struct stoker_pixels pixels = lay_out(memory, sizeof memory, (int64_t[4]){24, 6, 1, 120}, 3);
    struct stoker_dataset *parts[2] = {NULL}, *both = NULL, *some = NULL;
    struct stoker_error err;
    const char *path = at("a.jpg");
    tree_file(path, 4, 0);
    st_dataset_from_pixels(&parts[0], &pixels, NULL);
    st_dataset_from_files(&parts[1], &path, NULL, 1, NULL);
    ok(!st_dataset_concat(&both, parts, 2, &err) && st_dataset_count(both) == COUNT + 1,
       "pixels and a file");
    ok(is_image(both, 2, 2, 3, 0), "the pixels are read");
    ok(!st_dataset_subset(&some, both, (const uint64_t[]){5, 4}, 2, &err) && is_image(some, 1, 4, 3, 0),
       "of a part of both, too");
    st_dataset_drop(parts[0]);
    st_dataset_drop(parts[1]);
    st_dataset_drop(both);
    st_dataset_drop(some);
}

static void refused(void)
{
    static uint8_t memory[64];
    const struct stoker_pixels fine = {.size = sizeof fine,
                                       .data = memory,
                                       .count = 1,
                                       .height = 2,
                                       .width = 2,
                                       .channels = 3,
                                       .stride = {12, 6, 3, 1}};
    struct stoker_pixels bad[7] = {fine, fine, fine, fine, fine, fine, fine};
    bad[0].height = 0;
    bad[1].width = -1;
    bad[2].channels = 5;
    bad[3].channels = -1;
    bad[4].data = NULL;
    bad[5].height = bad[5].width = INT64_MAX;
    bad[6].stride[1] = INT64_MIN;
    for (int k = 0; k < 7; k++) {
        struct stoker_dataset *data = NULL;
        struct stoker_error err = {0};
        ok(st_dataset_from_pixels(&data, &bad[k], &err) == STOKER_EINVAL && !data, "%s", err.message);
    }
    struct stoker_pixels none = fine;
    struct stoker_dataset *data = NULL;
    none.count = 0;
    none.data = NULL;
    ok(!st_dataset_from_pixels(&data, &none, NULL) && st_dataset_count(data) == 0, "no images at all");
    st_dataset_drop(data);
}

int main(void)
{
    tree_make();
    layouts();
    live();
    beside_others();
    refused();
    tree_remove();
    return done_testing();
}
