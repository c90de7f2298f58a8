/* run.c - `stoker run`: runs a command unchanged, watches it, and reports what it waited for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"

#include "base/clock.h"
#include "doctor/command/metrics.h"
#include "doctor/record/command.h"
#include "doctor/record/directory.h"
#include "doctor/record/recorder.h"
#include "doctor/report/json.h"
#include "doctor/report/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND       1e9
#define FIRST_STATUS 10.0 /* seconds */
enum { STATUS_SHARE = 200 /* status lines may take 1/200 of the time */ };

struct run_options {
    const char *directory; /* NULL: .stoker/NNNN */
    double every;          /* seconds between status lines */
    bool quiet, no_report, try_stoker;
    uint16_t port;    /* for --metrics; 0: none */
    const char *json; /* file for the JSON summary, "-": standard output; NULL: none */
    char **command;
};

/* ---- the status line -------------------------------------------------------------------------- */

static double cpu_seconds(void) { return (double)st_thread_cpu_ns() / 1e9; }

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
    const bool known = !dr_run_open(&run, directory->path, NULL) &&
                       !dr_facts_of(&facts, run, -1, NULL) && facts.step_count;
    if (known)
        add_steps(line, sizeof line, &facts);
    else
        snprintf(line, sizeof line, "%.0f s | %u process%s | no training steps seen yet",
                 (double)(st_now_ns() - start_ns) / SECOND, dr_recorder_processes(recorder),
                 dr_recorder_processes(recorder) == 1 ? "" : "es");
    add_cpus(line, sizeof line, recorder);
    fprintf(stderr, "stoker  %s\n", line);
    if (run) {
        dr_facts_free(&facts);
        dr_run_close(run);
    }
}

/* Samples until the command ends. */
static void watch(const struct run_options *options, const struct dr_directory *directory,
                  struct dr_command *command, struct dr_recorder *recorder, struct dr_metrics *metrics)
{
    const uint64_t start = st_now_ns();
    const double first = options->every < FIRST_STATUS ? options->every : FIRST_STATUS;
    uint64_t status_at = start + (uint64_t)(first * SECOND);
    uint64_t next = start;
    while (!dr_command_wait(command, next)) {
        next = dr_recorder_tick(recorder);
        if (metrics)
            dr_metrics_serve(metrics, directory->path);
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
    bool judged;          /* the run could be read, and has a verdict */
    bool json, html, trace; /* these files were written */
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
        fail(0, "cannot write %s: %s", path, strerror(errno));
    return whole;
}

static void print_report(const struct dr_directory *directory, struct report *report)
{
    struct dr_style style = dr_style_for(stderr);
    style.first = !strcmp(directory->shown, ".stoker/0001");
    dr_print_verdict(stderr, &style, &report->verdict, &report->facts);
    report->json = write_report(directory, "run.json", write_json, report);
    report->html = write_report(directory, "report.html", write_html, report);
    report->trace = write_report(directory, "trace.json", write_trace, report);
    if (report->verdict.failed)
        return;
    const bool html = report->html, trace = report->trace;
    struct shown_text room;
    const char *place = shown(&room, directory->shown);
    fprintf(stderr, "stoker: %s%s%s%s%s%s\n", html ? "report " : "", html ? place : "",
            html ? "/report.html" : "", trace ? "  trace " : "", trace ? place : "",
            trace ? "/trace.json (ui.perfetto.dev)" : "");
}

static void report_run(const struct dr_directory *directory, struct report *report)
{
    struct stoker_error err = {0};
    if (dr_run_open(&report->run, directory->path, &err)) {
        fail(0, "cannot read the recorded run: %s", err.message);
        return;
    }
    /* Without steps there are no facts: the verdict then says what would help. */
    dr_facts_of(&report->facts, report->run, -1, NULL);
    dr_judge(&report->verdict, &report->facts);
    report->judged = true;
    print_report(directory, report);
}

static void report_free(struct report *report)
{
    if (report && report->run) {
        dr_facts_free(&report->facts);
        dr_run_close(report->run);
    }
    free(report);
}

/* ---- the summary for scripts ---------------------------------------------------------------------- */

static void write_path(struct json *json, const char *key, const struct dr_directory *directory,
                       const char *name, bool written)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", directory->path, name);
    json_string(json, key, written ? path : NULL);
}

