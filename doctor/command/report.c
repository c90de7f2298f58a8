/* report.c - `stoker report`: a recorded run as text, page, JSON or trace; two runs side by side
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "doctor/report/json.h"
#include "doctor/report/report.h"
#include "doctor/rule/words.h"
#include "doctor/run/script.h"

#include "base/err.h"

#include <errno.h>
#include <string.h>

struct report {
    const char *run, *html, *trace, *diff[2];
    bool json;
};

static int parse(struct report *r, int argc, char **argv)
{
    struct arguments args = ARGUMENTS(&cmd_report, argc, argv);
    while (next_argument(&args)) {
        if (option_is(&args, "--json"))
            r->json = true;
        else if (option_is(&args, "--html"))
            r->html = args.value;
        else if (option_is(&args, "--trace"))
            r->trace = args.value;
        else if (option_is(&args, "--diff")) {
            r->diff[0] = args.value;
            if (!next_argument(&args) || args.option)
                return args.failed
                           ? EXIT_USAGE
                           : fail(EXIT_USAGE, "report: --diff takes two runs, such as: stoker report "
                                              "--diff 7 8");
            r->diff[1] = args.word;
        } else if (r->run)
            refuse_argument(&args);
        else
            r->run = args.word;
    }
    if (args.failed)
        return EXIT_USAGE;
    if (r->diff[0] && (r->run || r->html || r->trace))
        return fail(EXIT_USAGE, "report: --diff A B can be combined with --json only, not with '%s'",
                    r->run ? r->run : r->html ? "--html" : "--trace");
    return EXIT_OK;
}

/* ---- one run ------------------------------------------------------------------------------------- */

enum form { FORM_HTML, FORM_TRACE };

static int write_file(const char *path, const struct dr_judged *judged, enum form form,
                      struct stoker_error *err)
{
    const bool out = !strcmp(path, "-");
    FILE *file = out ? stdout : fopen(path, "we");
    if (!file)
        return st_fail_errno(err, errno, "%s", path);
    errno = 0;
    int rc = form == FORM_HTML ? dr_write_html(file, &judged->verdict, &judged->facts)
                               : dr_write_trace(file, &judged->facts);
    if (fflush(file) || (!out && fclose(file)))
        rc = STOKER_EIO;
    return rc ? st_fail_errno(err, errno ? errno : EIO, "%s", path) : STOKER_OK;
}

static int report_one(const struct report *r, struct stoker_error *err)
{
    struct dr_judged *judged;
    int rc = dr_judged_open(&judged, r->run, err);
    if (!rc && r->html)
        rc = write_file(r->html, judged, FORM_HTML, err);
    if (!rc && r->trace)
        rc = write_file(r->trace, judged, FORM_TRACE, err);
    if (!rc && r->json && dr_write_json(stdout, &judged->verdict, &judged->facts))
        rc = st_fail(err, STOKER_EIO, "cannot write to standard output");
    if (!rc && !r->html && !r->trace && !r->json) {
        const struct dr_style style = dr_style_for(stdout);
        dr_print_verdict(stdout, &style, &judged->verdict, &judged->facts);
    }
    dr_judged_close(judged);
    return rc;
}

/* ---- two runs ------------------------------------------------------------------------------------ */

/* Speed-up of b over a: by samples per second where both are known, else by the step time. */
static double ratio_of(const struct dr_facts *a, const struct dr_facts *b)
{
    const double ratio = b->samples_per_second / a->samples_per_second;
    return isfinite(ratio) ? ratio : a->step / b->step;
}

static double cpu_share(const struct dr_facts *f) { return f->cpus_used / f->limits.cpus; }

