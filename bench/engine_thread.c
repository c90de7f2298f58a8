/* engine_thread.c - what the threads that keep a GPU's JPEG engines busy do besides that
 *
 *     engine_thread [-e known|all] [-w WORKERS] [-n EPOCHS] [-p PIPELINE] URI
 *
 * A loader whose engines decode nothing, on a device that does nothing, so it runs anywhere: reading files, checksums,
 * random draws, the weights of resizes, and jobs. Prints, for each epoch, the CPU time of the engine threads per image that
 * the engines "decoded", without that for files which the threads decoded themselves, and how many bytes of samples they
 * would have written. With "known", the first epochs make files known.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "codec/jpeg/headers.h"
#include "pipe/jpeg_chunk.h"
#include "pipe/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 256 };

/* ---- a device that does nothing ------------------------------------------------------------------- */

struct st_device_slot {
    void *host, *images;
};

static const struct st_device_kind kind;
static struct st_device_want wanted;

static int device_open(struct st_device **out, const struct st_device_want *want, struct stoker_error *err)
{
    (void)err;
    wanted = *want;
    *out = calloc(1, sizeof **out);
    if (!*out)
        return STOKER_ENOMEM;
    (*out)->kind = &kind;
    return STOKER_OK;
}

static void device_close(struct st_device *device) { free(device); }

static void slot_free(struct st_device *device, struct st_device_slot *slot)
{
    (void)device;
    if (!slot)
        return;
    free(slot->host);
    free(slot->images);
    free(slot);
}

static int slot_new(struct st_device *device, struct st_device_slot **out, void **host, bool *pinned,
                    struct stoker_error *err)
{
    const size_t row = (size_t)wanted.width * (size_t)wanted.height * (size_t)wanted.channels * wanted.finish->element;
    struct st_device_slot *slot = calloc(1, sizeof *slot);
    if (slot) {
        slot->host = calloc(1, wanted.host_bytes);
        slot->images = calloc(wanted.rows, row + sizeof(int64_t));
    }
    if (!slot || !slot->host || !slot->images) {
        slot_free(device, slot);
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    }
    *pinned = false;
    *host = slot->host;
    *out = slot;
    return STOKER_OK;
}

static int submit(struct st_device *device, struct st_device_slot *slot, uint32_t count, uint64_t used,
                  struct stoker_error *err)
{
    (void)device, (void)slot, (void)count, (void)used, (void)err;
    return STOKER_OK;
}

static void where(const struct st_device_slot *slot, void **images, void **labels)
{
    *images = *labels = slot->images;
}

static bool idle(struct st_device *device, struct st_device_slot *slot, bool wait)
{
    (void)device, (void)slot, (void)wait;
    return true;
}

static int join(struct st_device *device, struct st_device_slot *slot, uintptr_t stream, struct stoker_error *err)
{
    (void)device, (void)slot, (void)stream, (void)err;
    return STOKER_OK;
}

static int sync_slot(struct st_device *device, struct st_device_slot *slot, struct stoker_error *err)
{
    (void)device, (void)slot, (void)err;
    return STOKER_OK;
}

static void release(struct st_device *device, struct st_device_slot *slot) { (void)device, (void)slot; }

static const struct st_device_kind kind = {
    .name = "nothing", .type = 1, .open = device_open, .close = device_close, .slot_new = slot_new,
    .slot_free = slot_free, .submit = submit, .where = where, .idle = idle, .join = join, .sync = sync_slot,
    .release = release};

/* ---- engines that decode nothing ------------------------------------------------------------------ */

struct st_jpeg_engine {
    void *pinned;
};
static _Atomic uint64_t written; /* bytes, by all engines */

static int engine_open(struct st_jpeg_engine **out, struct st_device *device, uint32_t most,
                       struct st_jpeg_pinned *pinned, struct stoker_error *err)
{
    (void)device, (void)most;
    *out = calloc(1, sizeof **out);
    pinned->memory = calloc(1, pinned->bytes + 1);
    if (!*out || !pinned->memory)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    (*out)->pinned = pinned->memory;
    return STOKER_OK;
}

static void engine_close(struct st_jpeg_engine *engine)
{
    free(engine->pinned);
    free(engine);
}

static bool engine_regions(const struct st_jpeg_engine *engine) { return engine; }

static bool engine_takes(const struct st_jpeg_frame *frame) { return !frame->rgb && !frame->extended; }

static void engine_start(struct st_jpeg_engine *engine, struct st_jpeg_engine_image *image, uint32_t count,
                         uint64_t used)
{
    (void)engine, (void)used;
    for (uint32_t k = 0; k < count; k++)
        written += image[k].size;
}

