/* bench.h - what `stoker bench` measures
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_BENCH_H
#define ST_CLI_BENCH_H

#include "stoker/stoker.h"

/* What the samples of a dataset have to decode: their first image, or else their first sound. */
enum bench_media { BENCH_IMAGES, BENCH_SOUNDS, BENCH_NEITHER };
enum bench_media bench_media_of(const struct stoker_dataset *data, uint32_t *field);

/* The encoded images or sounds of some samples, read once and kept in memory. */
struct bench_files {
    struct bench_file {
        void *data;
        size_t size;
        uint64_t sample;
    } * file;
    size_t count;
    uint64_t bytes; /* of all samples read, kept or not */
    uint64_t reads, failed;
    double seconds;
};

/* Reads samples one by one in one thread, and keeps what they have to decode until a limit of memory.
 * Samples that cannot be read are counted; fails if none can. */
int bench_read(struct bench_files *files, struct stoker_dataset *data, double seconds,
               struct stoker_error *err);
void bench_free(struct bench_files *files);

/* How many whole images or sounds one core decodes per second; *bad counts the failures. */
int bench_decode(const struct bench_files *files, const struct stoker_dataset *data, double seconds,
                 double *rate, uint64_t *bad, struct stoker_error *err);

struct bench_pipeline {
    double rate; /* samples per second, after the first batch */
    double first_batch_seconds;
    struct stoker_stats stats;
};
/* Runs the whole pipeline, shuffled, epoch after epoch until the time is up. */
int bench_pipeline(struct bench_pipeline *out, struct stoker_dataset *data, struct stoker_pipeline *pipe,
                   const struct stoker_loader_options *opt, double seconds, const char *label,
                   struct stoker_error *err);

#endif
