/* memory.c - whether memory stays flat, and how much there is beside the slots
 *
 *     memory FOLDER BATCHES WORKERS
 *
 * Prints resident megabytes beside the slots early on, half-way and at the end.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "measure.h"

/* The places where batches have been seen: slots that were never used hold no memory. */
struct places {
    const void *at[64];
    size_t count, bytes;
};

static void next_batch(struct engine *engine, struct places *places)
{
    const struct stoker_batch *batch = engine_take(engine);
    size_t i = 0;
    while (i < places->count && places->at[i] != batch->images.data)
        i++;
    if (i == places->count && i < sizeof places->at / sizeof places->at[0]) {
        places->at[places->count++] = batch->images.data;
        places->bytes += (size_t)batch->count * (size_t)batch->images.stride[0] * sizeof(float);
    }
    stoker_batch_release(batch);
}

static double beside_slots(const struct places *places)
{
    return (resident() - (double)places->bytes) / 1e6;
}

int main(int argc, char **argv)
{
    struct engine engine;
    struct places places = {0};
    double early = 0, half = 0;

    if (argc != 4)
        return 2;
    const long batches = atol(argv[2]);
    must(stoker_dataset_open(&engine.data, argv[1], NULL, &engine.err), &engine.err);
    engine_open(&engine, 32, atoi(argv[3]));
    engine_start(&engine, 0);
    for (long done = 1; done <= batches; done++) {
        next_batch(&engine, &places);
        if (done == batches / 100 + 1)
            early = beside_slots(&places);
        if (done == batches / 2)
            half = beside_slots(&places);
    }
    printf("{\"batches\": %ld, \"early\": %.1f, \"half\": %.1f, \"end\": %.1f}\n", batches, early, half,
           beside_slots(&places));
    engine_close(&engine);
    return 0;
}
