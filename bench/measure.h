/* measure.h - what the measuring programs share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BENCH_MEASURE_H
#define ST_BENCH_MEASURE_H

#include <stoker/stoker.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define TRAINING                                                                                        \
    "random_resized_crop(size=224); random_horizontal_flip; to_tensor; "                                \
    "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])"

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Ends the program with the error's sentence unless all went well. */
static inline void must(int status, const struct stoker_error *err)
{
    if (status != STOKER_OK) {
        fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
}

/* Resident memory of this process, in bytes. */
static inline double resident(void)
{
    unsigned long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu %lu", &size, &pages) != 2)
        exit(1);
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* What a measurement runs on. */
struct engine {
    struct stoker_error err;
    struct stoker_dataset *data;
    struct stoker_pipeline *pipe;
    struct stoker_loader *loader;
    struct stoker_epoch epoch;
};

/* Opens a shuffling loader over engine->data. */
static inline void engine_open(struct engine *engine, uint32_t batch_size, int workers)
{
    struct stoker_loader_options opt = stoker_loader_defaults();
    opt.batch_size = batch_size;
    opt.workers = workers;
    opt.order = STOKER_ORDER_SHUFFLE;
    engine->epoch = stoker_epoch_defaults();
    must(stoker_pipeline_open(&engine->pipe, TRAINING, &engine->err), &engine->err);
    must(stoker_loader_open(&engine->loader, engine->data, engine->pipe, &opt, &engine->err),
         &engine->err);
}

static inline void engine_start(struct engine *engine, uint64_t epoch)
{
    engine->epoch.epoch = epoch;
    must(stoker_loader_start(engine->loader, &engine->epoch, &engine->err), &engine->err);
}

/* The next batch; at the end of an epoch the next one begins. */
static inline const struct stoker_batch *engine_take(struct engine *engine)
{
    const struct stoker_batch *batch;
    int rc = stoker_loader_next(engine->loader, &batch, &engine->err);
    if (rc == STOKER_END) {
        engine_start(engine, engine->epoch.epoch + 1);
        rc = stoker_loader_next(engine->loader, &batch, &engine->err);
    }
    must(rc, &engine->err);
    return batch;
}

static inline void engine_next(struct engine *engine) { stoker_batch_release(engine_take(engine)); }

static inline void engine_close(struct engine *engine)
{
    stoker_loader_close(engine->loader);
    stoker_pipeline_close(engine->pipe);
    stoker_dataset_close(engine->data);
}

#endif
