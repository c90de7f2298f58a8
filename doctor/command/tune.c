/* tune.c - `stoker tune`: measures, simulates and confirms better loader settings
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/err.h"
#include "base/text.h"
#include "cli/cli.h"
#include "doctor/command/tune.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double LEAST_GAIN = 1.03; /* a smaller gain is not worth changing a program */

/* ---- runs -------------------------------------------------------------------------------------- */

static int probe(struct tune *t, struct dr_probe_result *out, const char *settings, double seconds,
                 struct stoker_error *err)
{
    char directory[PATH_MAX], asked[2048];
    snprintf(directory, sizeof directory, "%s/%02u", t->directory, ++t->runs);
    snprintf(asked, sizeof asked, "skip=8;seconds=%.1f;%s%s%s", seconds, settings,
             t->at[0] ? ";at=" : "", t->at);
    snprintf(t->log, sizeof t->log, "%s/%02u.log", t->directory, t->runs);
    const struct dr_probe_run run = {directory, t->log, asked, t->command, seconds, t->wait};
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
                       "too few batches were measured to simulate the loader: try --seconds 30");
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
            "%.1f ms per step now, %.1f ms with a loader that is always ready: speed-up at most %.2fx\n",
            1e3 * t->before, 1e3 * t->floor, t->before / t->floor);
    return 0;
}

static int measure_loader(struct tune *t, struct stoker_error *err)
{
    const uint32_t cpus = dr_known(t->facts.limits.cpus) ? (uint32_t)fmax(1, t->facts.limits.cpus) : 1;
    uint32_t counts[TUNE_POINTS] = {1, 2, cpus > 5 ? cpus / 2 : 4};
    fprintf(stderr, " 2/4 loader    ");
    for (uint32_t k = 0; k < TUNE_POINTS; k++) {
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

/* The plan with the measured contention in its batch times, instead of the model of the CPUs. */
static struct dr_plan contended(const struct tune *t, struct dr_plan plan)
{
    if (!t->scaled || !plan.workers)
        return plan;
    double mean = 0;
    for (uint32_t k = 0; k < t->trace.batches; k++)
        mean += t->trace.wall[k] / t->trace.batches;
    const double each =
        plan.workers / dr_scale_at(&t->scale, plan.workers); /* seconds per batch in its worker */
    plan.wall_scale = plan.cpu_scale = mean > 0 ? each / mean : 1;
    plan.cpus = 4096;
    return plan;
}

/* The most batches in flight: half of the free memory, and for torch's loader what fits into
 * /dev/shm. */
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
        own > 0.5 ? cpus : 4 * cpus + 4; /* workers that mostly wait may outnumber the CPUs */
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
                best.step.mid * 0.98) { /* more workers and memory must pay off */
                best = outcome;
                t->then = plan;
            }
        }
    const struct dr_range gain = dr_gain(&t->trace, &now, &t->then, t->before / t->floor);
    t->predicted = gain.mid;
    fprintf(
        stderr,
        " 3/4 simulate  best of %u setting%s: num_workers=%u prefetch_factor=%u persistent_workers=%s: "
        "speed-up %.2fx (%.2f to %.2f)\n",
        tried, st_s(tried), t->then.workers, t->then.prefetch, t->then.persistent ? "True" : "False",
        gain.mid, gain.low, gain.high);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize(struct tune_side *side)
{
    const uint32_t n = side->rounds;
    qsort(side->rate, n, sizeof side->rate[0], by_value);
    side->median = n % 2 ? side->rate[n / 2] : (side->rate[n / 2 - 1] + side->rate[n / 2]) / 2;
    side->spread = (side->rate[n - 1] - side->rate[0]) / 2 / side->median;
}

/* Whether the best settings are worth a try. */
static bool promises(const struct tune *t) { return t->predicted >= LEAST_GAIN; }

/* Alternates the sides, A B C A B C, so that drift of the machine affects all of them. C is Stoker's
 * loader, where the Python of the program has it. */
