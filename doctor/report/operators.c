/* operators.c - what each function costs per sample: on the screen, in the page, in JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/operators.h"

#include "cli/cli.h"
#include "cli/out.h"
#include "doctor/rule/case.h"

static const double LEAST_SHOWN = 0.01; /* of the time of a sample, on the screen */
enum { MOST_SHOWN = 10 };
static const char OTHER[] = "all other code";

/* The share of the time of a sample that is in none of them. */
static double other_share(const struct dr_facts *f)
{
    double share = 1;
    for (uint32_t i = 0; i < f->operator_count; i++)
        share -= f->operators[i].share;
    return fmax(share, 0);
}

static void print_row(FILE *to, uint32_t indent, const char *name, const char *stage, double calls,
                      double seconds, double share)
{
    struct shown_text room;
    struct dr_text number, us, part;
    fprintf(to, "%*s%-28.28s %-13s %9s %10s %7s\n", (int)indent, "", shown(&room, name), stage,
            dr_known(calls) ? dr_plain_text(&number, calls) : "", dr_plain_text(&us, seconds * 1e6),
            dr_share_text(&part, share));
}

void dr_print_operators(FILE *to, uint32_t indent, const struct dr_facts *f)
{
    if (!f->operator_count)
        return;
    fprintf(to, "%*s%-28s %-13s %9s %10s %7s\n", (int)indent, "", "function", "stage", "calls", "us",
            "share");
    double left = 1;
    for (uint32_t i = 0; i < f->operator_count && i < MOST_SHOWN; i++) {
        const struct dr_operator *one = &f->operators[i];
        if (one->share < LEAST_SHOWN)
            break;
        left -= one->share;
        print_row(to, indent, one->name, dr_stage_word(one->stage), one->calls, one->seconds,
                  one->share);
    }
    if (left >= LEAST_SHOWN)
        print_row(to, indent, OTHER, "", NAN, left * f->sample_seconds, left);
}

static void put_row(FILE *to, const char *name, const char *stage, double calls, double seconds,
                    double share)
{
    struct dr_text number, us, part;
    fputs("<tr><td><code>", to);
    html_text(to, name);
    fprintf(to, "</code></td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", stage,
            dr_known(calls) ? dr_plain_text(&number, calls) : "", dr_plain_text(&us, seconds * 1e6),
            dr_share_text(&part, share));
}

void dr_html_operators(FILE *to, const struct dr_facts *f)
{
    if (!f->operator_count)
        return;
    fputs("<h3>What a sample costs</h3>\n<div class=scroll><table class=numbers><tr><th>function</th>"
          "<th>stage</th><th>calls per sample</th><th>us per sample</th><th>share</th></tr>\n",
          to);
    for (uint32_t i = 0; i < f->operator_count; i++) {
        const struct dr_operator *one = &f->operators[i];
        put_row(to, one->name, dr_stage_word(one->stage), one->calls, one->seconds, one->share);
    }
    put_row(to, OTHER, "", NAN, other_share(f) * f->sample_seconds, other_share(f));
    fputs("</table></div>\n<p class=note>Mean over the whole run, in its worker or in the training "
          "thread, without functions of this table inside of others.</p>\n",
          to);
}

void dr_json_operators(struct json *json, const struct dr_facts *f)
{
    json_open(json, "operators", '[');
    for (uint32_t i = 0; i < f->operator_count; i++) {
        const struct dr_operator *one = &f->operators[i];
        json_open(json, NULL, '{');
        json_string(json, "name", one->name);
        json_string(json, "stage", dr_stage_names[one->stage]);
        json_number(json, "calls_per_sample", one->calls);
        json_number(json, "seconds_per_sample", one->seconds);
        json_number(json, "share", one->share);
        json_close(json, '}');
    }
    json_close(json, ']');
}
