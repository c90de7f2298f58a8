/* cmd_run.c - `stoker run`: runs a command unchanged, watches it, and says what it waited for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include "base/clock.h"
#include "cli/doctor/record/command.h"
#include "cli/doctor/record/directory.h"
#include "cli/doctor/record/recorder.h"
#include "cli/doctor/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND       1e9
#define FIRST_STATUS 10.0 /* seconds */
enum { STATUS_SHARE = 200 /* a status line may cost one part in so many of the time */ };

struct run_options {
    const char *directory; /* NULL: .stoker/NNNN */
    double every;          /* seconds between status lines */
    bool quiet, no_report, json;
    char **command;
};

/* ---- the status line -------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void add_cpus(char *line, size_t room, struct dr_recorder *recorder)
{
    const double used = dr_recorder_mean(recorder, DR_CPU_OURS);
    const double all = dr_recorder_limits(recorder)->cpus;
    if (dr_known(used) && dr_known(all))
        snprintf(line + strlen(line), room - strlen(line), " | CPU %.1f of %.4g", used, all);
}

static void add_steps(char *line, size_t room, const struct dr_facts *facts)
{
    struct number_text number;
    snprintf(line, room, "step %s",
             with_commas(&number, (double)facts->step_count + (double)facts->warm_up_steps));
    if (dr_known(facts->samples_per_second))
        snprintf(line + strlen(line), room - strlen(line), " | %s samples/s",
                 with_commas(&number, facts->samples_per_second));
    if (dr_known(facts->stall_share))
        snprintf(line + strlen(line), room - strlen(line), " | input stall %.0f%%",
                 100 * facts->stall_share);
    const double room_for = (double)facts->loader.workers * (double)facts->loader.prefetch;
    if (dr_known(facts->ready_mean) && room_for > 0)
        snprintf(line + strlen(line), room - strlen(line), " | ready %.1f/%.0f", facts->ready_mean,
                 room_for);
}

static void print_status(const struct dr_directory *directory, struct dr_recorder *recorder,
                         uint64_t start_ns)
{
    char line[256];
    struct dr_run *run = NULL;
    struct dr_facts facts = {0};
    const bool told = !dr_run_open(&run, directory->path, NULL) && !dr_facts_of(&facts, run, -1, NULL) &&
                      facts.step_count;
    if (told)
        add_steps(line, sizeof line, &facts);
    else
        snprintf(line, sizeof line, "%.0f s | %u processes | no training steps seen yet",
                 (double)(st_now_ns() - start_ns) / SECOND, dr_recorder_processes(recorder));
    add_cpus(line, sizeof line, recorder);
    fprintf(stderr, "stoker  %s\n", line);
    if (run) {
        dr_facts_free(&facts);
        dr_run_close(run);
    }
}

/* Samples until the command has ended. */
static void watch(const struct run_options *options, const struct dr_directory *directory,
                  struct dr_command *command, struct dr_recorder *recorder)
{
    const uint64_t start = st_now_ns();
    const double first = options->every < FIRST_STATUS ? options->every : FIRST_STATUS;
    uint64_t status_at = start + (uint64_t)(first * SECOND);
    uint64_t next = start;
    while (!dr_command_wait(command, next)) {
        next = dr_recorder_tick(recorder);
        if (options->quiet || st_now_ns() < status_at)
            continue;
        const double before = cpu_seconds();
        print_status(directory, recorder, start);
        const double pause = STATUS_SHARE * (cpu_seconds() - before);
        status_at = st_now_ns() + (uint64_t)((pause > options->every ? pause : options->every) * SECOND);
    }
}

/* ---- the report ------------------------------------------------------------------------------- */

struct report {
    struct dr_run *run;
    struct dr_facts facts;
    struct dr_verdict verdict;
};

static int write_html(FILE *to, const struct report *report)
{
    return dr_write_html(to, &report->verdict, &report->facts);
}
static int write_json(FILE *to, const struct report *report)
{
    return dr_write_json(to, &report->verdict, &report->facts);
}
static int write_trace(FILE *to, const struct report *report)
{
    return dr_write_trace(to, &report->facts);
}

static bool write_report(const struct dr_directory *directory, const char *name,
                         int (*writer)(FILE *, const struct report *), const struct report *report)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", directory->path, name);
    FILE *file = fopen(path, "we");
    bool whole = file && writer(file, report) == 0;
    if (file && ((ferror(file) != 0) | (fclose(file) != 0)))
        whole = false;
    if (!whole)
        fail(0, "%s cannot be written: %s", path, strerror(errno));
    return whole;
}

static void print_report(const struct run_options *options, const struct dr_directory *directory,
                         struct report *report)
{
    const struct dr_style style = dr_style_for(stderr);
    dr_print_verdict(stderr, &style, &report->verdict, &report->facts);
    const bool json = write_report(directory, "run.json", write_json, report);
    const bool html = write_report(directory, "report.html", write_html, report);
    const bool trace = write_report(directory, "trace.json", write_trace, report);
    if (options->json && json)
        fprintf(stderr, "%s/run.json\n", directory->shown);
    else
        fprintf(stderr, "stoker: %s%s%s%s%s%s\n", html ? "report " : "", html ? directory->shown : "",
                html ? "/report.html" : "", trace ? "  trace " : "", trace ? directory->shown : "",
                trace ? "/trace.json (ui.perfetto.dev)" : "");
}

