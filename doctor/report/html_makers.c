/* html_makers.c - report.html: capacity of each stage and demand; which worker made which batch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "doctor/model/numbers.h"
#include "doctor/report/html.h"
#include "doctor/report/numbers.h"
#include "doctor/report/operators.h"
#include "doctor/report/timeline.h"

#include "cli/out.h"

#include <stdlib.h>
#include <string.h>

enum {
    GANTT_STEPS = 20,
    GANTT_ROWS = 24,
    GANTT_MADE = 2000,
    GANTT_TRACKS = 512,
    BATCH_BARS = 40,
    SLOWEST_SHOWN = 5
};

/* ---- capacity ---------------------------------------------------------------------------------- */

/* The demand is in the middle of the scale, which ends at twice the demand. */
static void put_pipe(FILE *to, const char *name, const char *color, double capacity, double demand,
                     bool inner)
{
    struct dr_text text;
    if (!isfinite(capacity) || !(capacity > 0))
        return;
    const double share = 50 * capacity / demand;
    fprintf(to,
            "<span class=\"pipe-name%s\">%s</span><span class=\"pipe%s\"><i style=\"width:%.2f%%;"
            "background:var(--c-%s)\"></i></span><span class=\"pipe-rate%s\">%s/s</span>\n",
            inner ? " inner" : "", name, share > 100 ? " beyond" : "", fmin(share, 100), color,
            capacity < demand ? " short" : "", dr_plain_text(&text, capacity));
}

void dr_html_pipeline(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    FILE *to = page->to;
    struct dr_text text;
    const double size =
        isfinite(f->loader.batch_size) && f->loader.batch_size > 0 ? f->loader.batch_size : 1;
    const double makers = isfinite(f->workers_seen) && f->workers_seen >= 1 ? f->workers_seen : 1;
    const double demand = size / f->compute;
    dr_section_begin(
        page, "pipeline", "Pipeline: capacity and demand",
        "The narrowest stage sets the pace. The line marks what training could consume if it never "
        "waited.");
    if (!isfinite(demand) || !(demand > 0) || !isfinite(f->batch_mean) || !(f->batch_mean > 0)) {
        dr_html_none(page, "Unknown: no batch was observed while it was made, or no step was measured.");
        dr_section_end(page);
        return;
    }
    fprintf(
        to,
        "<div class=pipes><span></span><span class=demand>demand: %s samples/s</span><span></span>\n",
        dr_plain_text(&text, demand));
    char name[64];
    snprintf(name, sizeof name, "making batches, %.0f %s", makers,
             f->loader.native ? "threads"
             : makers > 1     ? "workers"
                              : "worker");
    put_pipe(to, name, "worker", makers * size / f->batch_mean, demand, false);
    for (int i = 0; i < DR_STAGES; i++)
        put_pipe(to, dr_stage_names[i], dr_stage_names[i], makers * size / f->stage[i], demand, true);
    put_pipe(to, "pinning", "b", size / f->pin, demand, false);
    put_pipe(to, "next() itself", "c", size / f->main_cpu_in_next, demand, false);
    put_pipe(to, f->has_gpu ? "training, GPU" : "training", "compute", demand, demand, false);
    fprintf(to,
            "</div>\n<p class=note>Measured: %s samples/s. The bar of a stage is what the workers would "
            "deliver if they did nothing else; bars end at twice the demand.</p>\n",
            dr_plain_text(&text, f->samples_per_second));
    dr_html_operators(to, f);
    dr_section_end(page);
}

/* ---- Gantt ------------------------------------------------------------------------------------- */

struct gantt {
    FILE *to;
    uint64_t from, until;
};

static double at(const struct gantt *g, uint64_t ns)
{
    const uint64_t inside = ns < g->from ? g->from : ns > g->until ? g->until : ns;
    return 1000.0 * (double)(inside - g->from) / (double)(g->until - g->from);
}

static void put_box(const struct gantt *g, uint32_t row, uint64_t start, uint64_t end, const char *color,
                    const char *name, uint32_t batch)
{
    struct dr_text text;
    const double left = at(g, start), right = at(g, end);
    if (right - left < 0.05)
        return;
    fprintf(g->to,
            "<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"14\" "
            "style=\"fill:var(--c-%s)\"><title>%s, batch "
            "%u: %s</title></rect>",
            left, row * 20 + 3, right - left, color, name, batch,
            dr_seconds_text(&text, (double)(end - start) / 1e9));
}

static void put_loop_row(const struct gantt *g, const struct dr_facts *f)
{
    for (uint32_t i = 0; i < f->step_count; i++) {
        const struct dr_step *step = &f->steps[i];
        if (step->start_ns >= g->until || !isfinite(step->seconds) || !isfinite(step->wait) ||
            step->seconds > 1e6 || step->wait < 0 || step->wait > step->seconds)
            continue;
        const uint64_t got = step->start_ns + (uint64_t)(1e9 * step->wait);
        const uint64_t end = step->start_ns + (uint64_t)(1e9 * step->seconds);
        if (end <= g->from)
            continue;
        put_box(g, 0, step->start_ns, got, "stall", "next()", step->batch);
        put_box(g, 0, got, end, "compute", "step", step->batch);
    }
}

