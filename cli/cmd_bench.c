/* cmd_bench.c - `stoker bench`: measures how fast this machine loads a dataset, and what limits it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/pack/pack.h"

#include "base/clock.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRAINING                                                                                        \
    "random_resized_crop(size=224); random_horizontal_flip; to_tensor; "                                \
    "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])"
#define HEARING "audio_mono; audio_crop(seconds=1)"

struct bench {
    const char *data;
    const char *pipeline; /* NULL: chosen by what the samples contain */
    enum bench_media media;
    uint64_t workers, batch;
    double seconds;
    bool json;
    /* results */
    struct others others;
    double open_seconds;
    bool read_measured, decode_measured; /* not decoded: there is nothing to decode */
    uint64_t read_failed;
    char read_error[1024]; /* why reading could not be measured, or the last sample that failed */
    double reads_per_second, read_bytes_per_second, bytes_per_read;
    double decode_rate;
    uint64_t decode_failed;
    struct bench_pipeline one, all;
};

static int parse(struct bench *bench, int argc, char **argv)
{
    struct arguments args = ARGUMENTS(&cmd_bench, argc, argv);
    while (next_argument(&args)) {
        if (option_is(&args, "--workers"))
            accept_value(&args, parse_count(args.value, 1, 1024, &bench->workers));
        else if (option_is(&args, "--batch"))
            accept_value(&args, parse_count(args.value, 1, 65536, &bench->batch));
        else if (option_is(&args, "--seconds"))
            accept_value(&args, parse_seconds(args.value, 0.1, 3600, &bench->seconds));
        else if (option_is(&args, "--pipeline"))
            bench->pipeline = args.value;
        else if (option_is(&args, "--json"))
            bench->json = true;
        else if (bench->data)
            refuse_argument(&args);
        else
            bench->data = args.word;
    }
    if (args.failed)
        return EXIT_USAGE;
    return bench->data ? EXIT_OK
                       : fail(EXIT_USAGE, "bench: which dataset? Example: stoker bench path/to/train");
}

/* ---- as text, while it measures ------------------------------------------------------------------- */

static const char *const units[] = {[BENCH_IMAGES] = "img/s",
                                    [BENCH_SOUNDS] = "snd/s",
                                    [BENCH_NEITHER] = "smp/s"};

static void print_rate(const struct bench *b, const char *what, double rate, const char *remark)
{
    struct number_text room;
    printf("%-12s %9s %s   %s\n", what, with_commas(&room, rate), units[b->media], remark);
}

static const char *const stage_names[STOKER_STAGE_COUNT] = {
    [STOKER_STAGE_READ] = "read",
    [STOKER_STAGE_DECODE] = "decode",
    [STOKER_STAGE_AUGMENT] = "augment",
    [STOKER_STAGE_SLOT] = "slot",
};
static const char *const stage_remarks[STOKER_STAGE_COUNT] = {
    [STOKER_STAGE_READ] = "waiting for the bytes of a sample",
    [STOKER_STAGE_DECODE] = "headers and pixels",
    [STOKER_STAGE_AUGMENT] = "ops and the final write",
    [STOKER_STAGE_SLOT] = "waiting for the consumer",
};
static const char *const stage_advice[STOKER_STAGE_COUNT] = {
    [STOKER_STAGE_READ] =
        "The limit is reading: the storage is too slow. A faster disk, a warm page cache or more "
        "read-ahead would help; more workers would not.",
    [STOKER_STAGE_DECODE] =
        "The limit is decoding: it takes most of the CPU time. More CPUs, smaller images or a GPU with "
        "JPEG decoders (device=\"cuda\") would help; faster storage would not.",
    [STOKER_STAGE_AUGMENT] =
        "The limit is augmentation: the ops take more CPU time than decoding. More CPUs or "
        "cheaper ops would help; faster storage would not.",
    [STOKER_STAGE_SLOT] = "The limit is the consumer: workers wait until it takes a batch.",
};