static void report_run(const struct run_options *options, const struct dr_directory *directory)
{
    struct report *report = calloc(1, sizeof *report);
    struct stoker_error err = {0};
    if (!report) {
        fail(0, "no memory for the report of %s", directory->shown);
        return;
    }
    if (dr_run_open(&report->run, directory->path, &err)) {
        fail(0, "the run was not understood: %s", err.message);
    } else {
        /* Where nothing was seen to judge by, nothing is known, and the verdict says what would help. */
        dr_facts_of(&report->facts, report->run, -1, NULL);
        dr_judge(&report->verdict, &report->facts);
        print_report(options, directory, report);
        dr_facts_free(&report->facts);
        dr_run_close(report->run);
    }
    free(report);
}

/* ---- the command ------------------------------------------------------------------------------ */

static int run_in(const struct run_options *options, const struct dr_directory *directory)
{
    struct dr_command command;
    struct dr_recorder *recorder = NULL;
    struct stoker_error err = {0};
    if (dr_directory_environment(directory, &err))
        return fail(EXIT_FAILED, "%s", err.message);
    if (dr_command_start(&command, options->command, &err)) {
        dr_directory_undo(directory);
        return fail(command.exit_code, "%s", err.message);
    }
    if (!options->quiet)
        fprintf(stderr, "stoker: watching %d, run directory %s\n", (int)command.pid, directory->shown);
    /* The command runs already, and goes on whatever becomes of watching it. */
    const bool watched =
        !dr_recorder_open(&recorder, directory->path, command.pid, command.sentinel, &err);
    if (watched) {
        watch(options, directory, &command, recorder);
        if (dr_recorder_finish(recorder, command.exit_code, &err))
            fail(0, "%s", err.message);
    } else {
        fail(0, "the command is not watched: %s", err.message);
        while (!dr_command_wait(&command, UINT64_MAX))
            ;
    }
    dr_command_close(&command);
    dr_recorder_close(recorder);
    if (watched && !options->no_report)
        report_run(options, directory);
    return command.exit_code;
}

static int parse(struct run_options *options, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        const char *option = argv[i];
        if (!strcmp(option, "--")) {
            i++;
            break;
        }
        if (!strcmp(option, "--quiet")) {
            options->quiet = true;
        } else if (!strcmp(option, "--no-report")) {
            options->no_report = true;
        } else if (!strcmp(option, "--json")) {
            options->json = true;
        } else if (option_is(option, "--dir") || option_is(option, "--every")) {
            const char *value = option_value(argc, argv, &i);
            if (!value)
                return fail(EXIT_USAGE, "'%s' wants a value: see 'stoker help run'", option);
            if (option_is(option, "--dir"))
                options->directory = value;
            else if (!parse_seconds(value, 1, 86400, &options->every))
                return fail(EXIT_USAGE, "--every wants seconds, from 1 to 86400, not '%s'", value);
        } else {
            return fail(EXIT_USAGE, "run does not know '%s': see 'stoker help run'", option);
        }
    }
    options->command = argv + i;
    if (i >= argc)
        return fail(EXIT_USAGE, "which command? Example: stoker run -- python train.py");
    return EXIT_OK;
}

static int run_run(int argc, char **argv)
{
    struct run_options options = {.every = 30};
    struct dr_directory directory;
    struct stoker_error err = {0};
    int code = parse(&options, argc, argv);
    if (code)
        return code;
    code = dr_command_find(options.command[0]);
    if (code)
        return fail(code, code == DR_NOT_FOUND ? "there is no command '%s'" : "'%s' is not executable",
                    options.command[0]);
    if (dr_directory_make(&directory, options.directory, options.command, &err))
        return fail(EXIT_FAILED, "%s", err.message);
    return run_in(&options, &directory);
}

const struct command cmd_run = {
    .name = "run",
    .summary = "run a training command unchanged, and say what it waited for and what to change",
    .usage =
        "usage: stoker run [OPTIONS] [--] COMMAND [ARGUMENTS]\n"
        "\n"
        "Runs the command with its input, output, signals and exit code untouched, and watches it:\n"
        "CPUs, memory, disks, network and GPU from outside, the loader and the steps from inside\n"
        "Python. At the end it says on standard error whether training waited for data, why, what to\n"
        "change and what that would gain. STOKER_OFF=1 keeps everything out of Python.\n"
        "\n"
        "  --dir DIR      where to record (default: the next .stoker/NNNN); new or empty\n"
        "  --every S      seconds between status lines (default 30; the first after 10)\n"
        "  --quiet        no status lines\n"
        "  --no-report    record only; 'stoker report DIR' does the rest\n"
        "  --json         end with the path of run.json alone\n"
        "\n"
        "Exits with the command's own code, 128 + N if signal N ended it, 127 if there is no such\n"
        "command, 126 if it cannot be executed.\n",
    .run = run_run,
};
