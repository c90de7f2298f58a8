/* jpeg_thread.c - what the threads that keep a GPU's JPEG hardware busy do besides that
 *
 *     jpeg_thread [-e known|all] [-w WORKERS] [-n EPOCHS] [-p PIPELINE] [-b PREFETCH]
 *                   [-r RATE [-a BATCHES]] [-t US] [-c CPUS] [-i THREADS] URI
 *
 * A loader whose hardware decodes nothing, on a device that does nothing, so it runs anywhere: reading files, checksums,
 * random draws, the weights of resizes, and jobs. Prints, for each epoch, the CPU time of the JPEG threads per image that
 * the hardware "decoded", without that for files which the threads decoded themselves, and how many bytes of samples they
 * would have written. With "known", the first epochs make files known.
 *
 * -r is a consumer that trains RATE images per second, and takes up to BATCHES before it has trained them (-a 1: one); it
 * says how often training had to wait. -t is the CPU time that passing an image to the hardware takes, by one thread at a
 * time. -c makes the loader assume so many CPUs, and -i is the number of JPEG threads (1 or 2): on 2 CPUs, `-c 3 -i 1`
 * has a JPEG thread and a worker, as if a consumer needed a third CPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "codec/jpeg/headers.h"
#include "pipe/jpeg_work.h"
#include "pipe/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 256, LAST_BATCHES = 64 };

static struct {
    const char *uri, *text;
    int epochs;
    double rate, cpus;
    uint32_t before_trained, image_us, threads;
} want = {.text = "random_resized_crop(size=224); random_horizontal_flip; to_tensor", .epochs = 8, .before_trained = 1,
          .threads = ST_JPEG_THREADS};

/* ---- training ------------------------------------------------------------------------------------- */

static struct {
    uint64_t trained_ns[LAST_BATCHES]; /* when training with a batch ends */
    uint64_t batches, waits, wait_ns;
} training;

/* Sleeps until the consumer asks for its next batch. */
static void before_batch(void)
{
    const uint64_t now = st_now_ns(), taken = training.batches, most = want.before_trained;
    const uint64_t until = want.rate > 0 && taken >= most ? training.trained_ns[(taken - most) % LAST_BATCHES] : 0;
    if (until > now)
        usleep((unsigned)((until - now) / 1000));
}

static void got_batch(void)
{
    const uint64_t now = st_now_ns(), step = want.rate > 0 ? (uint64_t)(BATCH / want.rate * 1e9) : 0;
    const uint64_t last = training.batches ? training.trained_ns[(training.batches - 1) % LAST_BATCHES] : now;
    training.waits += now > last + step / 50;
    training.wait_ns += now > last ? now - last : 0;
    training.trained_ns[training.batches++ % LAST_BATCHES] = (now > last ? now : last) + step;
}

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

/* ---- hardware that decodes nothing ------------------------------------------------------------------ */

struct st_jpeg_hw {
    void *pinned;
};
static _Atomic uint64_t written; /* bytes, by all threads */
static _Atomic uint32_t opened;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static int hw_open(struct st_jpeg_hw **out, struct st_device *device, uint32_t most,
                       struct st_jpeg_pinned *pinned, const struct st_flag *unwanted, struct stoker_error *err)
{
    (void)device, (void)most, (void)unwanted;
    if (opened++ >= want.threads)
        return st_fail(err, STOKER_EUNSUPPORTED, "%u JPEG threads are wanted", want.threads);
    *out = calloc(1, sizeof **out);
    pinned->memory = calloc(1, pinned->bytes + 1);
    if (!*out || !pinned->memory)
        return st_fail(err, STOKER_ENOMEM, "out of memory");
    (*out)->pinned = pinned->memory;
    return STOKER_OK;
}

static void hw_close(struct st_jpeg_hw *hw)
{
    free(hw->pinned);
    free(hw);
}

static bool hw_regions(const struct st_jpeg_hw *hw) { return hw; }

static bool hw_takes(const struct st_jpeg_frame *frame) { return !frame->rgb && !frame->extended; }

static void hw_start(struct st_jpeg_hw *hw, struct st_jpeg_hw_image *image, uint32_t count,
                         uint64_t used)
{
    (void)hw, (void)used;
    pthread_mutex_lock(&turn);
    const uint64_t until = st_thread_cpu_ns() + (uint64_t)count * want.image_us * 1000;
    while (st_thread_cpu_ns() < until)
        ;
    pthread_mutex_unlock(&turn);
    for (uint32_t k = 0; k < count; k++)
        written += image[k].size;
}

static void hw_finish(struct st_jpeg_hw *hw, struct st_jpeg_hw_image *image, uint32_t count)
{
    (void)hw;
    for (uint32_t k = 0; k < count; k++)
        image[k].there = true;
}

static uint64_t hw_take(struct st_device *device, uint64_t bytes)
{
    (void)device, (void)bytes;
    return 1 << 20; /* an address that nobody follows */
}

static void hw_give(struct st_device *device, uint64_t memory) { (void)device, (void)memory; }

static const struct st_jpeg_hw_kind hardware = {
    .name = "nothing", .open = hw_open, .close = hw_close, .regions = hw_regions, .takes = hw_takes,
    .start = hw_start, .finish = hw_finish, .take = hw_take, .give = hw_give};

/* ---- measuring ------------------------------------------------------------------------------------ */