static void put_made_box(const struct gantt *g, uint32_t row, const struct dr_made *made)
{
    uint64_t from = made->start_ns;
    put_box(g, row, made->start_ns, made->end_ns, "other", "batch", made->batch);
    for (int i = 0; i < DR_STAGES; i++) {
        const uint64_t wanted = (uint64_t)(1e9 * made->stage[i]), left = made->end_ns - from;
        const uint64_t size = wanted < left ? wanted : left;
        if (i == DR_STAGE_PUT || !size)
            continue;
        put_box(g, row, from, from + size, dr_stage_names[i], dr_stage_names[i], made->batch);
        from += size;
    }
}

/* Assigns a row to each batch: one per track of each maker. A worker that is restarted for an epoch
 * keeps the row of its number. Returns the number of rows; batches beyond the last row get
 * that number. */
static uint32_t give_rows(const struct dr_run *run, const struct dr_made *made, uint64_t count,
                          uint32_t *rows)
{
    uint64_t keys[GANTT_TRACKS];
    uint32_t used = 1;
    for (uint64_t i = 0; i < count; i++) {
        const struct dr_process *process = &run->process[made[i].process];
        const bool numbered = process->role == DR_WORKER && process->worker >= 0;
        const uint64_t maker =
            numbered ? (uint64_t)process->worker : UINT32_MAX + (uint64_t)made[i].process;
        const uint64_t key = maker * DR_LANES + made[i].lane;
        uint32_t row = 1;
        while (row < used && keys[row] != key)
            row++;
        if (row == used && used < GANTT_TRACKS)
            keys[used++] = key;
        rows[i] = row;
    }
    return used;
}

static void put_row_names(const struct dr_page *page, const struct dr_made *made, uint64_t count,
                          const uint32_t *rows)
{
    FILE *to = page->to;
    uint32_t next = 1;
    fputs("<div class=gantt-names><span>training</span>", to);
    for (uint64_t i = 0; i < count; i++) {
        if (rows[i] != next || next >= GANTT_ROWS)
            continue;
        const struct dr_process *process = &page->facts->run->process[made[i].process];
        if (process->role == DR_WORKER && process->worker >= 0)
            fprintf(to, "<span>worker %d</span>", process->worker);
        else
            fprintf(to, "<span>maker %u</span>", next);
        next++;
    }
    fputs("</div>", to);
}

static void put_gantt(const struct dr_page *page, const struct dr_made *made, uint64_t count,
                      uint64_t from, uint64_t until, uint32_t steps)
{
    FILE *to = page->to;
    uint32_t *rows = calloc(count ? count : 1, sizeof *rows);
    struct dr_text text;
    if (!rows) {
        dr_html_none(page, "Out of memory for the chart of workers.");
        return;
    }
    const uint32_t all = give_rows(page->facts->run, made, count, rows),
                   shown = all < GANTT_ROWS ? all : GANTT_ROWS;
    const struct gantt g = {to, from, until};
    fprintf(to, "<h3>%u step%s, %s</h3>\n<p class=legend>", steps, st_s(steps),
            dr_seconds_text(&text, (double)(until - from) / 1e9));
    fputs("<span class=key><i style=\"background:var(--c-stall)\"></i>training waits</span> <span "
          "class=key><i "
          "style=\"background:var(--c-compute)\"></i>training works</span> ",
          to);
    for (int i = 0; i < DR_STAGES; i++)
        if (i != DR_STAGE_PUT && !(page->facts->stage[i] <= 0))
            fprintf(to, "<span class=key><i style=\"background:var(--c-%s)\"></i>%s</span> ",
                    dr_stage_names[i], dr_stage_names[i]);
    fputs("</p>\n<div class=gantt>", to);
    put_row_names(page, made, count, rows);
    fprintf(to,
            "<svg viewBox=\"0 0 1000 %u\" preserveAspectRatio=none style=\"height:%.2fem\" role=img "
            "aria-label=\"Batches over time, by worker\">",
            shown * 20, shown * 1.5);
    put_loop_row(&g, page->facts);
    for (uint64_t i = 0; i < count; i++)
        if (rows[i] < shown)
            put_made_box(&g, rows[i], &made[i]);
    fputs("</svg></div>\n<p class=note>The stages of a batch are summed and drawn end to end.", to);
    if (all > shown)
        fprintf(to, " %u more rows are not shown.", all - shown);
    fputs("</p>\n", to);
    free(rows);
}

/* ---- how long a batch takes --------------------------------------------------------------------- */

