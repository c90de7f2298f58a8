/* harness.h - loaders over small images, and digests of what they deliver
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_PIPE_HARNESS_H
#define ST_TESTS_PIPE_HARNESS_H

#include "base/clock.h"
#include "images.h"
#include "pipe/executor.h"
#include "pipe/loader.h"
#include "tap.h"

static const char train_text[] =
    "random_resized_crop(size=32); random_horizontal_flip; color_jitter(brightness=[0.6,1.4]); to_tensor; "
    "normalize(mean=[0.485,0.456,0.406],std=[0.229,0.224,0.225]); random_erasing(p=0.5)";

static struct stoker_loader_options harness_options(uint32_t batch, int32_t workers)
{
    return (struct stoker_loader_options){.size = sizeof(struct stoker_loader_options),
                                          .batch_size = batch,
                                          .workers = workers,
                                          .prefetch = 2,
                                          .order = STOKER_ORDER_SHUFFLE,
                                          .seed = 7,
                                          .dtype = STOKER_DTYPE_F32,
                                          .error_limit = UINT64_MAX,
                                          .pillow = 13,
                                          .pixel_limit = 1 << 20};
}

/* Opens data, pipeline and loader in one go; the loader keeps the others. NULL on failure. */
static inline struct stoker_loader *harness_open_on(const struct st_devices *devices, const struct stoker_item *items,
                                                    uint32_t count, const char *text,
                                                    const struct stoker_loader_options *opt, struct stoker_error *err)
{
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    int rc = st_dataset_from_memory(&data, items, count, err);
    if (!rc)
        rc = st_pipeline_open(&pipe, text, err);
    if (!rc)
        (void)st_loader_open(&loader, data, pipe, opt, devices, err);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    return loader;
}

/* The same without a device, with a note on failure. */
static inline struct stoker_loader *harness_open(const struct stoker_item *items, uint32_t count, const char *text,
                                                 const struct stoker_loader_options *opt)
{
    struct stoker_error err = {0};
    struct stoker_loader *loader = harness_open_on(NULL, items, count, text, opt, &err);
    if (!loader)
        note("open: %s", err.message);
    return loader;
}

/* Images by callbacks. Where `trouble` answers other than 0, so does the read. */
struct harness_calls {
    const struct stoker_item *items;
    uint32_t count;
    int (*trouble)(uint64_t sample, struct stoker_error *err);
};

static inline int harness_read(void *cookie, uint64_t sample, void *buffer, size_t capacity, size_t *size,
                               struct stoker_error *err)
{
    const struct harness_calls *calls = cookie;
    const struct stoker_item *item = &calls->items[sample];
    const int rc = calls->trouble(sample, err);
    if (rc)
        return rc;
    *size = item->size;
    if (item->size <= capacity)
        memcpy(buffer, item->data, item->size);
    return 0;
}

static inline int64_t harness_label(void *cookie, uint64_t sample)
{
    return ((const struct harness_calls *)cookie)->items[sample].label;
}

static inline struct stoker_loader *harness_open_calls(struct harness_calls *calls, uint32_t batch,
                                                       enum stoker_on_error policy, int32_t workers)
{
    const struct stoker_callbacks callbacks = {
        .size = sizeof callbacks, .count = calls->count, .read = harness_read, .label = harness_label};
    struct stoker_loader_options opt = harness_options(batch, workers);
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    struct stoker_error err = {0};
    opt.on_error = policy;
    if (st_dataset_from_callbacks(&data, &callbacks, calls, &err) ||
        st_pipeline_open(&pipe, "center_crop(size=16); to_tensor", &err) ||
        st_loader_open(&loader, data, pipe, &opt, NULL, &err))
        note("open: %s", err.message);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    return loader;
}

/* Eight bytes at a time: the largest tests take a digest of gigabytes. */
static inline uint64_t digest_bytes(uint64_t sum, const void *data, size_t size)
{
    const uint8_t *p = data;
    for (; size; p += 8) {
        uint64_t word = 0;
        const size_t part = size < 8 ? size : 8;
        memcpy(&word, p, part);
        sum = (sum ^ word) * 1099511628211ull;
        sum ^= sum >> 32;
        size -= part;
    }
    return sum;
}

static inline size_t tensor_bytes(const struct stoker_tensor *t)
{
    static const size_t element[] = {1, 4, 2, 2, 8};
    size_t bytes = element[t->dtype];
    for (int k = 0; k < t->ndim; k++)
        bytes *= (size_t)t->shape[k];
    return bytes;
}

static inline uint64_t digest_batch(const struct stoker_batch *batch)
{
    uint64_t sum = 14695981039346656037ull;
    sum = digest_bytes(sum, batch->labels.data, tensor_bytes(&batch->labels));
    sum = digest_bytes(sum, batch->samples, batch->count * sizeof *batch->samples);
    if (!batch->ragged)
        return digest_bytes(sum, batch->images.data, tensor_bytes(&batch->images));
    for (uint32_t k = 0; k < batch->count; k++)
        sum = digest_bytes(sum, batch->items[k].data, tensor_bytes(&batch->items[k]));
    return sum;
}

/* Takes up to `most` batches of the epoch under way; returns how many came before the end or an error. */
static inline uint32_t harness_take(struct stoker_loader *loader, uint64_t *digests, uint32_t most, int *status)
{
    const struct stoker_batch *batch;
    struct stoker_error err = {0};
    uint32_t taken = 0;
    int rc = STOKER_OK;
    while (taken < most && (rc = st_loader_next(loader, &batch, &err)) == STOKER_OK) {
        st_batch_sync(batch, NULL);
        digests[taken++] = digest_batch(batch);
        st_batch_release(batch, NULL);
    }
    if (rc < 0)
        note("next: %s", err.message);
    if (status)
        *status = rc;
    return taken;
}

/* Starts, takes a few batches, perhaps starts again, and closes with one batch still lent out; `k` says how. */
static inline void harness_abandon(struct stoker_loader *loader, uint32_t k)
{
    const struct stoker_batch *batch = NULL;
    st_loader_start(loader, NULL, 0, NULL);
    for (uint32_t taken = 0; taken < k % 7; taken++) {
        st_batch_release(batch, NULL);
        st_loader_next(loader, &batch, NULL);
    }
    if (k % 5 == 0)
        st_loader_start(loader, NULL, 0, NULL);
    st_loader_close(loader);
    st_batch_release(batch, NULL);
}

#endif