static void print_stages(const struct stoker_stats *stats)
{
    double total = 0;
    int most = 0;
    for (int i = 0; i < STOKER_STAGE_COUNT; i++) {
        total += (double)stats->stage_ns[i];
        if (stats->stage_ns[i] > stats->stage_ns[most])
            most = i;
    }
    if (total <= 0 || stats->samples == 0)
        return;
    puts("\nwhere the workers' time went");
    for (int i = 0; i < STOKER_STAGE_COUNT; i++)
        printf("  %-8s %5.1f %%  %8.1f us per sample   %s\n", stage_names[i],
               100 * (double)stats->stage_ns[i] / total,
               (double)stats->stage_ns[i] / 1e3 / (double)stats->samples, stage_remarks[i]);
    printf("\n%s\n", stage_advice[most]);
}

/* The name of the kernels chosen for this CPU, or NULL. */
static const char *kernels_name(void)
{
    struct stoker_feature feature = {.size = sizeof feature};
    for (uint32_t i = 0; stoker_feature_at(i, &feature); i++)
        if (!strcmp(feature.kind, "kernels"))
            return feature.name; /* stop here: GPUs come next, and listing them would start the driver */
    return NULL;
}

static void print_data(const struct bench *bench, const struct stoker_dataset *data)
{
    char others[128];
    if (others_text(others, sizeof others, &bench->others))
        printf("busy         %s\n", others);
    struct number_text room;
    const char *kernels = kernels_name();
    struct shown_text name;
    const uint64_t count = stoker_dataset_count(data);
    const uint32_t classes = stoker_dataset_class_count(data), cpus = stoker_cpu_count();
    printf("data         %s: %s sample%s, %u class%s, opened in %.3f s\n", shown(&name, bench->data),
           with_commas(&room, (double)count), st_s(count), classes, st_es(classes), bench->open_seconds);
    printf("machine      %u CPU%s%s%s%s\n", cpus, st_s(cpus), kernels ? ", " : "",
           kernels ? kernels : "", kernels ? " kernels" : "");
    fflush(stdout);
}

static void print_parts(const struct bench *b, const struct stoker_error *err)
{
    char remark[128];
    struct shown_text room;
    if (!b->read_measured) {
        printf("%-12s not measured: %s\n", "read", shown(&room, b->read_error));
        return;
    }
    snprintf(remark, sizeof remark, "%.0f MB/s, one sample at a time, %.1f KB per sample",
             b->read_bytes_per_second / 1e6, b->bytes_per_read / 1e3);
    print_rate(b, "read", b->reads_per_second, remark);
    if (b->read_failed)
        printf("%-12s %9lu could not be read; the last: %s\n", "", (unsigned long)b->read_failed,
               shown(&room, b->read_error));
    if (b->decode_measured)
        print_rate(b, "decode", b->decode_rate,
                   b->media == BENCH_SOUNDS ? "whole sounds, one core" : "whole images, one core");
    else
        printf("%-12s %9s         the samples have nothing to decode\n", "decode", "-");
    if (b->decode_failed)
        printf("%-12s %9lu could not be decoded; the last: %s\n", "", (unsigned long)b->decode_failed,
               shown(&room, err->message));
    fflush(stdout);
}

static void print_one(const struct bench *b)
{
    char remark[128] = "1 worker";
    if (b->decode_rate > 0)
        snprintf(remark, sizeof remark, "1 worker, %.2f times the rate of decoding whole %s",
                 b->one.rate / b->decode_rate, b->media == BENCH_SOUNDS ? "sounds" : "images");
    print_rate(b, "pipeline", b->one.rate, remark);
    fflush(stdout);
}

static void print_all(const struct bench *b)
{
    const struct stoker_stats *stats = &b->all.stats;
    char remark[128];
    if (b->workers > 1) {
        snprintf(remark, sizeof remark, "%u workers, %.2f times the rate of one", stats->workers,
                 b->all.rate / b->one.rate);
        print_rate(b, "", b->all.rate, remark);
    }
    printf("first batch  %9.3f s       of %lu sample%s\n", b->all.first_batch_seconds,
           (unsigned long)b->batch, st_s(b->batch));
    printf("memory       %9.1f MB      peak, of %.0f MB allowed; now %.1f MB in slots, %.1f MB scratch, "
           "%.1f MB read by %s\n",
           (double)stats->memory_peak / 1e6, (double)stats->memory_allowed / 1e6,
           (double)stats->slot_bytes / 1e6, (double)stats->scratch_bytes / 1e6,
           (double)stats->read_bytes / 1e6, stats->reader ? stats->reader : "?");
    if (stats->bad)
        printf("bad samples  %9lu         replaced by others\n", (unsigned long)stats->bad);
    print_stages(stats);
}

