/* cmd_tune.c - `stoker tune`: tries, computes, confirms, and says which line to change
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/err.h"
#include "cli/cli.h"
#include "cli/doctor/tune/patch.h"
#include "cli/doctor/tune/tune.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POINTS = 3, ROUNDS = 3, SETTINGS_MOST = 8 };
static const double LEAST_GAIN = 1.03; /* below this nobody should change a program */

struct tune {
    char *const *command;
    char directory[PATH_MAX - 64]; /* of all its runs */
    double seconds;                /* measured in each run */
    bool apply, quick;
    uint32_t runs;
    struct dr_run *run; /* the first one, as it is */
    struct dr_facts facts;
    struct dr_trace trace;
    struct dr_plan now, then;
    char at[600]; /* FILE:LINE of the loader's call */
    struct dr_scale_point point[POINTS];
    uint32_t points;
    struct dr_scale scale;
    bool scaled;
    double before, floor; /* seconds a batch: as it is; with a loader that is always ready */
    double predicted;
};

/* ---- runs -------------------------------------------------------------------------------------- */

static int probe(struct tune *t, struct dr_probe_result *out, const char *settings, double seconds,
                 struct stoker_error *err)
{
    char directory[PATH_MAX], asked[2048];
    snprintf(directory, sizeof directory, "%s/%02u", t->directory, ++t->runs);
    snprintf(asked, sizeof asked, "skip=8;seconds=%.1f;%s%s%s", seconds, settings,
             t->at[0] ? ";at=" : "", t->at);
    const struct dr_probe_run run = {directory, asked, t->command, 60 + 4 * seconds};
    return dr_probe_run(out, &run, err);
}

static void settings_text(char *out, size_t room, const struct dr_plan *plan)
{
    if (plan->workers)
        snprintf(out, room, "num_workers=%u;prefetch_factor=%u;persistent_workers=%s%s", plan->workers,
                 plan->prefetch, plan->persistent ? "True" : "False",
                 plan->in_order ? "" : ";in_order=False");
    else
        snprintf(out, room, "num_workers=0");
}

/* ---- the four parts ------------------------------------------------------------------------------ */

static int baseline(struct tune *t, struct stoker_error *err)
{
    struct dr_probe_result result;
    char directory[PATH_MAX];
    if (probe(t, &result, "mode=time", t->seconds, err))
        return err->code;
    t->before = 1 / result.rate;
    snprintf(directory, sizeof directory, "%s/%02u", t->directory, t->runs);
    if (dr_run_open(&t->run, directory, err) || dr_facts_of(&t->facts, t->run, -1, err))
        return err->code;
    if (!dr_trace_of(&t->trace, &t->now, &t->facts))
        return st_fail(err, STOKER_EUNSUPPORTED,
                       "too few batches were seen to compute with: try --seconds 30");
    const struct dr_settings *loader = &t->facts.loader;
    if (loader->line > 0)
        snprintf(t->at, sizeof t->at, "%s:%d", loader->file, loader->line);
    return 0;
}

static int headroom(struct tune *t, struct stoker_error *err)
{
    struct dr_probe_result result;
    fprintf(stderr, " 1/4 headroom  ");
    if (probe(t, &result, "mode=replay", t->seconds, err))
        return err->code;
    t->floor = 1 / result.rate;
    fprintf(stderr,
            "%.1f ms a step as it is, %.1f ms with a loader that is always ready: at most %.2f times "
            "faster\n",
            1e3 * t->before, 1e3 * t->floor, t->before / t->floor);
    return 0;
}

static int measure_loader(struct tune *t, struct stoker_error *err)
{
    const uint32_t cpus = dr_known(t->facts.limits.cpus) ? (uint32_t)fmax(1, t->facts.limits.cpus) : 1;
    uint32_t counts[POINTS] = {1, 2, cpus > 5 ? cpus / 2 : 4};
    fprintf(stderr, " 2/4 loader    ");
    for (uint32_t k = 0; k < POINTS; k++) {
        struct dr_probe_result result;
        char settings[64];
        snprintf(settings, sizeof settings, "mode=loader;num_workers=%u", counts[k]);
        if (probe(t, &result, settings, t->seconds / 2, err))
            return err->code;
        t->point[t->points++] = (struct dr_scale_point){counts[k], result.rate};
        fprintf(stderr, "%sworkers %u: %.1f batches/s", k ? " | " : "", counts[k], result.rate);
    }
    fputc('\n', stderr);
    t->scaled = dr_scale_fit(&t->scale, t->point, t->points);
    return 0;
}

