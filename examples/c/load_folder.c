/* load_folder.c - the shortest useful program: loads a folder of images in batches
 *
 *     cc load_folder.c -o load_folder $(pkg-config --cflags --libs stoker) && ./load_folder train
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stoker/stoker.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    struct stoker_error err;
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    struct stoker_loader_options opt = stoker_loader_defaults();
    const struct stoker_batch *batch;
    unsigned long samples = 0;
    int rc;

    opt.batch_size = 64;
    opt.order = STOKER_ORDER_SHUFFLE;
    if ((rc = stoker_dataset_open(&data, argc > 1 ? argv[1] : "train", NULL, &err)) == STOKER_OK &&
        (rc = stoker_pipeline_open(&pipe, "random_resized_crop(size=224); to_tensor", &err)) ==
            STOKER_OK &&
        (rc = stoker_loader_open(&loader, data, pipe, &opt, &err)) == STOKER_OK &&
        (rc = stoker_loader_start(loader, NULL, &err)) == STOKER_OK)
        while ((rc = stoker_loader_next(loader, &batch, &err)) == STOKER_OK) {
            samples += batch->count; /* batch->images.data is float32 [count, 3, 224, 224] */
            stoker_batch_release(batch);
        }
    if (rc == STOKER_END)
        printf("%lu samples\n", samples);
    else
        fprintf(stderr, "%s\n", err.message);
    stoker_loader_close(loader);
    stoker_pipeline_close(pipe);
    stoker_dataset_close(data);
    return rc != STOKER_END;
}