static void engine_finish(struct st_jpeg_engine *engine, struct st_jpeg_engine_image *image, uint32_t count)
{
    (void)engine;
    for (uint32_t k = 0; k < count; k++)
        image[k].there = true;
}

static uint64_t engine_take(struct st_device *device, uint64_t bytes)
{
    (void)device, (void)bytes;
    return 1 << 20; /* an address that nobody follows */
}

static void engine_give(struct st_device *device, uint64_t memory) { (void)device, (void)memory; }

static const struct st_jpeg_engine_kind engines = {
    .name = "nothing", .open = engine_open, .close = engine_close, .regions = engine_regions, .takes = engine_takes,
    .start = engine_start, .finish = engine_finish, .take = engine_take, .give = engine_give};

/* ---- measuring ------------------------------------------------------------------------------------ */

static double engine_cpu(const struct stoker_loader *loader)
{
    double seconds = 0;
    for (uint32_t k = 0; k < loader->engines.threads; k++) {
        const struct st_worker *worker = &loader->engines.worker[k].worker;
        clockid_t clock;
        struct timespec t;
        if (!pthread_getcpuclockid(worker->thread, &clock) && !clock_gettime(clock, &t))
            seconds += (double)t.tv_sec + (double)t.tv_nsec / 1e9;
        seconds -= (double)(worker->stage_ns[STOKER_STAGE_DECODE] + worker->stage_ns[STOKER_STAGE_AUGMENT]) / 1e9;
    }
    return seconds;
}

static int epoch(struct stoker_loader *loader, uint64_t number, struct stoker_error *err)
{
    const struct stoker_batch *batch;
    struct stoker_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    const struct stoker_epoch which = {.size = sizeof which, .epoch = number};
    st_loader_stats(loader, &before);
    const double cpu = engine_cpu(loader);
    const uint64_t began = st_now_ns(), written_before = written;
    int rc = st_loader_start(loader, &which, 0, err);
    while (!rc && !(rc = st_loader_next(loader, &batch, err)))
        st_batch_release(batch, NULL);
    if (rc != STOKER_END)
        return rc;
    const double seconds = (double)(st_now_ns() - began) / 1e9, used = engine_cpu(loader) - cpu;
    st_loader_stats(loader, &after);
    const double rows = (double)(after.engine_rows - before.engine_rows);
    printf("epoch %llu: %.0f img/s, %.0f %% by engines, their threads %.1f us of CPU time, %.0f KB of samples per image\n",
           (unsigned long long)number, (double)(after.samples - before.samples) / seconds,
           100 * rows / (double)(after.samples - before.samples), rows > 0 ? used / rows * 1e6 : 0,
           rows > 0 ? (double)(written - written_before) / rows / 1e3 : 0);
    fflush(stdout);
    return STOKER_OK;
}

int main(int argc, char **argv)
{
    const char *uri = NULL, *text = "random_resized_crop(size=224); random_horizontal_flip; to_tensor";
    struct stoker_loader_options opt = {.size = sizeof opt, .batch_size = BATCH, .workers = 2, .prefetch = 4,
                                        .order = STOKER_ORDER_SHUFFLE, .dtype = STOKER_DTYPE_BF16, .pillow = 13,
                                        .layout = STOKER_LAYOUT_NHWC, .pixel_limit = 1 << 28};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    struct stoker_error err = {0};
    int epochs = 8;
    for (int k = 1; k < argc; k++) {
        const char *value = argv[k][0] == '-' && k + 1 < argc ? argv[k + 1] : NULL;
        if (value && argv[k][1] == 'e')
            opt.engines = strcmp(value, "all") ? STOKER_ENGINES_KNOWN : STOKER_ENGINES_ALL;
        else if (value && argv[k][1] == 'w')
            opt.workers = atoi(value);
        else if (value && argv[k][1] == 'n')
            epochs = atoi(value);
        else if (value && argv[k][1] == 'p')
            text = value;
        else
            uri = argv[k];
        k += value != NULL;
    }
    if (!uri) {
        fprintf(stderr, "usage: engine_thread [-e known|all] [-w WORKERS] [-n EPOCHS] [-p PIPELINE] URI\n");
        return 2;
    }
    int rc = st_dataset_open(&data, uri, NULL, &err);
    if (!rc)
        rc = st_pipeline_open(&pipe, text, &err);
    if (!rc)
        rc = st_loader_open(&loader, data, pipe, &opt, &(struct st_devices){.kind = &kind, .engine = &engines}, &err);
    for (int k = 0; !rc && k < epochs; k++)
        rc = epoch(loader, (uint64_t)k, &err);
    if (rc)
        fprintf(stderr, "%s\n", err.message);
    if (loader)
        st_loader_close(loader);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    return rc != 0;
}
