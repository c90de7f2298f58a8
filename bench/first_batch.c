/* first_batch.c - how soon a loader delivers its first batch, from opening the folder on
 *
 *     first_batch FOLDER INDEX_DIR WORKERS BATCH
 *
 * Prints seconds: to open the dataset, from there to the first batch, and a batch in full flow, which
 * is the time that the decoding itself takes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "measure.h"

int main(int argc, char **argv)
{
    enum { FLOW = 8 };
    struct engine engine;
    struct stoker_dataset_options how = stoker_dataset_defaults();

    if (argc != 5)
        return 2;
    how.index_dir = argv[2];
    const double start = now();
    must(stoker_dataset_open(&engine.data, argv[1], &how, &engine.err), &engine.err);
    const double opened = now();
    engine_open(&engine, (uint32_t)atoi(argv[4]), atoi(argv[3]));
    engine_start(&engine, 0);
    engine_next(&engine);
    const double first = now();
    for (int i = 0; i < FLOW; i++)
        engine_next(&engine);
    printf("{\"open\": %.4f, \"first\": %.4f, \"flow\": %.4f, \"samples\": %lu}\n", opened - start,
           first - opened, (now() - first) / FLOW, (unsigned long)stoker_dataset_count(engine.data));
    engine_close(&engine);
    return 0;
}