/* The plan with the measured contention in the batches' times instead of a model of the CPUs. */
static struct dr_plan contended(const struct tune *t, struct dr_plan plan)
{
    if (!t->scaled || !plan.workers)
        return plan;
    double mean = 0;
    for (uint32_t k = 0; k < t->trace.batches; k++)
        mean += t->trace.wall[k] / t->trace.batches;
    const double each =
        plan.workers / dr_scale_at(&t->scale, plan.workers); /* seconds of a batch in its worker */
    plan.wall_scale = plan.cpu_scale = mean > 0 ? each / mean : 1;
    plan.cpus = 4096;
    return plan;
}

/* How many batches may lie about: half of the memory that is free, and torch's own go through /dev/shm.
 */
static uint64_t most_batches(const struct dr_facts *f)
{
    double bytes = dr_known(f->memory_available_least) ? f->memory_available_least / 2 : INFINITY;
    if (!f->loader.stoker && dr_known(f->shm_size))
        bytes = fmin(bytes, 0.8 * f->shm_size);
    if (!dr_known(f->loader.batch_bytes) || !(f->loader.batch_bytes > 0))
        return 256;
    return (uint64_t)fmax(2, fmin(4096, bytes / f->loader.batch_bytes));
}

static uint32_t most_workers(const struct tune *t)
{
    const struct dr_facts *f = &t->facts;
    const double cpus = dr_known(f->limits.cpus) ? fmax(1, f->limits.cpus) : 1;
    const double own =
        dr_known(f->batch_cpu_mean) && f->batch_mean > 0 ? f->batch_cpu_mean / f->batch_mean : 1;
    double most =
        own > 0.5 ? cpus : 4 * cpus + 4; /* those that wait for something may be more than the CPUs */
    if (dr_known(f->worker_private) && f->worker_private > 0 && dr_known(f->memory_available_least))
        most = fmin(most, 1 + f->memory_available_least / 2 / f->worker_private);
    return (uint32_t)fmax(1, fmin(most, 256));
}