/* ---- as JSON -------------------------------------------------------------------------------------- */

static void write_pipeline(struct json *json, const struct bench_pipeline *p)
{
    const struct stoker_stats *stats = &p->stats;
    json_open(json, NULL, '{');
    json_count(json, "workers", stats->workers);
    json_number(json, "samples_per_second", p->rate);
    json_number(json, "first_batch_seconds", p->first_batch_seconds);
    json_count(json, "bad", stats->bad);
    json_count(json, "memory_peak", stats->memory_peak);
    json_count(json, "memory_allowed", stats->memory_allowed);
    json_string(json, "reader", stats->reader);
    json_open(json, "stage_seconds", '{'); /* of all workers together */
    for (int i = 0; i < STOKER_STAGE_COUNT; i++)
        json_number(json, stage_names[i], (double)stats->stage_ns[i] / 1e9);
    json_close(json, '}');
    json_close(json, '}');
}

static void write_results(const struct bench *b, const struct stoker_dataset *data)
{
    struct json json = {.to = stdout};
    json_open(&json, NULL, '{');
    json_string(&json, "data", b->data);
    json_count(&json, "samples", stoker_dataset_count(data));
    json_count(&json, "classes", stoker_dataset_class_count(data));
    json_number(&json, "open_seconds", b->open_seconds);
    json_count(&json, "cpus", stoker_cpu_count());
    json_number(&json, "cpus_busy_others", b->others.used);
    json_string(&json, "kernels", kernels_name());
    json_string(&json, "ops", b->pipeline);
    json_count(&json, "batch_size", b->batch);
    json_open(&json, "read", '{');
    json_number(&json, "files_per_second", b->read_measured ? b->reads_per_second : NAN);
    json_number(&json, "bytes_per_second", b->read_measured ? b->read_bytes_per_second : NAN);
    json_number(&json, "bytes_per_file", b->read_measured ? b->bytes_per_read : NAN);
    json_count(&json, "failed", b->read_failed);
    json_string(&json, "error", b->read_error[0] ? b->read_error : NULL);
    json_close(&json, '}');
    json_open(&json, "decode", '{');
    json_number(&json, "images_per_second", b->decode_measured ? b->decode_rate : NAN);
    json_count(&json, "failed", b->decode_failed);
    json_close(&json, '}');
    json_open(&json, "pipelines", '[');
    write_pipeline(&json, &b->one);
    if (b->workers > 1)
        write_pipeline(&json, &b->all);
    json_close(&json, ']');
    json_close(&json, '}');
}

/* ---- measuring ------------------------------------------------------------------------------------ */

/* Reads and decodes in one thread. */
static int measure_parts(struct bench *b, struct stoker_dataset *data, struct stoker_error *err)
{
    struct bench_files files;
    const double seconds = b->seconds / 4;
    int rc = bench_read(&files, data, seconds, err);
    b->read_measured = rc == STOKER_OK;
    b->read_failed = files.failed;
    if (rc != STOKER_OK || files.failed)
        snprintf(b->read_error, sizeof b->read_error, "%s", err->message);
    rc = STOKER_OK;
    if (b->read_measured) {
        b->reads_per_second = (double)files.reads / files.seconds;
        b->read_bytes_per_second = (double)files.bytes / files.seconds;
        b->bytes_per_read = (double)files.bytes / (double)files.reads;
        if (files.count)
            rc = bench_decode(&files, data, seconds, &b->decode_rate, &b->decode_failed, err);
        b->decode_measured = files.count && rc == STOKER_OK;
    }
    bench_free(&files);
    if (!b->json && rc == STOKER_OK)
        print_parts(b, err);
    return rc;
}

