/* cmd_bench.c - `stoker bench`: how fast this machine loads a data set, and where the limit is
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/bench.h"
#include "cli/cli.h"
#include "cli/pack/pack.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

#define TRAINING                                                                                        \
    "random_resized_crop(size=224); random_horizontal_flip; to_tensor; "                                \
    "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])"

struct bench {
    const char *data;
    const char *pipeline;
    uint64_t workers, batch;
    double seconds;
};

static int parse(struct bench *bench, int argc, char **argv)
{
    static const char *const names[] = {"--workers", "--batch", "--seconds", "--pipeline", NULL};
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        bool good;
        if (option[0] != '-') {
            if (bench->data)
                return fail(EXIT_USAGE, "one data set at a time: '%s' is one too many", option);
            bench->data = option;
            continue;
        }
        if (option_is(option, "--workers"))
            good = parse_count(option_value(argc, argv, &i), 1, 1024, &bench->workers);
        else if (option_is(option, "--batch"))
            good = parse_count(option_value(argc, argv, &i), 1, 65536, &bench->batch);
        else if (option_is(option, "--seconds"))
            good = parse_seconds(option_value(argc, argv, &i), 0.1, 3600, &bench->seconds);
        else if (option_is(option, "--pipeline"))
            good = (bench->pipeline = option_value(argc, argv, &i)) != NULL;
        else {
            const char *near = nearest_name(option, names);
            return fail(EXIT_USAGE, "bench has no option '%s'.%s%s%s", option,
                        near ? " Did you mean '" : "", near ? near : "", near ? "'?" : "");
        }
        if (!good)
            return fail(EXIT_USAGE, "'%s' wants a number in its range: see 'stoker help bench'", option);
    }
    if (!bench->data)
        return fail(EXIT_USAGE, "which data set? Example: stoker bench path/to/train");
    return EXIT_OK;
}

static void print_rate(const char *what, double rate, const char *remark)
{
    struct number_text room;
    printf("%-12s %9s img/s   %s\n", what, with_commas(&room, rate), remark);
}

static const char *const stage_names[STOKER_STAGE_COUNT] = {
    [STOKER_STAGE_READ] = "read",
    [STOKER_STAGE_DECODE] = "decode",
    [STOKER_STAGE_AUGMENT] = "augment",
    [STOKER_STAGE_SLOT] = "slot",
};
static const char *const stage_remarks[STOKER_STAGE_COUNT] = {
    [STOKER_STAGE_READ] = "waiting for a sample's bytes",
    [STOKER_STAGE_DECODE] = "headers and pixels",
    [STOKER_STAGE_AUGMENT] = "ops and the final write",
    [STOKER_STAGE_SLOT] = "waiting for the consumer",
};
static const char *const stage_advice[STOKER_STAGE_COUNT] = {
    [STOKER_STAGE_READ] =
        "The limit is reading: storage delivers too slowly. A faster disk, a warm page cache "
        "or a deeper read-ahead would help; more workers would not.",
    [STOKER_STAGE_DECODE] =
        "The limit is decoding: it takes most of the CPUs' time. More CPUs, smaller files or "
        "fidelity=fast would help; faster storage would not.",
    [STOKER_STAGE_AUGMENT] =
        "The limit is augmenting: the ops take more CPU time than decoding. More CPUs or "
        "cheaper ops would help; faster storage would not.",
    [STOKER_STAGE_SLOT] = "The limit is the consumer: workers wait for batches to be taken.",
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
        printf("  %-8s %5.1f %%  %8.1f us a sample   %s\n", stage_names[i],
               100 * (double)stats->stage_ns[i] / total,
               (double)stats->stage_ns[i] / 1e3 / (double)stats->samples, stage_remarks[i]);
    printf("\n%s\n", stage_advice[most]);
}

static void print_data(const struct bench *bench, const struct stoker_dataset *data, double open_seconds)
{
    struct number_text room;
    printf("data         %s: %s samples, %u classes, opened in %.3f s\n", bench->data,
           with_commas(&room, (double)stoker_dataset_count(data)), stoker_dataset_class_count(data),
           open_seconds);
    struct stoker_feature feature = {.size = sizeof feature};
    printf("machine      %u CPUs", stoker_cpu_count());
    for (uint32_t i = 0; stoker_feature_at(i, &feature); i++)
        if (!strcmp(feature.kind, "kernels")) {
            printf(", %s kernels", feature.name);
            break; /* behind them come GPUs, and looking would wake the driver */
        }
    putchar('\n');
    fflush(stdout);
}

