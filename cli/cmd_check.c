/* cmd_check.c - `stoker check`: whether a run keeps to limits, for CI
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/doctor/report.h"
#include "cli/doctor/report/words.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_EXCEEDED = 3 };

/* Limits that were not given are NaN. */
struct check {
    const char *run;
    double max_stall, min_readiness, max_step;
};

/* "10%" or "0.1", within [0, 1]. */
static bool parse_share(const char *text, double *out)
{
    char number[32];
    const size_t length = text ? strlen(text) : 0;
    if (!length || length >= sizeof number)
        return false;
    const bool percent = text[length - 1] == '%';
    snprintf(number, sizeof number, "%.*s", (int)(length - percent), text);
    if (!parse_seconds(number, 0, percent ? 100 : 1, out))
        return false;
    if (percent)
        *out /= 100;
    return true;
}

static int parse(struct check *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (option[0] != '-' && !c->run)
            c->run = option;
        else if (option_is(option, "--max-stall")) {
            if (!parse_share(option_value(argc, argv, &i), &c->max_stall))
                return fail(EXIT_USAGE, "'--max-stall' wants a share, such as 10%% or 0.1");
        } else if (option_is(option, "--min-readiness")) {
            if (!parse_share(option_value(argc, argv, &i), &c->min_readiness))
                return fail(EXIT_USAGE, "'--min-readiness' wants a share, such as 90%% or 0.9");
        } else if (option_is(option, "--max-step")) {
            if (!parse_seconds(option_value(argc, argv, &i), 0, 1e6, &c->max_step))
                return fail(EXIT_USAGE, "'--max-step' wants seconds, such as 0.25");
        } else
            return fail(EXIT_USAGE, "check does not know what to do with '%s': see 'stoker help check'",
                        option);
    }
    if (!dr_known(c->max_stall) && !dr_known(c->min_readiness) && !dr_known(c->max_step))
        return fail(EXIT_USAGE, "which limit? Example: stoker check --max-stall 10%%");
    return EXIT_OK;
}

/* One line a limit; the exit code by it. */
static int hold(const char *name, double value, double limit, bool at_least, const char *unit)
{
    struct dr_text measured, wanted;
    if (!dr_known(limit))
        return EXIT_OK;
    const bool fine = at_least ? value >= limit : value <= limit;
    const int code = !dr_known(value) ? EXIT_FAILED : fine ? EXIT_OK : EXIT_EXCEEDED;
    printf("%-8s %-10s %s, %s %s\n",
           code == EXIT_OK       ? "ok"
           : code == EXIT_FAILED ? "unknown"
                                 : "exceeded",
           name, dr_unit_text(&measured, value, unit), at_least ? "at least" : "at most",
           dr_unit_text(&wanted, limit, unit));
    return code;
}

static int check_run(int argc, char **argv)
{
    struct check c = {.max_stall = NAN, .min_readiness = NAN, .max_step = NAN};
    struct stoker_error err = {0};
    struct dr_judged *judged;
    const int usage = parse(&c, argc, argv);
    if (usage != EXIT_OK)
        return usage;
    if (dr_judged_open(&judged, c.run, &err)) {
        dr_judged_close(judged);
        return fail(EXIT_FAILED, "%s", err.message);
    }
    const struct dr_facts *f = &judged->facts;
    const int codes[] = {hold("stall", f->stall_share, c.max_stall, false, "share"),
                         hold("readiness", f->readiness, c.min_readiness, true, "share"),
                         hold("step", f->step, c.max_step, false, "s")};
    int code = EXIT_OK; /* a limit that is exceeded counts more than one that cannot be judged */
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        code = codes[i] > code ? codes[i] : code;
    dr_judged_close(judged);
    return code;
}

const struct command cmd_check = {
    .name = "check",
    .summary = "whether a run keeps to limits, for CI",
    .usage =
        "usage: stoker check [RUN] [--max-stall SHARE] [--min-readiness SHARE] [--max-step SECONDS]\n"
        "\n"
        "RUN is the number or the directory of what 'stoker run' wrote; the newest under .stoker by\n"
        "default. Prints a line for each limit, with the measured value.\n"
        "\n"
        "  --max-stall SHARE      of a step, the GPU (or, without one, training) waits for data: 10% or "
        "0.1\n"
        "  --min-readiness SHARE  of the calls of next(), those that find their batch ready\n"
        "  --max-step SECONDS     the mean step\n"
        "\n"
        "Exit codes: 0 within all limits, 1 the run cannot be read or judged, 2 usage, 3 a limit is\n"
        "exceeded.\n",
    .run = check_run,
};