static const char *name_of(const struct dr_judged *judged)
{
    const char *slash = strrchr(judged->run->directory, '/');
    return slash && slash[1] ? slash + 1 : judged->run->directory;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

/* Whether both ran the same program, whatever its arguments. A script of the same name in another folder
 * may be a copy with a change. Unknown programs are compared by their commands. */
static bool same_program(const struct dr_run *a, const struct dr_run *b)
{
    struct dr_script one, other;
    const bool known = dr_script_of(&one, a->argv), also = dr_script_of(&other, b->argv);
    if (known != also)
        return false;
    if (!known)
        return a->argv && b->argv && same_text(a->argv[0], b->argv[0]) &&
               (!a->argv[0] || same_text(a->argv[1], b->argv[1]));
    const char *x = strrchr(one.name, '/'), *y = strrchr(other.name, '/');
    return one.is_module == other.is_module && same_text(x ? x + 1 : one.name, y ? y + 1 : other.name);
}

static void print_row(const struct dr_judged *judged, const char *more)
{
    const struct dr_facts *f = &judged->facts;
    const struct dr_verdict *v = &judged->verdict;
    struct dr_text step, rate, stall, sm, cpu;
    struct shown_text name, limiter;
    printf("%-12.40s %10s %10s %7s %7s %7s  %s%s%.60s%s%s\n", shown(&name, name_of(judged)),
           dr_plain_text(&step, 1e3 * f->step), dr_plain_text(&rate, f->samples_per_second),
           dr_share_text(&stall, f->stall_share), dr_share_text(&sm, f->gpu_sm),
           dr_share_text(&cpu, cpu_share(f)), dr_kind_name(v->kind), *v->limiter ? " (" : "",
           shown(&limiter, v->limiter), *v->limiter ? ")" : "", more);
}

static void print_command(const struct dr_run *run)
{
    struct shown_text room;
    putchar(' ');
    for (char *const *word = run->argv; word && *word; word++)
        printf(" %.200s", shown(&room, *word));
    putchar('\n');
}

static void print_diff(const struct dr_judged *a, const struct dr_judged *b)
{
    const struct dr_range *predicted = &a->verdict.all;
    const double ratio = ratio_of(&a->facts, &b->facts);
    printf("%-12s %10s %10s %7s %7s %7s  %s\n", "run", "step ms", "samples/s", "stall", "SM", "CPU",
           "verdict");
    print_row(a, "");
    print_row(b, "");
    if (!same_program(a->run, b->run)) {
        printf("these are runs of different programs, so their speeds cannot be compared:\n");
        print_command(a->run);
        print_command(b->run);
        return;
    }
    if (isfinite(ratio))
        printf("speed-up: %.2fx", ratio);
    else
        printf("speed-up: n/a");
    if (isfinite(predicted->mid))
        printf("; predicted for all of the advice: %.2fx (%.2f to %.2f)", predicted->mid, predicted->low,
               predicted->high);
    else
        printf("; no prediction");
    putchar('\n');
}

static void write_side(struct json *json, const char *key, const struct dr_judged *judged)
{
    const struct dr_facts *f = &judged->facts;
    json_open(json, key, '{');
    json_string(json, "run", judged->run->directory);
    json_number(json, "step", f->step);
    json_number(json, "samples_per_second", f->samples_per_second);
    json_number(json, "stall_share", f->stall_share);
    json_number(json, "gpu_sm", f->gpu_sm);
    json_number(json, "cpu_share", cpu_share(f));
    json_string(json, "verdict", dr_kind_name(judged->verdict.kind));
    json_string(json, "code", dr_verdict_code(&judged->verdict));
    json_string(json, "limiter", judged->verdict.limiter);
    json_close(json, '}');
}

static void write_diff(const struct dr_judged *a, const struct dr_judged *b)
{
    struct json json = {.to = stdout};
    json_open(&json, NULL, '{');
    write_side(&json, "a", a);
    write_side(&json, "b", b);
    const bool same = same_program(a->run, b->run);
    json_bool(&json, "same_program", same);
    json_number(&json, "ratio", same ? ratio_of(&a->facts, &b->facts) : NAN);
    dr_json_range(&json, "predicted", &a->verdict.all);
    json_close(&json, '}');
}

static int report_two(const struct report *r, struct stoker_error *err)
{
    struct dr_judged *a, *b = NULL;
    int rc = dr_judged_open(&a, r->diff[0], err);
    if (!rc)
        rc = dr_judged_open(&b, r->diff[1], err);
    if (!rc)
        (r->json ? write_diff : print_diff)(a, b);
    dr_judged_close(a);
    dr_judged_close(b);
    return rc;
}

static int report_run(int argc, char **argv)
{
    struct report r = {0};
    struct stoker_error err = {0};
    const int usage = parse(&r, argc, argv);
    if (usage != EXIT_OK)
        return usage;
    const int rc = r.diff[0] ? report_two(&r, &err) : report_one(&r, &err);
    return rc ? fail(EXIT_FAILED, "%s", err.message) : EXIT_OK;
}

static const struct cli_option options[] = {
    {"--html", "FILE", "write the report page: one file that needs no network; - is standard output",
     "the name of a file, or - for standard output", .completes = COMPLETES_FILES},
    {"--trace", "FILE", "write the last 500 steps for ui.perfetto.dev or chrome://tracing",
     "the name of a file, or - for standard output", .completes = COMPLETES_FILES},
    {"--json", NULL, "print every number as JSON (the same as run.json)"},
    {"--diff", "A B",
     "compare two runs: step time, samples per second, stall, SM, CPU and verdict,\n"
     "the measured speed-up of B over A, and the one that the verdict of A predicted",
     "two runs, such as: 7 8", .completes = COMPLETES_FOLDERS},
    {NULL},
};

const struct command cmd_report = {
    .name = "report",
    .summary = "show the verdict of a recorded run as text, page, JSON or trace; compare two runs",
    .synopsis = "[RUN] [--html FILE] [--trace FILE] [--json]\n--diff A B [--json]",
    .about = "Prints the verdict of a run, or writes what the options ask for. RUN is the number or\n"
             "the directory of a run that 'stoker run' recorded; the default is the newest run in\n"
             ".stoker.",
    .options = options,
    .notes = "Exit codes: 0 success, 1 the run cannot be read or judged, 2 usage error.",
    .arguments = COMPLETES_FOLDERS,
    .run = report_run,
};