/* Reads and decodes in one thread; a source without files is only measured as part of the pipeline. */
static int measure_parts(const struct stoker_dataset *data, double seconds, double *decode_rate,
                         struct stoker_error *err)
{
    struct bench_files files;
    char remark[128];
    uint64_t bad = 0;
    *decode_rate = 0;
    if (bench_read(&files, data, seconds, err) != STOKER_OK) {
        bench_free(&files);
        printf("%-12s not measured: %s\n", "read", err->message);
        return STOKER_OK;
    }
    snprintf(remark, sizeof remark, "%.0f MB/s, one file at a time, %.1f KB a file",
             (double)files.bytes / 1e6 / files.seconds, (double)files.bytes / 1e3 / (double)files.reads);
    print_rate("read", (double)files.reads / files.seconds, remark);
    fflush(stdout);
    const int rc = bench_decode(&files, data, seconds, decode_rate, &bad, err);
    bench_free(&files);
    if (rc != STOKER_OK)
        return rc;
    print_rate("decode", *decode_rate, "whole images, one core");
    if (bad)
        printf("%-12s %9lu times an image could not be decoded: %s\n", "", (unsigned long)bad,
               err->message);
    fflush(stdout);
    return STOKER_OK;
}

static int measure_pipeline(const struct bench *bench, struct stoker_dataset *data,
                            struct stoker_pipeline *pipe, double decode_rate, struct stoker_error *err)
{
    struct stoker_loader_options opt = stoker_loader_defaults();
    struct bench_pipeline one, all;
    char remark[128] = "1 worker";
    opt.batch_size = (uint32_t)bench->batch;
    opt.order = STOKER_ORDER_SHUFFLE;
    opt.on_error = STOKER_ON_ERROR_SKIP;
    opt.workers = 1;
    int rc = bench_pipeline(&one, data, pipe, &opt, bench->seconds / 4, "pipeline, 1 worker", err);
    if (rc != STOKER_OK)
        return rc;
    if (decode_rate > 0)
        snprintf(remark, sizeof remark, "1 worker, %.2f times the whole decode", one.rate / decode_rate);
    print_rate("pipeline", one.rate, remark);
    fflush(stdout);
    all = one;
    if (bench->workers > 1) {
        opt.workers = (int32_t)bench->workers;
        rc = bench_pipeline(&all, data, pipe, &opt, bench->seconds / 4, "pipeline, all workers", err);
        if (rc != STOKER_OK)
            return rc;
        snprintf(remark, sizeof remark, "%u workers, %.2f times one worker", all.stats.workers,
                 all.rate / one.rate);
        print_rate("", all.rate, remark);
    }
    printf("first batch  %9.3f s       of %lu samples\n", all.first_batch_seconds,
           (unsigned long)bench->batch);
    printf("memory       %9.1f MB      at most, of %.0f MB allowed; now %.1f MB in slots, %.1f MB scratch, %.1f MB "
           "read by %s\n",
           (double)all.stats.memory_peak / 1e6, (double)all.stats.memory_allowed / 1e6,
           (double)all.stats.slot_bytes / 1e6, (double)all.stats.scratch_bytes / 1e6,
           (double)all.stats.read_bytes / 1e6, all.stats.reader ? all.stats.reader : "?");
    if (all.stats.bad)
        printf("bad samples  %9lu         replaced by others\n", (unsigned long)all.stats.bad);
    print_stages(&all.stats);
    return STOKER_OK;
}

static int bench_run(int argc, char **argv)
{
    struct bench bench = {.pipeline = TRAINING, .workers = stoker_cpu_count(), .batch = 64, .seconds = 8};
    struct stoker_dataset *data = NULL;
    struct stoker_pipeline *pipe = NULL;
    struct stoker_error err;
    double decode_rate;
    struct st_location place = {0};
    const int usage = parse(&bench, argc, argv);
    if (usage != EXIT_OK)
        return usage;
    int rc = stoker_pipeline_open(&pipe, bench.pipeline, &err);
    const uint64_t start = st_now_ns();
    if (rc == STOKER_OK)
        rc = pack_data_open(&data, &place, bench.data, NULL, &err);
    if (rc == STOKER_OK) {
        print_data(&bench, data, (double)(st_now_ns() - start) / 1e9);
        rc = measure_parts(data, bench.seconds / 4, &decode_rate, &err);
    }
    if (rc == STOKER_OK)
        rc = measure_pipeline(&bench, data, pipe, decode_rate, &err);
    st_location_free(&place);
    stoker_dataset_close(data);
    stoker_pipeline_close(pipe);
    return rc == STOKER_OK ? EXIT_OK : fail(EXIT_FAILED, "%s", err.message);
}

const struct command cmd_bench = {
    .name = "bench",
    .summary = "how fast this machine reads, decodes and loads a data set, and where the limit is",
    .usage =
        "usage: stoker bench DATA [OPTIONS]\n"
        "\n"
        "DATA is a folder of class folders, flat:DIR for images without classes, any other data set that\n"
        "Stoker opens, or a folder that 'stoker pack' wrote. Measures reading, decoding on one core, and\n"
        "the whole pipeline with one worker and with all; then shows where the workers' time went.\n"
        "\n"
        "  --workers N      threads that decode (default: the CPUs this process may use)\n"
        "  --batch N        samples a batch (default 64)\n"
        "  --seconds S      time for all measurements together (default 8)\n"
        "  --pipeline TEXT  ops, such as \"resize(size=256); center_crop(size=224); to_tensor\"\n"
        "                   (default: crop, flip, to_tensor and normalize as in ImageNet training)\n",
    .run = bench_run,
};
