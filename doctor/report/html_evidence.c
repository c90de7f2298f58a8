/* html_evidence.c - report.html: the ranks side by side; which rules were judged, and by which numbers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/html.h"
#include "doctor/report/numbers.h"
#include "doctor/report/timeline.h"

#include "cli/out.h"

#include <string.h>

enum { HEAT_COLUMNS = 60, HEAT_ROWS = 64 };

/* ---- ranks ------------------------------------------------------------------------------------- */

/* For each part of the run, the share of time that this process spent in next(). */
static bool waits_of(const struct dr_run *run, const struct dr_process *process,
                     double out[HEAT_COLUMNS])
{
    const double part = (double)(run->end_ns - run->start_ns) / HEAT_COLUMNS;
    bool seen = false;
    memset(out, 0, HEAT_COLUMNS * sizeof *out);
    for (uint64_t i = 0; i < process->event_count && part > 0; i++) {
        const struct dr_event *event = &process->events[i];
        if (event->kind != DR_NEXT || !dr_event_sane(run, event))
            continue;
        double from = (double)(event->start_ns - run->start_ns), left = (double)event->dur_ns;
        while (left > 0) { /* a long wait may span several parts */
            const int column = (int)(from / part);
            if (column >= HEAT_COLUMNS)
                break;
            const double here = fmin(left, (column + 1) * part - from);
            if (!(here > 0))
                break;
            out[column] += here / part;
            from += here;
            left -= here;
        }
        seen = true;
    }
    return seen;
}

static void put_heat(const struct dr_page *page)
{
    const struct dr_run *run = page->facts->run;
    FILE *to = page->to;
    uint32_t rows = 0;
    double waits[HEAT_COLUMNS];
    struct dr_text text;
    fputs("<h3>Time in next(), over the run</h3>\n<div class=heat>", to);
    for (uint32_t i = 0; i < run->processes && rows < HEAT_ROWS; i++) {
        const struct dr_process *process = &run->process[i];
        if (process->role != DR_TRAINER || !waits_of(run, process, waits))
            continue;
        if (process->rank >= 0)
            fprintf(to, "<span>rank %d</span>", process->rank);
        else
            fprintf(to, "<span>pid %d</span>", process->pid);
        fprintf(to,
                "<svg viewBox=\"0 0 %d 1\" preserveAspectRatio=none role=img aria-label=\"waiting\">",
                HEAT_COLUMNS);
        for (int c = 0; c < HEAT_COLUMNS; c++)
            fprintf(to,
                    "<rect x=\"%d\" width=\"1.02\" height=\"1\" "
                    "style=\"fill:var(--c-stall);fill-opacity:%.3f\">"
                    "<title>%s</title></rect>",
                    c, fmin(waits[c], 1), dr_share_text(&text, fmin(waits[c], 1)));
        fputs("</svg>\n", to);
        rows++;
    }
    fputs("</div>\n", to);
    if (!rows)
        dr_html_none(page, "No training process recorded its calls of next().");
}

void dr_html_ranks(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    FILE *to = page->to;
    struct dr_text a, b, c, d;
    dr_section_begin(page, "ranks", "Ranks", "In distributed training the slowest rank sets the pace.");
    if (f->rank_count < 2)
        dr_html_none(page, "There is only one training process.");
    else {
        fputs("<div class=scroll><table class=numbers><tr><th>rank</th><th>step</th><th>GPU waits for "
              "data</th>"
              "<th>in next()</th><th>was last</th></tr>\n",
              to);
        for (uint32_t i = 0; i < f->rank_count; i++)
            fprintf(to, "<tr><td>%d</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n",
                    f->ranks[i].rank, dr_seconds_text(&a, f->ranks[i].step),
                    dr_share_text(&b, f->ranks[i].stall_share),
                    dr_share_text(&c, f->ranks[i].wait_share),
                    dr_share_text(&d, f->ranks[i].wait_before_others));
        fputs("</table></div>\n", to);
    }
    put_heat(page);
    dr_section_end(page);
}

/* ---- evidence ---------------------------------------------------------------------------------- */

static void put_rule(FILE *to, const struct dr_rule *rule, const char *state, const char *tone,
                     const char *reason)
{
    fprintf(to, "<tr><td><code>%s</code></td><td>", rule->code);
    html_text(to, rule->title);
    fprintf(to, "</td><td class=%s>%s</td><td>", tone, state);
    html_text(to, reason);
    fputs("</td></tr>\n", to);
}