static double hardware_cpu(const struct stoker_loader *loader)
{
    double seconds = 0;
    for (uint32_t k = 0; k < loader->jpeg.threads; k++) {
        const struct st_worker *worker = &loader->jpeg.worker[k].worker;
        clockid_t clock;
        if (!pthread_getcpuclockid(worker->thread, &clock))
            seconds += (double)st_clock_ns(clock) / 1e9;
        seconds -= (double)(worker->stage_ns[STOKER_STAGE_DECODE] + worker->stage_ns[STOKER_STAGE_AUGMENT]) / 1e9;
    }
    return seconds;
}

/* ---- epochs --------------------------------------------------------------------------------------- */

static int run_epoch(struct stoker_loader *loader, uint64_t number, struct stoker_error *err)
{
    const struct stoker_batch *batch;
    const struct stoker_epoch which = {.size = sizeof which, .epoch = number};
    int rc = st_loader_start(loader, &which, 0, err);
    while (!rc) {
        before_batch();
        rc = st_loader_next(loader, &batch, err);
        if (rc || (rc = st_batch_join(batch, 0, err)))
            break;
        got_batch();
        st_batch_release(batch, NULL);
    }
    return rc == STOKER_END ? STOKER_OK : rc;
}

static int epoch(struct stoker_loader *loader, uint64_t number, struct stoker_error *err)
{
    struct stoker_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    st_loader_stats(loader, &before);
    const double hardware_before = hardware_cpu(loader);
    const uint64_t began = st_now_ns(), cpu = st_process_cpu_ns(), written_before = written, waits = training.waits,
                   wait_ns = training.wait_ns;
    const int rc = run_epoch(loader, number, err);
    if (rc)
        return rc;
    const double seconds = (double)(st_now_ns() - began) / 1e9, used = hardware_cpu(loader) - hardware_before;
    st_loader_stats(loader, &after);
    const double samples = (double)(after.samples - before.samples), rows = (double)(after.jpeg_hardware_rows - before.jpeg_hardware_rows);
    printf("epoch %llu: %.0f img/s, %.0f %% by hardware, its threads %.1f us of CPU time, %.0f KB of samples per image",
           (unsigned long long)number, samples / seconds, 100 * rows / samples, rows > 0 ? used / rows * 1e6 : 0,
           rows > 0 ? (double)(written - written_before) / rows / 1e3 : 0);
    if (want.rate > 0)
        printf("; %.2f CPUs, training waited %llu times, %.1f ms", (double)(st_process_cpu_ns() - cpu) / 1e9 / seconds,
               (unsigned long long)(training.waits - waits), (double)(training.wait_ns - wait_ns) / 1e6);
    printf("\n");
    fflush(stdout);
    return STOKER_OK;
}

/* An option that has a value. False: there is none of that name. */
static bool option(char name, const char *value, struct stoker_loader_options *opt)
{
    switch (name) {
    case 'e': opt->jpeg_hardware = strcmp(value, "all") ? STOKER_JPEG_HARDWARE_KNOWN : STOKER_JPEG_HARDWARE_ALL; break;
    case 'w': opt->workers = atoi(value); break;
    case 'b': opt->prefetch = (uint32_t)atoi(value); break;
    case 'n': want.epochs = atoi(value); break;
    case 'p': want.text = value; break;
    case 'r': want.rate = atof(value); break;
    case 'a': want.before_trained = (uint32_t)atoi(value); break;
    case 't': want.image_us = (uint32_t)atoi(value); break;
    case 'c': want.cpus = atof(value); break;
    case 'i': want.threads = (uint32_t)atoi(value); break;
    default: return false;
    }
    return want.before_trained > 0 && want.before_trained <= LAST_BATCHES;
}

static int usage(void)
{
    fprintf(stderr, "usage: jpeg_thread [-e known|all] [-w WORKERS] [-n EPOCHS] [-p PIPELINE] [-b PREFETCH]\n"
                    "                     [-r RATE [-a BATCHES]] [-t US] [-c CPUS] [-i THREADS] URI\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct stoker_loader_options opt = {.size = sizeof opt, .batch_size = BATCH, .workers = 2, .prefetch = 4,
                                        .order = STOKER_ORDER_SHUFFLE, .dtype = STOKER_DTYPE_BF16, .pillow = 13,
                                        .layout = STOKER_LAYOUT_NHWC, .pixel_limit = 1 << 28};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_loader *loader = NULL;
    struct stoker_error err = {0};
    for (int k = 1; k < argc; k++) {
        if (argv[k][0] != '-')
            want.uri = argv[k];
        else if (k + 1 == argc || !option(argv[k][1], argv[k + 1], &opt))
            return usage();
        else
            k++;
    }
    if (!want.uri)
        return usage();
    int rc = st_dataset_open(&data, want.uri, NULL, &err);
    if (!rc)
        rc = st_pipeline_open(&pipe, want.text, &err);
    if (!rc)
        rc = st_loader_open(&loader, data, pipe, &opt, &(struct st_devices){.kind = &kind, .jpeg_hw = &hardware}, &err);
    if (!rc && want.cpus > 0)
        loader->tuning.cpus = want.cpus;
    for (int k = 0; !rc && k < want.epochs; k++)
        rc = epoch(loader, (uint64_t)k, &err);
    if (rc)
        fprintf(stderr, "%s\n", err.message);
    if (loader)
        st_loader_close(loader);
    st_pipeline_drop(pipe);
    st_dataset_drop(data);
    return rc != 0;
}
