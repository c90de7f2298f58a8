/* check.c - `stoker check`: compares a run with limits, for CI
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/cli.h"
#include "cli/json.h"
#include "doctor/report/report.h"
#include "doctor/rule/words.h"

#include <string.h>

/* Limits that were not given are NaN. */
struct check {
    const char *run;
    double max_stall, min_readiness, max_step;
    bool json;
};

/* "10%" or "0.1", within [0, 1]. */
static bool parse_share(const char *text, double *out)
{
    char number[32];
    const size_t length = strlen(text);
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
    struct arguments args = ARGUMENTS(&cmd_check, argc, argv);
    while (next_argument(&args)) {
        if (option_is(&args, "--json"))
            c->json = true;
        else if (option_is(&args, "--max-stall"))
            accept_value(&args, parse_share(args.value, &c->max_stall));
        else if (option_is(&args, "--min-readiness"))
            accept_value(&args, parse_share(args.value, &c->min_readiness));
        else if (option_is(&args, "--max-step"))
            accept_value(&args, parse_seconds(args.value, 0, 1e6, &c->max_step));
        else if (c->run)
            refuse_argument(&args);
        else
            c->run = args.word;
    }
    if (args.failed)
        return EXIT_USAGE;
    if (!dr_known(c->max_stall) && !dr_known(c->min_readiness) && !dr_known(c->max_step))
        return fail(EXIT_USAGE,
                    "check: give at least one limit, such as: stoker check --max-stall 10%%");
    return EXIT_OK;
}

struct limit {
    const char *name, *unit;
    double value, limit;
    bool at_least;
};

static int judge(const struct limit *l)
{
    if (!dr_known(l->value))
        return EXIT_FAILED;
    return (l->at_least ? l->value >= l->limit : l->value <= l->limit) ? EXIT_OK : EXIT_FOUND;
}

static const char *word_for(int code)
{
    return code == EXIT_OK ? "ok" : code == EXIT_FAILED ? "unknown" : "exceeded";
}

static void print_limit(const struct limit *l)
{
    struct dr_text measured, wanted;
    printf("%-8s %-10s %s, %s %s\n", word_for(judge(l)), l->name,
           dr_unit_text(&measured, l->value, l->unit),
           l->at_least ? "must be at least" : "must be at most",
           dr_unit_text(&wanted, l->limit, l->unit));
}

static void write_limit(struct json *json, const struct limit *l)
{
    json_open(json, NULL, '{');
    json_string(json, "name", l->name);
    json_string(json, "unit", l->unit);
    json_number(json, "value", l->value);
    json_number(json, "limit", l->limit);
    json_string(json, "bound", l->at_least ? "min" : "max");
    json_string(json, "result", word_for(judge(l)));
    json_close(json, '}');
}

static int check_limits(const struct check *c, const struct dr_judged *judged)
{
    const struct dr_facts *f = &judged->facts;
    const struct limit limits[] = {{"stall", "share", f->stall_share, c->max_stall, false},
                                   {"readiness", "share", f->readiness, c->min_readiness, true},
                                   {"step", "s", f->step, c->max_step, false}};
    struct json json = {.to = stdout};
    int worst = EXIT_OK; /* an exceeded limit outranks one that cannot be judged */
    if (c->json) {
        json_open(&json, NULL, '{');
        json_string(&json, "run", judged->run->directory);
        json_open(&json, "limits", '[');
    }
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (!dr_known(limits[i].limit))
            continue;
        if (c->json)
            write_limit(&json, &limits[i]);
        else
            print_limit(&limits[i]);
        worst = judge(&limits[i]) > worst ? judge(&limits[i]) : worst;
    }
    if (c->json) {
        json_close(&json, ']');
        json_string(&json, "result", word_for(worst));
        json_close(&json, '}');
    }
    return worst;
}

static int check_run(int argc, char **argv)
{
    struct check c = {.max_stall = NAN, .min_readiness = NAN, .max_step = NAN};
    struct stoker_error err = {0};
    struct dr_judged *judged;
    const int usage = parse(&c, argc, argv);
    if (usage != EXIT_OK)
        return usage;
    const int rc = dr_judged_open(&judged, c.run, &err);
    const int code = rc ? fail(EXIT_FAILED, "%s", err.message) : check_limits(&c, judged);
    dr_judged_close(judged);
    return code;
}

static const struct cli_option options[] = {
    {"--max-stall", "SHARE",
     "the share of a step in which the GPU (without a GPU: the training\n"
     "thread) waits for data, as 10% or 0.1",
     "a share from 0 to 1, such as 10% or 0.1"},
    {"--min-readiness", "SHARE", "the share of next() calls that find their batch ready",
     "a share from 0 to 1, such as 90% or 0.9"},
    {"--max-step", "SECONDS", "the mean time of a step", 
     "a number of seconds from 0 to 1000000, such as 0.25"},
    {"--json", NULL, "print the result as JSON"},
    {NULL},
};

const struct command cmd_check = {
    .name = "check",
    .summary = "compare a run with limits, for CI",
    .synopsis = "[RUN] LIMITS [--json]",
    .about = "Prints one line per limit, with the measured value, and exits with 3 if a limit is\n"
             "exceeded. RUN is the number or the directory of a run that 'stoker run' recorded; the\n"
             "default is the newest run in .stoker.",
    .options = options,
    .notes = "Exit codes: 0 all limits are kept, 1 the run cannot be read or a value is unknown, 2\n"
             "usage error, 3 a limit is exceeded.",
    .arguments = COMPLETES_FOLDERS,
    .run = check_run,
};