static void write_summary(FILE *to, const struct dr_directory *directory, int exit_code,
                          const struct report *report)
{
    struct json json = {.to = to};
    json_open(&json, NULL, '{');
    json_number(&json, "exit_code", exit_code);
    json_string(&json, "directory", directory->path);
    write_path(&json, "run_json", directory, "run.json", report && report->json);
    write_path(&json, "report_html", directory, "report.html", report && report->html);
    write_path(&json, "trace_json", directory, "trace.json", report && report->trace);
    if (report && report->judged) {
        dr_json_verdict(&json, &report->verdict);
    } else {
        json_null(&json, "verdict");
        json_null(&json, "findings");
        json_null(&json, "cleared");
        json_null(&json, "unjudged");
    }
    json_close(&json, '}');
}

static void save_summary(const char *path, const struct dr_directory *directory, int exit_code,
                         const struct report *report)
{
    const bool out = !strcmp(path, "-");
    FILE *file = out ? stdout : fopen(path, "we");
    if (file)
        write_summary(file, directory, exit_code, report);
    if (!file || fflush(file) || ferror(file) || (!out && fclose(file)))
        fail(0, "cannot write %s: %s", out ? "the JSON to standard output" : path, strerror(errno));
}

/* ---- the command ------------------------------------------------------------------------------ */

static int run_in(const struct run_options *options, const struct dr_directory *directory,
                  struct dr_metrics *metrics)
{
    struct dr_command command;
    struct dr_recorder *recorder = NULL;
    struct report *report = NULL;
    struct stoker_error err = {0};
    if (options->try_stoker ? setenv("STOKER_TRY", "1", 1) : unsetenv("STOKER_TRY"))
        return fail(EXIT_FAILED, "out of memory for the environment of the command");
    if (dr_directory_environment(directory, &err))
        return fail(EXIT_FAILED, "%s", err.message);
    if (dr_command_start(&command, options->command, &err)) {
        dr_directory_undo(directory);
        return fail(command.exit_code, "%s", err.message);
    }
    struct shown_text room;
    if (!options->quiet)
        fprintf(stderr, "stoker: watching process %d, run directory %s\n", (int)command.pid,
                shown(&room, directory->shown));
    if (!options->quiet && metrics)
        fprintf(stderr, "stoker: metrics at http://127.0.0.1:%u/metrics\n", options->port);
    /* The command is running: it must not suffer when watching it fails. */
    const bool watched =
        !dr_recorder_open(&recorder, directory->path, command.pid, command.sentinel, &err);
    if (watched) {
        watch(options, directory, &command, recorder, metrics);
        if (dr_recorder_finish(recorder, command.exit_code, &err))
            fail(0, "%s", err.message);
    } else {
        fail(0, "the command runs without being watched: %s", err.message);
        while (!dr_command_wait(&command, UINT64_MAX))
            ;
    }
    dr_command_close(&command);
    dr_recorder_close(recorder);
    if (watched && !options->no_report) {
        report = calloc(1, sizeof *report);
        if (report)
            report_run(directory, report);
        else
            fail(0, "out of memory for the report of %s", directory->shown);
    }
    if (options->json)
        save_summary(options->json, directory, command.exit_code, report);
    report_free(report);
    return command.exit_code;
}

static void accept_port(struct arguments *args, struct run_options *options)
{
    uint64_t port = 0;
    if (accept_value(args, parse_count(args->value, 1, UINT16_MAX, &port)))
        options->port = (uint16_t)port;
}