static void put_rules(const struct dr_page *page)
{
    const struct dr_verdict *v = page->verdict;
    FILE *to = page->to;
    char needs[256];
    if (!v->findings && !v->cleared_count && !v->unjudged_count) {
        dr_html_none(page, "No rule could be applied.");
        return;
    }
    fputs("<h3>Every rule</h3>\n<div class=scroll><table "
          "class=rules><tr><th>code</th><th>cause</th><th>holds</th>"
          "<th>why</th></tr>\n",
          to);
    for (uint32_t i = 0; i < v->findings; i++)
        put_rule(to, v->finding[i].rule, "yes", "bad-text", v->finding[i].sentence);
    for (uint32_t i = 0; i < v->cleared_count; i++)
        put_rule(to, v->cleared[i], "no", "good-text", "checked: not the problem");
    for (uint32_t i = 0; i < v->unjudged_count; i++) {
        size_t used = (size_t)snprintf(needs, sizeof needs, "could not be judged: needs %s",
                                       *v->unjudged[i]->needs ? "" : "more data");
        for (const char *c = v->unjudged[i]->needs; *c && used + 3 < sizeof needs; c++) {
            needs[used++] = *c;
            if (*c == ',' && c[1] != ' ')
                needs[used++] = ' ';
        }
        needs[used] = '\0';
        put_rule(to, v->unjudged[i], "?", "unsure-text", needs);
    }
    fputs("</table></div>\n", to);
}

static const char *or_empty(const char *text) { return text ? text : ""; }

static bool same_reason(const struct dr_missing *a, const struct dr_missing *b)
{
    return !strcmp(or_empty(a->why), or_empty(b->why)) &&
           !strcmp(or_empty(a->remedy), or_empty(b->remedy));
}

static void put_missing(const struct dr_page *page)
{
    const struct dr_run *run = page->facts->run;
    FILE *to = page->to;
    fputs("<h3>Blind spots</h3>\n", to);
    if (!run->missing_count) {
        fputs("<p class=note>Every signal could be read.</p>\n", to);
        return;
    }
    fputs("<div class=scroll><table><tr><th>signal</th><th>why it is missing</th><th>remedy</th></tr>\n",
          to);
    for (uint32_t i = 0; i < run->missing_count; i++) {
        const struct dr_missing *first = &run->missing[i];
        fputs("<tr><td><code>", to);
        html_text(to, first->signal);
        /* signals that follow for the same reason share its row */
        for (; i + 1 < run->missing_count && same_reason(first, &run->missing[i + 1]); i++) {
            fputs(", ", to);
            html_text(to, run->missing[i + 1].signal);
        }
        fputs("</code></td><td>", to);
        html_text(to, or_empty(first->why));
        fputs("</td><td>", to);
        html_text(to, or_empty(first->remedy));
        fputs("</td></tr>\n", to);
    }
    fputs("</table></div>\n", to);
}

static void put_about(FILE *to, const char *name, const char *value)
{
    fprintf(to, "<tr><th>%s</th><td>", name);
    html_text(to, value && *value ? value : "unknown");
    fputs("</td></tr>\n", to);
}

static void put_watch(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    const struct dr_limits *l = &f->limits;
    struct dr_text text;
    char ending[64];
    FILE *to = page->to;
    fputs("<h3>The run</h3>\n<table>\n", to);
    put_about(to, "directory", f->run->directory);
    put_about(to, "working directory", f->run->cwd);
    put_about(to, "took", dr_seconds_text(&text, (double)(f->run->end_ns - f->run->start_ns) / 1e9));
    if (f->run->finished)
        snprintf(ending, sizeof ending, "exit code %d", f->run->exit_code);
    else
        snprintf(ending, sizeof ending, "still running");
    put_about(to, "ended", ending);
    put_about(to, "Python", dr_said_by(f->trainer, "python"));
    put_about(to, "torch", dr_said_by(f->trainer, "torch"));
    put_about(to, "Stoker", stoker_version_string());
    put_about(to, "CPU", l->cpu_name);
    put_about(to, "GPU", l->gpu_name);
    put_about(to, "disk", l->disk_name);
    put_about(to, "file system", l->file_system);
    put_about(to, "overhead of watching", dr_share_text(&text, f->overhead_share));
    fputs("</table>\n", to);
}

static void put_numbers(FILE *to, const struct dr_number *number, const void *of)
{
    struct dr_text text;
    for (; number->name; number++)
        fprintf(to, "<tr><td><code>%s</code></td><td>%s</td><td>%s</td></tr>\n", number->name,
                dr_unit_text(&text, dr_number_of(number, of), number->unit), number->meaning);
}

void dr_html_evidence(const struct dr_page *page)
{
    FILE *to = page->to;
    dr_section_begin(page, "evidence", "Evidence and blind spots", "");
    put_rules(page);
    put_missing(page);
    put_watch(page);
    fputs("<details><summary>All numbers</summary>\n<div class=scroll><table "
          "class=numbers><tr><th>name</th><th>"
          "value</th><th>meaning</th></tr>\n",
          to);
    put_numbers(to, dr_fact_numbers, page->facts);
    put_numbers(to, dr_limit_numbers, &page->facts->limits);
    fputs("</table></div></details>\n", to);
    dr_section_end(page);
}
