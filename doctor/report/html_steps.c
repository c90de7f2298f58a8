/* html_steps.c - report.html: where the time of a step goes, and whether batches were ready
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "doctor/report/html.h"
#include "doctor/report/numbers.h"

#include "cli/out.h"

#include <stdlib.h>

enum { OUTLIERS_SHOWN = 8, MARKS_MOST = 64, READY_BARS = 33 };
#define OUTLIER 3.0 /* times the median */

struct part {
    const char *name, *color;
    double seconds;
};

/* One bar for the whole step; labels are in the legend, since some parts are too small for them. */
static void put_stack(const struct dr_page *page, const char *name, const struct part *parts,
                      size_t count, double whole)
{
    FILE *to = page->to;
    struct dr_text text, share;
    if (!(whole > 0) || !isfinite(whole))
        return;
    fprintf(to, "<div class=anatomy><span class=row-name>%s</span><div class=stack>", name);
    for (size_t i = 0; i < count; i++)
        if (parts[i].seconds > 0)
            fprintf(to, "<i style=\"width:%.3f%%;background:var(--c-%s)\" data-tip=\"%s: %s\"></i>",
                    100 * parts[i].seconds / whole, parts[i].color, parts[i].name,
                    dr_seconds_text(&text, parts[i].seconds));
    fputs("</div><p class=legend>", to);
    for (size_t i = 0; i < count; i++)
        if (parts[i].seconds == 0)
            continue; /* it was not observed */
        else if (isfinite(parts[i].seconds))
            fprintf(to,
                    "<span class=key><i style=\"background:var(--c-%s)\"></i>%s <b>%s</b> %s</span> ",
                    parts[i].color, parts[i].name, dr_seconds_text(&text, parts[i].seconds),
                    dr_share_text(&share, parts[i].seconds / whole));
        else
            fprintf(to, "<span class=key><i style=\"background:var(--c-%s)\"></i>%s n/a</span> ",
                    parts[i].color, parts[i].name);
    fputs("</p></div>\n", to);
}

/* The mean of each part over all steps: a single median step would be one sample. */
static void put_anatomy(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    double rest = f->step - f->wait, seen = 0;
    const double host[] = {f->copy, f->sync, f->optimizer, f->save, f->gc, f->logging, f->eval};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        seen += isfinite(host[i]) ? host[i] : 0;
    const struct part gpu[] = {{"waits for data", "stall", f->stall},
                               {"everything else", "compute", f->compute}};
    const struct part loop[] = {{"in next()", "stall", f->wait},
                                {"copy to device", "copy", f->copy},
                                {"waits for device", "sync", f->sync},
                                {"optimizer", "optimizer", f->optimizer},
                                {"save", "save", f->save},
                                {"garbage collection", "gc", f->gc},
                                {"logging", "logging", f->logging},
                                {"validation", "eval", f->eval},
                                {"the rest (model and Python)", "compute", fmax(rest - seen, 0)}};
    if (f->has_gpu)
        put_stack(page, "GPU", gpu, 2, f->step);
    put_stack(page, "training thread", loop, sizeof loop / sizeof *loop, f->step);
}

static double since(const struct dr_run *run, uint64_t ns)
{
    return ns > run->start_ns ? (double)(ns - run->start_ns) / 1e9 : 0;
}

/* The start times of epochs, in seconds. */
static uint32_t epochs_of(const struct dr_facts *f, double *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->step_count && count < MARKS_MOST; i++)
        if (f->steps[i].flags & DR_NEXT_FIRST)
            out[count++] = since(f->run, f->steps[i].start_ns);
    return count;
}

static struct dr_chart *over_steps(const struct dr_facts *f, const char *title, const char *unit)
{
    const struct dr_step *last = &f->steps[f->step_count - 1];
    return dr_chart_new(title, unit, since(f->run, f->steps[0].start_ns),
                        since(f->run, last->start_ns) +
                            (isfinite(last->seconds) ? fmin(last->seconds, 1e6) : 0),
                        dr_parts(f->step_count, DR_CHART_POINTS));
}

/* Each point covers an equal number of steps: equal parts of the time could be empty. */
static void put_strip(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    double marks[MARKS_MOST];
    struct dr_chart *chart = over_steps(f, "Steps over time", "s");
    if (chart) {
        struct dr_line *stall =
            dr_chart_line(chart, f->has_gpu ? "GPU waits for data" : "waits for data", "stall");
        struct dr_line *rest = dr_chart_line(chart, "everything else", "compute");
        chart->stacked = true;
        for (uint32_t p = 0; p < chart->points; p++) {
            double whole = 0, waits = 0, known = 0;
            for (uint64_t i = dr_part_begin(f->step_count, chart->points, p);
                 i < dr_part_begin(f->step_count, chart->points, p + 1); i++)
                if (isfinite(f->steps[i].seconds) && isfinite(f->steps[i].stall)) {
                    whole += f->steps[i].seconds;
                    waits += f->steps[i].stall;
                    known++;
                }
            stall->values[p] = known > 0 ? waits / known : NAN;
            rest->values[p] = known > 0 ? fmax(whole - waits, 0) / known : NAN;
        }
        if (isfinite(f->step_p99) && f->step_p99 > 0)
            chart->top = f->step_p99 * 1.4; /* cuts off outliers, which are listed below */
        chart->marks = marks;
        chart->mark_count = epochs_of(f, marks);
        chart->mark_name = "start of an epoch";
    }
    dr_chart_put(page, chart, "no step was measured");
}

