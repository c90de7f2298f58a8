/* epoch_start.c - how long an epoch of 10^9 samples takes to begin
 *
 *     epoch_start IMAGE [SAMPLES]
 *
 * A source of the caller's own answers every sample with the same image. Prints milliseconds: to begin
 * an epoch in shuffled order, and to its first batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "measure.h"

#include <string.h>

struct image {
    char data[1 << 20];
    size_t size;
};

static int read_image(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                      struct stoker_error *err)
{
    const struct image *image = cookie;
    (void)sample;
    (void)err;
    *size = image->size;
    if (capacity >= image->size)
        memcpy(buffer, image->data, image->size);
    return STOKER_OK;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    enum { EPOCHS = 21 };
    static struct image image;
    struct engine engine;
    struct stoker_callbacks source = {.size = sizeof source, .count = 1000000000, .read = read_image};
    double begin[EPOCHS], first[EPOCHS];

    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!f)
        return 2;
    image.size = fread(image.data, 1, sizeof image.data, f);
    fclose(f);
    if (argc > 2)
        source.count = strtoull(argv[2], NULL, 10);
    must(stoker_dataset_from_callbacks(&engine.data, &source, &image, &engine.err), &engine.err);
    engine_open(&engine, 1, 1);
    for (int i = 0; i < EPOCHS; i++) {
        const double start = now();
        engine_start(&engine, (uint64_t)i);
        begin[i] = now() - start;
        engine_next(&engine);
        first[i] = now() - start;
    }
    qsort(begin, EPOCHS, sizeof begin[0], by_value);
    qsort(first, EPOCHS, sizeof first[0], by_value);
    printf("{\"samples\": %lu, \"begin_ms\": %.4f, \"first_ms\": %.4f}\n", (unsigned long)source.count,
           1e3 * begin[EPOCHS / 2], 1e3 * first[EPOCHS / 2]);
    engine_close(&engine);
    return 0;
}