static int measure_pipeline(struct bench *b, struct stoker_dataset *data, struct stoker_pipeline *pipe,
                            struct stoker_error *err)
{
    struct stoker_loader_options opt = stoker_loader_defaults();
    const double seconds = b->seconds / 4;
    opt.batch_size = (uint32_t)b->batch;
    opt.order = STOKER_ORDER_SHUFFLE;
    opt.on_error = STOKER_ON_ERROR_SKIP;
    opt.workers = 1;
    int rc = bench_pipeline(&b->one, data, pipe, &opt, seconds, "pipeline, 1 worker", err);
    if (rc != STOKER_OK)
        return rc;
    if (!b->json)
        print_one(b);
    b->all = b->one;
    if (b->workers > 1) {
        opt.workers = (int32_t)b->workers;
        rc = bench_pipeline(&b->all, data, pipe, &opt, seconds, "pipeline, all workers", err);
    }
    if (rc == STOKER_OK && !b->json)
        print_all(b);
    return rc;
}

static int bench_run(int argc, char **argv)
{
    static const char *const pipelines[] = {
        [BENCH_IMAGES] = TRAINING, [BENCH_SOUNDS] = HEARING, [BENCH_NEITHER] = ""};
    struct bench bench = {.workers = stoker_cpu_count(), .batch = 64, .seconds = 8};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_error err;
    struct st_location place = {0};
    const int usage = parse(&bench, argc, argv);
    if (usage != EXIT_OK)
        return usage;
    bench.others = cpus_of_others();
    const uint64_t start = st_now_ns();
    int rc = pack_data_open(&data, &place, bench.data, NULL, &err);
    bench.open_seconds = (double)(st_now_ns() - start) / 1e9;
    if (rc == STOKER_OK) {
        uint32_t field;
        bench.media = bench_media_of(data, &field);
        bench.pipeline = bench.pipeline ? bench.pipeline : pipelines[bench.media];
        rc = stoker_pipeline_open(&pipe, bench.pipeline, &err);
    }
    if (rc == STOKER_OK) {
        if (!bench.json)
            print_data(&bench, data);
        rc = measure_parts(&bench, data, &err);
    }
    if (rc == STOKER_OK)
        rc = measure_pipeline(&bench, data, pipe, &err);
    if (rc == STOKER_OK && bench.json)
        write_results(&bench, data);
    st_location_free(&place);
    stoker_dataset_close(data);
    stoker_pipeline_close(pipe);
    return rc == STOKER_OK ? EXIT_OK : fail(EXIT_FAILED, "%s", err.message);
}

static const struct cli_option options[] = {
    {"--workers", "N", "number of threads that decode (default: the CPUs this process may use)",
     "a whole number from 1 to 1024"},
    {"--batch", "N", "samples per batch (default 64)", "a whole number from 1 to 65536"},
    {"--seconds", "S", "time for all measurements together (default 8)",
     "a number of seconds from 0.1 to 3600"},
    {"--pipeline", "TEXT",
     "the ops, such as \"resize(size=256); center_crop(size=224); to_tensor\"\n"
     "(default: crop, flip, to_tensor and normalize as in ImageNet training; for sounds one\n"
     "channel and one second; nothing for samples without either)",
     "ops separated by semicolons, such as \"resize(size=256); to_tensor\""},
    {"--json", NULL, "print the measurements as JSON"},
    {NULL},
};

const struct command cmd_bench = {
    .name = "bench",
    .summary = "measure how fast this machine reads, decodes and loads a dataset, and what limits it",
    .synopsis = "DATA [OPTIONS]",
    .about = "Measures reading, decoding on one core, and the whole pipeline with one worker and\n"
             "with all; then shows where the workers spent their time. DATA is a folder with one\n"
             "sub-folder per class, flat:DIR for images without classes, any other dataset that\n"
             "Stoker opens, or a folder that 'stoker pack' wrote.",
    .options = options,
    .arguments = COMPLETES_FILES,
    .run = bench_run,
};