static void put_distribution(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    double counts[BATCH_BARS] = {0};
    double *sorted = f->batch_seconds && f->batch_count ? calloc(f->batch_count, sizeof *sorted) : NULL;
    if (!sorted) {
        dr_html_none(page, "Batch times are unknown: no batch was observed while it was made.");
        return;
    }
    memcpy(sorted, f->batch_seconds, f->batch_count * sizeof *sorted);
    const double p50 = dr_percentile(sorted, f->batch_count, 0.5),
                 p99 = dr_percentile(sorted, f->batch_count, 0.99);
    const double end = fmax(p99 * 1.3, sorted[0] + 1e-6);
    for (uint32_t i = 0; i < f->batch_count; i++) {
        const double place = f->batch_seconds[i] / end * BATCH_BARS;
        if (isfinite(place) && place >= 0)
            counts[place < BATCH_BARS ? (int)place : BATCH_BARS - 1]++;
    }
    fputs("<dl class=tiles>\n", page->to);
    dr_tile_put(page, "batch time, median", p50, "s");
    dr_tile_put(page, "batch time, 99th percentile", p99, "s");
    dr_tile_put(page, "variation (CV)", f->batch_cv, "");
    dr_tile_put(page, "of it on the CPU", f->batch_cpu_mean / f->batch_mean, "share");
    fputs("</dl>\n", page->to);
    struct dr_text last, middle;
    char more[72];
    snprintf(more, sizeof more, "%s or more", dr_seconds_text(&last, end));
    const char *const labels[3] = {"0", dr_seconds_text(&middle, end / 2), more};
    dr_histogram_put(page, "Time to make one batch", counts, BATCH_BARS, "batch", labels);
    free(sorted);
}

static int slower_first(const void *left, const void *right)
{
    const double a = ((const struct dr_made *)left)->slowest,
                 b = ((const struct dr_made *)right)->slowest;
    return isnan(a) - isnan(b) ? isnan(a) - isnan(b) : (a < b) - (a > b);
}

static void put_slowest(const struct dr_page *page, int trainer)
{
    uint64_t count;
    struct dr_text text;
    const struct dr_run *run = page->facts->run;
    struct dr_made *made = dr_made_between(run, trainer, run->start_ns, run->end_ns, 100000, &count);
    if (made)
        qsort(made, count, sizeof *made, slower_first);
    if (made && isfinite(made[0].slowest)) {
        fputs("<details><summary>Slowest samples</summary>\n<table "
              "class=numbers><tr><th>sample</th><th>took</th>"
              "<th>in batch</th></tr>\n",
              page->to);
        for (uint64_t i = 0; i < count && i < SLOWEST_SHOWN && isfinite(made[i].slowest); i++) {
            if (made[i].slowest_index == DR_UNKNOWN)
                fputs("<tr><td>unknown</td>", page->to);
            else
                fprintf(page->to, "<tr><td>%u</td>", made[i].slowest_index);
            fprintf(page->to, "<td>%s</td><td>%u</td></tr>\n", dr_seconds_text(&text, made[i].slowest),
                    made[i].batch);
        }
        fputs("</table></details>\n", page->to);
    }
    free(made);
}

void dr_html_workers(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    const int trainer = f->trainer ? (int)(f->trainer - f->run->process) : -1;
    const uint32_t steps = f->step_count < GANTT_STEPS ? f->step_count : GANTT_STEPS;
    uint64_t count = 0;
    struct dr_made *made = NULL;
    dr_section_begin(page, "workers", "Workers", "Which worker made which batch, and how long it took.");
    if (steps) {
        const uint32_t first = (f->step_count - steps) / 2; /* from the middle of the run */
        const uint64_t from = f->steps[first].start_ns;
        const struct dr_step *last = &f->steps[first + steps - 1];
        const uint64_t until =
            last->start_ns +
            (isfinite(last->seconds) && last->seconds < 1e6 ? (uint64_t)(1e9 * last->seconds) : 0);
        if (until > from) {
            made = dr_made_between(f->run, trainer, from, until, GANTT_MADE, &count);
            put_gantt(page, made, count, from, until, steps);
        }
        if (!count)
            dr_html_none(
                page,
                "No batch was observed while it was made: the records of the workers are missing.");
    }
    free(made);
    put_distribution(page);
    put_slowest(page, trainer);
    fputs("<dl class=tiles>\n", page->to);
    dr_tile_put(page, "a worker: running", f->worker_on_cpu, "share");
    dr_tile_put(page, "waits for a CPU", f->worker_run_queue, "share");
    dr_tile_put(page, "blocked", f->worker_blocked, "share");
    dr_tile_put(page, "idle", f->worker_idle, "share");
    dr_tile_put(page, "threads", f->worker_threads, "");
    fputs("</dl>\n", page->to);
    dr_section_end(page);
}