static const char *cause_of(const struct dr_step *step)
{
    const double excess[] = {step->stall, step->save, step->gc, step->sync};
    static const char *const names[] = {"waiting for data", "save", "garbage collection",
                                        "waiting for the device"};
    size_t best = 0;
    for (size_t i = 1; i < 4; i++)
        if (isfinite(excess[i]) && !(excess[best] >= excess[i]))
            best = i;
    return excess[best] > 0.3 * step->seconds ? names[best] : "unknown (evaluation, logging?)";
}

static void put_outliers(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    struct dr_text text, at;
    uint32_t shown = 0, all = 0;
    for (uint32_t i = 0; i < f->step_count; i++)
        all += isfinite(f->steps[i].seconds) && f->steps[i].seconds > OUTLIER * f->step_p50;
    if (!all) {
        fputs("<p class=note>No step took more than three times the median.</p>\n", page->to);
        return;
    }
    fprintf(page->to,
            "<details><summary>%u step%s took more than three times the median</summary>\n"
            "<table class=numbers><tr><th>at</th><th>step</th><th>took</th><th>mostly</th></tr>\n",
            all, st_s(all));
    for (uint32_t i = 0; i < f->step_count && shown < OUTLIERS_SHOWN; i++) {
        const struct dr_step *step = &f->steps[i];
        if (!isfinite(step->seconds) || !(step->seconds > OUTLIER * f->step_p50))
            continue;
        fprintf(page->to, "<tr><td>%s</td><td>%u</td><td>%s</td><td>%s</td></tr>\n",
                dr_seconds_text(&at, since(f->run, step->start_ns)), i,
                dr_seconds_text(&text, step->seconds), cause_of(step));
        shown++;
    }
    fputs("</table></details>\n", page->to);
}

void dr_html_steps(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    dr_section_begin(page, "steps", "Step anatomy",
                     "Where the time of a step goes, on average and over time.");
    if (!f->step_count || !isfinite(f->step)) {
        dr_html_none(page, "No step was measured: no loader's next() was seen in the training process.");
    } else {
        put_anatomy(page);
        put_strip(page);
        put_outliers(page);
    }
    dr_section_end(page);
}

/* ---- the queue --------------------------------------------------------------------------------- */

static void put_ready_histogram(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    double counts[READY_BARS] = {0}, known = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < f->step_count; i++) {
        const uint32_t ready = f->steps[i].ready;
        if (ready == DR_UNKNOWN)
            continue;
        const uint32_t bar = ready < READY_BARS - 1 ? ready : READY_BARS - 1;
        counts[bar]++;
        known++;
        last = bar > last ? bar : last;
    }
    if (!(known > 0))
        return;
    char middle[24], end[24];
    const uint32_t bars = last < 4 ? 5 : (last + 1) | 1; /* odd, so that there is a middle one */
    snprintf(middle, sizeof middle, "%u", (bars - 1) / 2);
    snprintf(end, sizeof end, bars == READY_BARS ? "%u or more" : "%u", bars - 1);
    const char *const labels[3] = {"0 ready", middle, end};
    dr_histogram_put(page, "Batches ready when next() was called", counts, bars, "ready", labels);
}

void dr_html_queue(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    dr_section_begin(page, "queue", "Queue and readiness",
                     "A loader that keeps up has a batch ready at every call of next().");
    fputs("<dl class=tiles>\n", page->to);
    dr_tile_put(page, "calls that found their batch ready", f->readiness, "share");
    dr_tile_put(page, "batches ready, mean", f->ready_mean, "");
    dr_tile_put(page, "waited behind a slow one", f->behind_share, "share");
    dr_tile_put(page, "steps between long waits", f->wait_period, "");
    fputs("</dl>\n", page->to);
    struct dr_chart *chart =
        f->step_count ? over_steps(f, "Batches ready at next(), over time", "") : NULL;
    if (chart) {
        struct dr_line *ready = dr_chart_line(chart, "ready", "ready");
        for (uint32_t p = 0; p < chart->points; p++)
            ready->values[p] = dr_steps_ready(f, dr_part_begin(f->step_count, chart->points, p),
                                              dr_part_begin(f->step_count, chart->points, p + 1));
        chart->stacked = true;
        if (f->loader.workers && f->loader.workers < 1000 && f->loader.prefetch < 1000 &&
            !f->loader.native) {
            chart->limit = (double)f->loader.workers * f->loader.prefetch;
            chart->limit_name = "workers x prefetch";
        }
        dr_chart_put(page, chart, "the number of ready batches is unknown for this loader");
        put_ready_histogram(page);
    } else {
        dr_html_none(page, "No call of next() was measured.");
    }
    dr_section_end(page);
}