static int confirm(struct tune *t, struct stoker_error *err)
{
    struct tune_side *side = t->side;
    char then[128];
    const uint32_t rounds = t->quick ? 2 : TUNE_ROUNDS;
    settings_text(then, sizeof then, &t->then);
    snprintf(side[TUNE_NOW].settings, sizeof side[0].settings, "mode=time");
    snprintf(side[TUNE_BEST].settings, sizeof side[0].settings, "mode=time;%s", then);
    if (t->then.workers)
        snprintf(side[TUNE_STOKER].settings, sizeof side[0].settings,
                 "mode=time;stoker=1;num_workers=%u", t->then.workers);
    else /* as python -m stoker does */
        snprintf(side[TUNE_STOKER].settings, sizeof side[0].settings,
                 "mode=time;stoker=1;num_workers=auto");
    fprintf(stderr, " 4/4 confirm   ");
    for (uint32_t round = 0; round < rounds; round++)
        for (int k = 0; k < TUNE_SIDES; k++) {
            struct dr_probe_result result;
            if (k == TUNE_BEST && !promises(t))
                continue;
            if (k == TUNE_STOKER && (side[k].rounds < round || t->facts.loader.stoker))
                continue; /* it failed before, or the program uses it already */
            if (!probe(t, &result, side[k].settings, t->seconds, err))
                side[k].rate[side[k].rounds++] = result.rate;
            else if (k != TUNE_STOKER)
                return err->code;
            fprintf(stderr, "%c ", "ABC"[k]);
        }
    fputc('\n', stderr);
    for (int k = 0; k < TUNE_SIDES; k++)
        if (side[k].rounds == rounds)
            summarize(&side[k]);
        else
            side[k].rounds = 0; /* incomplete: not compared */
    if (side[TUNE_BEST].rounds)
        fprintf(
            stderr,
            "               before %.1f, after %.1f batches/s: speed-up %.2fx (predicted %.2fx; spread "
            "of the runs +-%.0f %%)\n",
            side[TUNE_NOW].median, side[TUNE_BEST].median,
            side[TUNE_BEST].median / side[TUNE_NOW].median, t->predicted,
            100 * fmax(side[TUNE_NOW].spread, side[TUNE_BEST].spread));
    if (side[TUNE_STOKER].rounds)
        fprintf(stderr,
                "               before %.1f, with Stoker's DataLoader and %s workers %.1f batches/s: "
                "speed-up %.2fx\n",
                side[TUNE_NOW].median, t->then.workers ? "as many" : "its own number of",
                side[TUNE_STOKER].median, side[TUNE_STOKER].median / side[TUNE_NOW].median);
    return 0;
}

/* Whether `side` beats the first by more than the noise of both. */
static bool faster(const struct tune_side *side, const struct tune_side *first)
{
    return side->rounds && side->median / first->median >= LEAST_GAIN &&
           side->median / first->median - 1 > fmax(side->spread, first->spread);
}

/* ---- all of it ----------------------------------------------------------------------------------- */

/* Measures until it is known what to recommend: t->better, t->stoker or t->why_not. */
static int measure(struct tune *t, struct stoker_error *err)
{
    if (baseline(t, err) || headroom(t, err))
        return err->code;
    if (t->facts.loader.native) {
        snprintf(
            t->why_not, sizeof t->why_not,
            "Stoker's engine makes the batches and chooses its workers itself (num_workers=\"auto\")");
        return 0;
    }
    if (t->before / t->floor < LEAST_GAIN) {
        snprintf(
            t->why_not, sizeof t->why_not,
            "even a perfect loader would speed up training by only %.2fx, which is within the noise",
            t->before / t->floor);
        return 0;
    }
    if (measure_loader(t, err))
        return err->code;
    choose(t);
    if (!promises(t)) /* other settings are not worth a run; another loader may be */
        t->then = t->now;
    if (!promises(t) && t->facts.loader.stoker) {
        snprintf(
            t->why_not, sizeof t->why_not,
            "no setting is better by more than the noise. 'stoker run' tells which stage is the limit");
        return 0;
    }
    if (confirm(t, err))
        return err->code;
    t->better = faster(&t->side[TUNE_BEST], &t->side[TUNE_NOW]);
    t->stoker = faster(&t->side[TUNE_STOKER], &t->side[TUNE_NOW]);
    if (!t->better && !t->stoker && !promises(t))
        snprintf(t->why_not, sizeof t->why_not,
                 "no setting is better by more than the noise, %s. 'stoker run' tells which stage is "
                 "the limit",
                 t->side[TUNE_STOKER].rounds ? "and neither is Stoker's loader"
                                             : "and Stoker's loader could not be tried");
    else if (!t->better && !t->stoker)
        snprintf(t->why_not, sizeof t->why_not,
                 "the measured speed-up of the best settings is %.2fx, with runs that vary by +-%.0f %%",
                 t->side[TUNE_BEST].median / t->side[TUNE_NOW].median,
                 100 * fmax(t->side[TUNE_NOW].spread, t->side[TUNE_BEST].spread));
    return 0;
}

/* The last lines that the command printed, if any. */
static void print_output(const char *log)
{
    enum { MOST = 1500, LINES = 12 };
    struct shown_text room;
    char text[MOST + 1];
    FILE *file = fopen(log, "re");
    if (!file)
        return;
    const bool at_end = !fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    size_t got = 0;
    if (at_end && size > 0 && !fseek(file, size > MOST ? size - MOST : 0, SEEK_SET))
        got = fread(text, 1, MOST, file);
    fclose(file);
    while (got && text[got - 1] == '\n')
        got--;
    text[got] = '\0';
    const char *line = text + got;
    for (int lines = 0; line > text && (line[-1] != '\n' || ++lines < LINES);)
        line--;
    fprintf(stderr, "The last output of the command, from %s:%s\n", shown(&room, log),
            got ? "" : " nothing");
    for (char *next = (char *)line; got && next; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        fprintf(stderr, "    %s\n", shown(&room, line));
    }
}