static int parse(struct run_options *options, int argc, char **argv)
{
    struct arguments args = ARGUMENTS(&cmd_run, argc, argv);
    while (!options->command && next_argument(&args)) {
        if (option_is(&args, "--quiet"))
            options->quiet = true;
        else if (option_is(&args, "--no-report"))
            options->no_report = true;
        else if (option_is(&args, "--metrics"))
            accept_port(&args, options);
        else if (option_is(&args, "--try-stoker"))
            options->try_stoker = true;
        else if (option_is(&args, "--json"))
            options->json = args.value;
        else if (option_is(&args, "--dir"))
            options->directory = args.value;
        else if (option_is(&args, "--every"))
            accept_value(&args, parse_seconds(args.value, 1, 86400, &options->every));
        else
            options->command = argv + args.at - 1; /* everything from here on belongs to it */
    }
    if (args.failed)
        return EXIT_USAGE;
    if (!options->command)
        return fail(EXIT_USAGE, "run: no command given. Example: stoker run -- python train.py");
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
        return fail(code, "run: %s '%s'",
                    code == DR_NOT_FOUND ? "there is no program" : "cannot execute", options.command[0]);
    struct dr_metrics *metrics = NULL;
    if (options.port && dr_metrics_open(&metrics, options.port, &err))
        return fail(EXIT_FAILED, "%s", err.message);
    if (dr_directory_make(&directory, options.directory, options.command, &err))
        code = fail(EXIT_FAILED, "%s", err.message);
    else
        code = run_in(&options, &directory, metrics);
    dr_metrics_close(metrics);
    return code;
}

static const struct cli_option options[] = {
    {"--dir", "DIR",
     "record into this folder, which must be new or empty (default: the next .stoker/NNNN)",
     "a new or empty folder", .completes = COMPLETES_FOLDERS},
    {"--every", "S", "seconds between status lines (default 30; the first one after 10)",
     "a number of seconds from 1 to 86400"},
    {"--quiet", NULL, "print no status lines"},
    {"--no-report", NULL, "only record; 'stoker report DIR' judges the run later"},
    {"--metrics", "PORT",
     "serve stall share, ready batches, samples per second and GPU load of the last minute in\n"
     "Prometheus' text format at http://127.0.0.1:PORT/metrics while the command runs",
     "the number of a port, from 1 to 65535"},
    {"--try-stoker", NULL,
     "measure what Stoker's loader would gain: after the program's end, about 128 samples that\n"
     "it used are made once more by torch's loader and by Stoker's, in a forked child of the\n"
     "program, for 10 seconds or so; the program's results, output and exit code are as without"},
    {"--json", "FILE",
     "after the run, write exit code, verdict, findings and paths as JSON to FILE;\n"
     "- is standard output",
     "the name of a file, or - for standard output", .completes = COMPLETES_FILES},
    {NULL},
};

const struct command cmd_run = {
    .name = "run",
    .summary = "run a training command unchanged, and report what it waited for and what to change",
    .synopsis = "[OPTIONS] [--] COMMAND [ARGUMENTS]",
    .about = "Runs the command with its input, output, signals and exit code untouched, and watches\n"
             "it: CPUs, memory, disks, network and GPU from outside, the loader and the steps from\n"
             "inside Python. When the command has ended, the verdict is printed on standard error:\n"
             "whether training waited for data, why, what to change, and what that would gain.",
    .options = options,
    .notes = "In the other commands --json is a switch and prints to standard output. Here standard\n"
             "output belongs to the command, so --json takes the name of a file (/dev/fd/3 works\n"
             "too). With '-' the JSON follows the last output of the command. All numbers of the run\n"
             "are in run.json in the run directory.\n"
             "\n"
             "STOKER_OFF=1 keeps Stoker out of the command's Python: the run is then watched from\n"
             "outside only.\n"
             "\n"
             "Exit code: that of the command; 128 + N if signal N killed it, 127 if there is no such\n"
             "command, 126 if it cannot be executed; 1 if the run directory cannot be made, 2 usage\n"
             "error.",
    .arguments = COMPLETES_COMMANDS,
    .run = run_run,
};