static void choose(struct tune *t)
{
    const uint32_t workers = most_workers(t);
    const uint64_t batches = most_batches(&t->facts);
    struct dr_outcome best = {{INFINITY, INFINITY, INFINITY}, 0, 0, 0}, outcome;
    const struct dr_plan now = contended(t, t->now);
    uint32_t tried = 0;
    t->then = t->now;
    for (uint32_t w = 1; w <= workers; w += w < 16 ? 1 : w / 8)
        for (uint32_t prefetch = 2; prefetch <= 8; prefetch *= 2) {
            struct dr_plan plan = t->now;
            plan.workers = w;
            plan.prefetch = prefetch;
            plan.persistent = true;
            if ((uint64_t)w * prefetch > batches)
                continue;
            plan = contended(t, plan);
            dr_simulate(&outcome, &t->trace, &plan);
            tried++;
            if (outcome.step.mid <
                best.step.mid * 0.98) { /* more workers and memory only for something */
                best = outcome;
                t->then = plan;
            }
        }
    const struct dr_range gain = dr_gain(&t->trace, &now, &t->then, t->before / t->floor);
    t->predicted = gain.mid;
    fprintf(stderr,
            " 3/4 simulate  %u settings: num_workers=%u prefetch_factor=%u persistent_workers=%s: %.2f "
            "times (%.2f to %.2f)\n",
            tried, t->then.workers, t->then.prefetch, t->then.persistent ? "True" : "False", gain.mid,
            gain.low, gain.high);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What alternating runs of one side gave. */
struct side {
    char settings[192];
    double rate[ROUNDS];
    uint32_t rounds;
    double middle, spread; /* batches a second; half the range, as a share of it */
};

static void weigh(struct side *side)
{
    const uint32_t n = side->rounds;
    qsort(side->rate, n, sizeof side->rate[0], by_value);
    side->middle = n % 2 ? side->rate[n / 2] : (side->rate[n / 2 - 1] + side->rate[n / 2]) / 2;
    side->spread = (side->rate[n - 1] - side->rate[0]) / 2 / side->middle;
}

/* A B C A B C: what drifts on the machine falls on all. C is Stoker's loader, where the program's Python
 * has it. */
static int confirm(struct tune *t, struct side side[3], struct stoker_error *err)
{
    char then[128];
    const uint32_t rounds = t->quick ? 2 : ROUNDS;
    settings_text(then, sizeof then, &t->then);
    snprintf(side[0].settings, sizeof side[0].settings, "mode=time");
    snprintf(side[1].settings, sizeof side[1].settings, "mode=time;%s", then);
    snprintf(side[2].settings, sizeof side[2].settings, "mode=time;stoker=1;num_workers=%u",
             t->then.workers);
    fprintf(stderr, " 4/4 confirm   ");
    for (uint32_t round = 0; round < rounds; round++)
        for (int k = 0; k < 3; k++) {
            struct dr_probe_result result;
            if (k == 2 && (side[2].rounds < round || t->facts.loader.stoker))
                continue; /* it did not work before, or is what the program has */
            if (!probe(t, &result, side[k].settings, t->seconds, err))
                side[k].rate[side[k].rounds++] = result.rate;
            else if (k < 2)
                return err->code;
            fprintf(stderr, "%c ", "ABC"[k]);
        }
    fputc('\n', stderr);
    for (int k = 0; k < 3; k++)
        if (side[k].rounds == rounds)
            weigh(&side[k]);
    fprintf(stderr,
            "               before %.1f, after %.1f batches/s: %.2f times (predicted %.2f; runs differ "
            "by +-%.0f %%)\n",
            side[0].middle, side[1].middle, side[1].middle / side[0].middle, t->predicted,
            100 * fmax(side[0].spread, side[1].spread));
    if (side[2].rounds == rounds)
        fprintf(stderr,
                "               Stoker's DataLoader, as many workers: %.1f batches/s: %.2f times\n",
                side[2].middle, side[2].middle / side[0].middle);
    return 0;
}

/* Whether `side` is faster than the first by more than the noise of both. */
static bool faster(const struct side *side, const struct side *first)
{
    return side->rounds && side->middle / first->middle >= LEAST_GAIN &&
           side->middle / first->middle - 1 > fmax(side->spread, first->spread);
}

/* ---- the patch ----------------------------------------------------------------------------------- */

static uint32_t settings_of(const struct tune *t, struct dr_setting *out)
{
    uint32_t count = 0;
    const struct dr_plan *plan = &t->then;
    const struct dr_settings *loader = &t->facts.loader;
    snprintf(out[count].value, sizeof out[count].value, "%u", plan->workers);
    out[count++].name = "num_workers";
    if (plan->workers && plan->prefetch != 2) {
        snprintf(out[count].value, sizeof out[count].value, "%u", plan->prefetch);
        out[count++].name = "prefetch_factor";
    }
    if (plan->workers && plan->persistent) {
        snprintf(out[count].value, sizeof out[count].value, "True");
        out[count++].name = "persistent_workers";
    }
    if (t->facts.has_gpu && !loader->pin_memory) {
        snprintf(out[count].value, sizeof out[count].value, "True");
        out[count++].name = "pin_memory";
    }
    return count;
}

static void print_lines(const char *mark, const char *text, size_t size)
{
    while (size) {
        const char *end = memchr(text, '\n', size);
        const size_t length = end ? (size_t)(end - text) : size;
        struct shown_text room;
        char line[2048];
        snprintf(line, sizeof line, "%.*s", (int)(length < 2000 ? length : 2000), text);
        printf("%s %s\n", mark, shown(&room, line));
        text += length + (end != NULL);
        size -= length + (end != NULL);
    }
}

static int patch(struct tune *t)
{
    struct dr_setting settings[SETTINGS_MOST];
    struct stoker_error err;
    struct dr_patch change;
    const struct dr_settings *loader = &t->facts.loader;
    const uint32_t count = settings_of(t, settings);
    size_t size = 0;
    char *text = loader->line > 0 ? dr_patch_read(loader->file, &size) : NULL;
    if (!text || dr_patch_call(&change, text, size, loader->line, settings, count, &err)) {
        printf("change the DataLoader call%s%s to", loader->line > 0 ? " at " : "",
               loader->line > 0 ? t->at : "");
        for (uint32_t k = 0; k < count; k++)
            printf("%s %s=%s", k ? "," : "", settings[k].name, settings[k].value);
        printf("%s%s\n", text ? "\n  " : "", text ? err.message : "");
        free(text);
        return t->apply ? fail(EXIT_FAILED, "nothing was changed") : EXIT_OK;
    }
    printf("--- %s\n", t->at);
    print_lines("-", text + change.begin, change.end - change.begin);
    print_lines("+", change.call, strlen(change.call));
    int code = EXIT_OK;
    if (t->apply && dr_patch_write(loader->file, text, size, &change, &err))
        code = fail(EXIT_FAILED, "%s", err.message);
    else if (t->apply)
        printf("written to %s\n", loader->file);
    else
        printf("'stoker tune --apply' with the same command writes it\n");
    free(change.call);
    free(text);
    return code;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static int nothing_to_do(const struct tune *t, const char *why)
{
    printf("leave the loader as it is: %s\n", why);
    return t->facts.run ? EXIT_OK : EXIT_FAILED;
}

static int tune(struct tune *t)
{
    struct stoker_error err;
    char why[256];
    struct side side[3] = {0};
    fprintf(stderr,
            "stoker: runs the command several times, %.0f s each, and ends it early: it writes no "
            "checkpoint at its end,\n"
            "        but what it writes before that it writes each time. Logs: %s\n",
            t->seconds, t->directory);
    if (baseline(t, &err) || headroom(t, &err))
        return fail(EXIT_FAILED, "%s", err.message);
    if (t->facts.loader.native)
        return nothing_to_do(
            t,
            "Stoker's engine makes the batches and chooses its workers itself (num_workers=\"auto\")");
    if (t->before / t->floor < LEAST_GAIN) {
        snprintf(why, sizeof why,
                 "a perfect one would make training %.2f times as fast, which is within the noise",
                 t->before / t->floor);
        return nothing_to_do(t, why);
    }
    if (measure_loader(t, &err))
        return fail(EXIT_FAILED, "%s", err.message);
    choose(t);
    if (t->predicted < LEAST_GAIN)
        return nothing_to_do(t, "no setting of it is better by more than the noise. 'stoker run' says "
                                "which stage is the limit");
    if (confirm(t, side, &err))
        return fail(EXIT_FAILED, "%s", err.message);
    const bool better = faster(&side[1], &side[0]), stoker = faster(&side[2], &side[0]);
    if (stoker)
        printf(
            "%.2f times: the import alone, 'from stoker import DataLoader' in the place of torch's%s\n",
            side[2].middle / side[0].middle, better ? "; or torch's loader with other settings:" : "");
    if (!better && !stoker) {
        snprintf(
            why, sizeof why,
            "measured, the best setting found is %.2f times as fast, with runs that differ by +-%.0f %%",
            side[1].middle / side[0].middle, 100 * fmax(side[0].spread, side[1].spread));
        return nothing_to_do(t, why);
    }
    if (!better)
        return EXIT_OK;
    printf("%.2f times:\n", side[1].middle / side[0].middle);
    return patch(t);
}

static int make_directory(struct tune *t)
{
    if (mkdir(".stoker", 0777) && errno != EEXIST)
        return fail(EXIT_FAILED, "cannot make .stoker here: %s", strerror(errno));
    char cwd[PATH_MAX - 128];
    if (!getcwd(cwd, sizeof cwd))
        return fail(EXIT_FAILED, "where are we? %s", strerror(errno));
    for (unsigned k = 1; k < 10000; k++) {
        snprintf(t->directory, sizeof t->directory, "%s/.stoker/tune-%04u", cwd, k);
        if (mkdir(t->directory, 0777) == 0)
            return EXIT_OK;
        if (errno != EEXIST)
            break;
    }
    return fail(EXIT_FAILED, "cannot make %s: %s", t->directory, strerror(errno));
}

static int run(int argc, char **argv)
{
    struct tune t = {.seconds = 10, .facts = {.step = NAN}};
    int at = 1;
    for (; at < argc && strcmp(argv[at], "--"); at++) {
        if (!strcmp(argv[at], "--apply"))
            t.apply = true;
        else if (!strcmp(argv[at], "--quick"))
            t.quick = true, t.seconds = fmin(t.seconds, 4);
        else if (option_is(argv[at], "--seconds")) {
            const char *value = option_value(argc, argv, &at);
            if (!value || !parse_seconds(value, 1, 600, &t.seconds))
                return fail(EXIT_USAGE, "--seconds takes a number from 1 to 600");
        } else
            return fail(EXIT_USAGE, "tune: there is no option '%s'. 'stoker help tune' lists them.",
                        argv[at]);
    }
    if (at + 1 >= argc)
        return fail(EXIT_USAGE,
                    "tune: name the command behind '--', as in 'stoker tune -- python train.py'");
    t.command = argv + at + 1;
    int code = make_directory(&t);
    if (code == EXIT_OK) {
        code = tune(&t);
        dr_facts_free(&t.facts);
        dr_run_close(t.run);
    }
    return code;
}

const struct command cmd_tune = {
    .name = "tune",
    .summary =
        "try other loader settings on a training command, and print the change that makes it faster",
    .usage = "usage: stoker tune [--seconds 10] [--quick] [--apply] -- COMMAND [ARGUMENTS]\n"
             "\n"
             "Runs the command about a dozen times, for --seconds each: as it is; with batches replayed "
             "from memory (how\n"
             "fast can training be at all?); the loader alone with 1, 2 and more workers; then computes "
             "the best settings\n"
             "within memory, /dev/shm and the CPUs that may be used, and confirms them by alternating "
             "runs. Prints the changed\n"
             "DataLoader call; recommends nothing that does not exceed the noise.\n"
             "\n"
             "  --seconds S  measured in each run (10)\n"
             "  --quick      4 s each, and fewer runs\n"
             "  --apply      write the changed call into the program\n"
             "\n"
             "The command is ended early each time: no checkpoint is written at its end. Runs and logs "
             "are kept in\n"
             ".stoker/tune-NNNN.\n",
    .run = run,
};
