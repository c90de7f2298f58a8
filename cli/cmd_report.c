/* cmd_report.c - `stoker report`: a run again, as text, page, JSON or trace; two runs side by side
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/doctor/report.h"
#include "cli/doctor/report/json.h"
#include "cli/doctor/report/words.h"

#include "base/err.h"

#include <errno.h>
#include <string.h>

struct report {
    const char *run, *html, *trace, *diff[2];
    bool json;
};

static int parse(struct report *r, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (option[0] != '-' && !r->run)
            r->run = option;
        else if (!strcmp(option, "--json"))
            r->json = true;
        else if (option_is(option, "--html")) {
            if (!(r->html = option_value(argc, argv, &i)))
                return fail(EXIT_USAGE, "'--html' wants the name of a file, or - for standard output");
        } else if (option_is(option, "--trace")) {
            if (!(r->trace = option_value(argc, argv, &i)))
                return fail(EXIT_USAGE, "'--trace' wants the name of a file, or - for standard output");
        } else if (!strcmp(option, "--diff")) {
            if (i + 2 >= argc)
                return fail(EXIT_USAGE, "'--diff' wants two runs, such as: stoker report --diff 7 8");
            r->diff[0] = argv[++i];
            r->diff[1] = argv[++i];
        } else
            return fail(EXIT_USAGE,
                        "report does not know what to do with '%s': see 'stoker help report'", option);
    }
    if (r->diff[0] && (r->run || r->html || r->trace))
        return fail(EXIT_USAGE, "'--diff A B' goes with '--json' alone");
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
        rc = st_fail(err, STOKER_EIO, "standard output cannot be written");
    if (!rc && !r->html && !r->trace && !r->json) {
        const struct dr_style style = dr_style_for(stdout);
        dr_print_verdict(stdout, &style, &judged->verdict, &judged->facts);
    }
    dr_judged_close(judged);
    return rc;
}

/* ---- two runs ------------------------------------------------------------------------------------ */

/* How many times faster the second is: by samples where both know them, else by steps. */
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

static void print_diff(const struct dr_judged *a, const struct dr_judged *b)
{
    const struct dr_range *predicted = &a->verdict.all;
    const double ratio = ratio_of(&a->facts, &b->facts);
    printf("%-12s %10s %10s %7s %7s %7s  %s\n", "run", "step ms", "samples/s", "stall", "SM", "CPU",
           "verdict");
    print_row(a, "");
    print_row(b, "");
    if (isfinite(ratio))
        printf("%.2fx as fast", ratio);
    else
        printf("how much faster: n/a");
    if (isfinite(predicted->mid))
        printf("; predicted for all of the advice: %.2fx (%.2f to %.2f)", predicted->mid, predicted->low,
               predicted->high);
    else
        printf("; nothing was predicted");
    putchar('\n');
}

static void write_side(struct dr_json *json, const char *key, const struct dr_judged *judged)
{
    const struct dr_facts *f = &judged->facts;
    dr_json_open(json, key, '{');
    dr_json_text(json, "run", judged->run->directory);
    dr_json_number(json, "step", f->step);
    dr_json_number(json, "samples_per_second", f->samples_per_second);
    dr_json_number(json, "stall_share", f->stall_share);
    dr_json_number(json, "gpu_sm", f->gpu_sm);
    dr_json_number(json, "cpu_share", cpu_share(f));
    dr_json_text(json, "verdict", dr_kind_name(judged->verdict.kind));
    dr_json_text(json, "code", dr_verdict_code(&judged->verdict));
    dr_json_text(json, "limiter", judged->verdict.limiter);
    dr_json_close(json, '}');
}

static void write_diff(const struct dr_judged *a, const struct dr_judged *b)
{
    struct dr_json json = {.to = stdout};
    dr_json_open(&json, NULL, '{');
    write_side(&json, "a", a);
    write_side(&json, "b", b);
    dr_json_number(&json, "ratio", ratio_of(&a->facts, &b->facts));
    dr_json_range(&json, "predicted", &a->verdict.all);
    dr_json_close(&json, '}');
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

const struct command cmd_report = {
    .name = "report",
    .summary = "the verdict of a run again, as text, page, JSON or trace; two runs side by side",
    .usage =
        "usage: stoker report [RUN] [--html FILE] [--trace FILE] [--json]\n"
        "       stoker report --diff A B [--json]\n"
        "\n"
        "RUN is the number or the directory of what 'stoker run' wrote; the newest under .stoker by\n"
        "default. Prints the verdict, or writes what is asked for.\n"
        "\n"
        "  --html FILE    the page, in one file that needs no network; - is standard output\n"
        "  --trace FILE   the last 500 steps for ui.perfetto.dev or chrome://tracing\n"
        "  --json         every number, on standard output\n"
        "  --diff A B     two runs in a table: step, samples a second, stall, SM, CPU, verdict, and\n"
        "                 how much faster B is against what the verdict of A predicted\n"
        "\n"
        "Exit codes: 0 done, 1 the run cannot be read or judged, 2 usage.\n",
    .run = report_run,
};