static int tune(struct tune *t)
{
    struct stoker_error err;
    struct shown_text room;
    fprintf(stderr,
            "stoker: runs the command several times, measures %.0f s each, and ends it early: what\n"
            "        it would write at its end is not written, but anything it writes earlier is\n"
            "        written each time. A run may take up to %.0f s to its first batch (--wait).\n"
            "        Logs: %s\n",
            t->seconds, t->wait, shown(&room, t->directory));
    if (!measure(t, &err))
        return tune_result(t);
    if (t->runs > 1)
        fputc('\n', stderr); /* all runs but the first are made in the middle of a line */
    fail(EXIT_FAILED, "%s", err.message);
    print_output(t->log);
    return EXIT_FAILED;
}

static int make_directory(struct tune *t)
{
    if (mkdir(".stoker", 0777) && errno != EEXIST)
        return fail(EXIT_FAILED, "cannot create .stoker in the working directory: %s", strerror(errno));
    char cwd[PATH_MAX - 128];
    if (!getcwd(cwd, sizeof cwd))
        return fail(EXIT_FAILED, "cannot determine the working directory: %s", strerror(errno));
    for (unsigned k = 1; k < 10000; k++) {
        snprintf(t->directory, sizeof t->directory, "%s/.stoker/tune-%04u", cwd, k);
        if (mkdir(t->directory, 0777) == 0)
            return EXIT_OK;
        if (errno != EEXIST)
            break;
    }
    return fail(EXIT_FAILED, "cannot create %s: %s", t->directory, strerror(errno));
}

static int parse(struct tune *t, int argc, char **argv)
{
    struct arguments args = ARGUMENTS(&cmd_tune, argc, argv);
    while (!t->command && next_argument(&args)) {
        if (option_is(&args, "--apply"))
            t->apply = true;
        else if (option_is(&args, "--quick"))
            t->quick = true;
        else if (option_is(&args, "--json"))
            t->json = true;
        else if (option_is(&args, "--seconds"))
            accept_value(&args, parse_seconds(args.value, 1, 600, &t->seconds));
        else if (option_is(&args, "--wait"))
            accept_value(&args, parse_seconds(args.value, 1, 86400, &t->wait));
        else
            t->command = argv + args.at - 1; /* everything from here on belongs to it */
    }
    if (args.failed)
        return EXIT_USAGE;
    if (!(t->seconds > 0))
        t->seconds = t->quick ? 4 : 10;
    return t->command
               ? EXIT_OK
               : fail(EXIT_USAGE, "tune: no command given. Example: stoker tune -- python train.py");
}

static int run(int argc, char **argv)
{
    struct tune t = {.wait = 600, .facts = {.step = NAN}, .floor = NAN, .predicted = NAN};
    int code = parse(&t, argc, argv);
    if (code == EXIT_OK)
        code = make_directory(&t);
    if (code == EXIT_OK) {
        code = tune(&t);
        dr_facts_free(&t.facts);
        dr_run_close(t.run);
    }
    return code;
}

static const struct cli_option options[] = {
    {"--seconds", "S", "seconds measured in each run (default 10)",
     "a number of seconds from 1 to 600"},
    {"--wait", "S", "seconds without a batch after which a run is ended (default 600)",
     "a number of seconds from 1 to 86400"},
    {"--quick", NULL, "4 seconds each, and fewer runs"},
    {"--apply", NULL, "write the change into the program: of the call or of the import, the faster one"},
    {"--json", NULL, "print measurements and recommendation as JSON"},
    {NULL},
};

const struct command cmd_tune = {
    .name = "tune",
    .summary = "find faster loader settings for a training command, and print the change",
    .synopsis = "[OPTIONS] [--] COMMAND [ARGUMENTS]",
    .about = "Runs the command about a dozen times: unchanged; with batches replayed from memory, to\n"
             "see how fast training can be at best; and the loader alone with 1, 2 and more workers.\n"
             "Then simulates the best settings within memory, /dev/shm and the usable CPUs, confirms\n"
             "them and Stoker's DataLoader in alternating runs, and prints the changed DataLoader call\n"
             "or import. A change that does not exceed the noise is not recommended.",
    .options = options,
    .notes = "Each run of the command is ended early, so a checkpoint at its end is not written.\n"
             "Runs and logs are kept in .stoker/tune-NNNN.",
    .arguments = COMPLETES_COMMANDS,
    .run = run,
};
