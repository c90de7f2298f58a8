/* Images of one array in the caller's memory: read where they are, never written to, also the last one, behind which
 * nothing may be read; and batches of one tensor, also where the pipeline adds a border. */
#include "harness.h"

enum { COUNT = 5, HEIGHT = 6, WIDTH = 11, BYTES = HEIGHT * WIDTH * 3 };

static uint8_t value(uint64_t sample, int64_t y, int64_t x, int64_t c)
{
    return (uint8_t)(sample * 91 + (uint64_t)(y * 37 + x * 11 + c * 5));
}

/* Where pixel `x` of `count` is repeated from, with one more on the left and two on the right. */
static int64_t edge(int64_t x, int64_t count) { return x < 1 ? 0 : x > count ? count - 1 : x - 1; }

static bool is_right(const struct stoker_batch *batch, uint32_t row, bool padded, bool inverted)
{
    const int64_t height = HEIGHT + (padded ? 3 : 0), width = WIDTH + (padded ? 3 : 0);
    const struct stoker_tensor *images = &batch->images;
    if (images->dtype != STOKER_DTYPE_U8 || images->ndim != 4 || images->shape[2] != height || images->shape[3] != width)
        return false;
    const uint8_t *at = (const uint8_t *)images->data + row * images->stride[0];
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < 3; c++) {
                const uint8_t want = value(batch->samples[row], padded ? edge(y, HEIGHT) : y,
                                           padded ? edge(x, WIDTH) : x, c);
                const uint8_t is = at[y * images->stride[2] + x * images->stride[3] + c * images->stride[1]];
                if (is != (inverted ? 255 - want : want))
                    return false;
            }
    return true;
}

static void run(const char *text, bool backwards, const char *what)
{
    const bool padded = strstr(text, "pad") != NULL, inverted = strstr(text, "invert") != NULL;
    uint8_t *memory = malloc(COUNT * BYTES), *before = malloc(COUNT * BYTES); /* a sanitizer sees one byte too many */
    for (uint64_t k = 0; k < COUNT; k++)
        for (int64_t i = 0; i < BYTES; i++)
            memory[(backwards ? COUNT - 1 - k : k) * BYTES + (uint64_t)i] =
                value(k, i / (3 * WIDTH), i / 3 % WIDTH, i % 3);
    memcpy(before, memory, COUNT * BYTES);
    const struct stoker_pixels pixels = {.size = sizeof pixels,
                                         .data = memory + (backwards ? (COUNT - 1) * BYTES : 0),
                                         .count = COUNT,
                                         .height = HEIGHT,
                                         .width = WIDTH,
                                         .channels = 3,
                                         .stride = {backwards ? -BYTES : BYTES, 3 * WIDTH, 3, 1}};
    const struct stoker_loader_options opt = harness_options(3, 1);
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    struct stoker_error err = {0};
    const struct stoker_batch *batch;
    uint32_t seen = 0;
    bool right = !st_dataset_from_pixels(&data, &pixels, &err) && !st_pipeline_open(&pipe, text, &err) &&
                 !st_loader_open(&loader, data, pipe, &opt, NULL, &err) && !st_loader_start(loader, NULL, 0, &err);
    while (right && st_loader_next(loader, &batch, &err) == 0) {
        for (uint32_t row = 0; row < batch->count; row++, seen++)
            right = right && is_right(batch, row, padded, inverted);
        st_batch_release(batch, NULL);
    }
    ok(right && seen == COUNT && !memcmp(memory, before, COUNT * BYTES), "%s%s: %s", backwards ? "backwards, " : "",
       what, err.message);
    st_loader_close(loader);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    free(memory);
    free(before);
}

int main(void)
{
    for (int backwards = 0; backwards < 2; backwards++) {
        run("", backwards, "as they are");
        run("random_invert(p=1)", backwards, "values that change");
        run("random_invert(p=1); random_adjust_sharpness(sharpness_factor=1, p=1)", backwards, "and neighbours that are seen");
        run("pad(padding=[1,1,2,2], padding_mode=edge)", backwards, "a border makes one tensor");
    }
    return done_testing();
}
