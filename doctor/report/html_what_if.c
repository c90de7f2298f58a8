/* html_what_if.c - report.html: other settings, simulated when the page is written
 *
 * The page holds the outcome of every combination of a small grid; its script only looks them up.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/html.h"
#include "doctor/report/json.h"

#include <stdlib.h>
#include <string.h>

enum { VALUES_MOST = 9, OUTCOMES_MOST = 512, BATCHES_MOST = 400 };
enum dimension { WORKERS, PREFETCH, ORDER, CPUS, CACHE, GPU, DIMENSIONS };

struct grid {
    double value[DIMENSIONS][VALUES_MOST];
    uint32_t count[DIMENSIONS], now[DIMENSIONS];
    struct dr_outcome *outcome;
    uint32_t outcomes;
};

static const struct {
    const char *name, *label;
} dimensions[DIMENSIONS] = {
    {"workers", "workers"}, {"prefetch", "batches ahead per worker"},
    {"order", "order"},     {"cpus", "CPUs"},
    {"cache", "data"},      {"gpu", "training step"},
};

/* Keeps the values sorted and unique. */
static void add_value(struct grid *grid, enum dimension d, double value)
{
    uint32_t at = 0;
    if (!isfinite(value) || value < 0 || grid->count[d] == VALUES_MOST)
        return;
    while (at < grid->count[d] && grid->value[d][at] < value)
        at++;
    if (at < grid->count[d] && grid->value[d][at] == value)
        return;
    memmove(&grid->value[d][at + 1], &grid->value[d][at], (grid->count[d] - at) * sizeof(double));
    grid->value[d][at] = value;
    grid->count[d]++;
}

static void find_now(struct grid *grid, enum dimension d, double value)
{
    for (uint32_t i = 0; i < grid->count[d]; i++)
        if (grid->value[d][i] == value)
            grid->now[d] = i;
}

/* The share of waiting that remains in a batch when all data are in memory; NaN: unknown. */
static double waiting_without_reads(const struct dr_facts *f)
{
    const double waits = f->batch_mean - f->batch_cpu_mean;
    double reads = 0;
    for (int i = DR_STAGE_READ; i <= DR_STAGE_NETWORK; i++)
        if (isfinite(f->stage[i]) && isfinite(f->stage_cpu[i]))
            reads += f->stage[i] - f->stage_cpu[i];
    if (!isfinite(waits) || !(waits > 0) || !(reads > 0))
        return NAN;
    return reads < waits ? 1 - reads / waits : 0;
}

static void choose_values(struct grid *grid, const struct dr_page *page, const struct dr_plan *now)
{
    const double cpus = isfinite(now->cpus) && now->cpus >= 1 ? now->cpus : 1;
    const double workers = now->workers < 1024 ? now->workers : 1024;
    const double prefetch = now->prefetch < 1024 ? now->prefetch : 1024;
    add_value(grid, WORKERS, workers);
    for (uint32_t i = 0; i < page->verdict->findings; i++)
        if (page->verdict->finding[i].plan.workers <= 1024 && grid->count[WORKERS] < 3)
            add_value(grid, WORKERS, page->verdict->finding[i].plan.workers);
    add_value(grid, WORKERS, 0);
    add_value(grid, WORKERS, fmax(1, floor(cpus) - 1));
    add_value(grid, WORKERS, 2 * fmax(workers, 1));
    for (double more = 1; more <= 32; more *= 2)
        add_value(grid, WORKERS, more);
    find_now(grid, WORKERS, workers);
    add_value(grid, PREFETCH, prefetch);
    for (double more = 2; more <= 8 && grid->count[PREFETCH] < 3; more *= 2)
        add_value(grid, PREFETCH, more);
    find_now(grid, PREFETCH, prefetch);
    add_value(grid, ORDER, 1);
    if (!now->shared_samples) /* Stoker's threads share a batch: none waits for another */
        add_value(grid, ORDER, 0);
    find_now(grid, ORDER, now->in_order);
    if (isfinite(now->cpus)) {
        add_value(grid, CPUS, now->cpus);
        add_value(grid, CPUS, 2 * now->cpus);
        find_now(grid, CPUS, now->cpus);
    } else {
        grid->value[CPUS][0] = NAN;
        grid->count[CPUS] = 1;
    }
    add_value(grid, CACHE, 1);
    add_value(grid, CACHE, waiting_without_reads(page->facts));
    find_now(grid, CACHE, 1);
    add_value(grid, GPU, 1);
    add_value(grid, GPU, 0.5);
    find_now(grid, GPU, 1);
}

static bool simulate_all(struct grid *grid, const struct dr_trace *trace, const struct dr_plan *now)
{
    grid->outcomes = 1;
    for (int d = 0; d < DIMENSIONS; d++)
        grid->outcomes *= grid->count[d];
    if (!grid->outcomes || grid->outcomes > OUTCOMES_MOST)
        return false;
    grid->outcome = calloc(grid->outcomes, sizeof *grid->outcome);
    for (uint32_t n = 0; grid->outcome && n < grid->outcomes; n++) {
        struct dr_plan plan = *now;
        uint32_t at[DIMENSIONS], rest = n;
        for (int d = DIMENSIONS; d; d--) { /* the last dimension runs fastest */
            at[d - 1] = rest % grid->count[d - 1];
            rest /= grid->count[d - 1];
        }
        plan.workers = (uint32_t)grid->value[WORKERS][at[WORKERS]];
        plan.prefetch = (uint32_t)grid->value[PREFETCH][at[PREFETCH]];
        plan.in_order = grid->value[ORDER][at[ORDER]] > 0;
        plan.cpus = grid->value[CPUS][at[CPUS]];
        plan.wall_scale = now->wall_scale * grid->value[CACHE][at[CACHE]];
        plan.step_scale = now->step_scale * grid->value[GPU][at[GPU]];
        dr_simulate(&grid->outcome[n], trace, &plan);
    }
    return grid->outcome != NULL;
}

static uint32_t place_of(const struct grid *grid, const uint32_t at[DIMENSIONS])
{
    uint32_t place = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        place = place * grid->count[d] + at[d];
    return place;
}

/* ---- the page ---------------------------------------------------------------------------------- */

static void value_text(char *out, size_t size, enum dimension d, double value)
{
    struct dr_text text;
    switch (d) {
    case ORDER:
        snprintf(out, size, "%s", value > 0 ? "in order" : "as they are finished (in_order=False)");
        break;
    case CACHE:
        snprintf(out, size, "%s", value < 1 ? "all in memory" : "as measured");
        break;
    case GPU:
        snprintf(out, size, "%s", value < 1 ? "twice as fast" : "as measured");
        break;
    default:
        snprintf(out, size, "%s", dr_plain_text(&text, value));
    }
}

static void put_controls(const struct dr_page *page, const struct grid *grid)
{
    FILE *to = page->to;
    char text[96];
    fputs("<div class=controls>\n", to);
    for (int d = 0; d < DIMENSIONS; d++) {
        fprintf(to, "<label><span>%s</span>", dimensions[d].label);
        if (d == WORKERS || d == PREFETCH) {
            value_text(text, sizeof text, (enum dimension)d, grid->value[d][grid->now[d]]);
            fprintf(to, "<input type=range min=0 max=%u value=%u data-dim=%d><output>%s</output>",
                    grid->count[d] - 1, grid->now[d], d, text);
        } else {
            fprintf(to, "<select data-dim=%d>", d);
            for (uint32_t i = 0; i < grid->count[d]; i++) {
                value_text(text, sizeof text, (enum dimension)d, grid->value[d][i]);
                fprintf(to, "<option value=%u%s>%s</option>", i, i == grid->now[d] ? " selected" : "",
                        text);
            }
            fputs("</select>", to);
        }
        fputs("</label>\n", to);
    }
    fputs("<button type=button id=as-it-was>reset</button></div>\n", to);
}

static void put_grid(FILE *to, const struct grid *grid, const struct dr_facts *f)
{
    struct json json = {.to = to, .depth = 4};
    fputs("<script type=\"application/json\" id=grid>", to);
    json_open(&json, NULL, '{');
    json_number(&json, "batch_size", f->loader.batch_size);
    json_open(&json, "values", '[');
    for (int d = 0; d < DIMENSIONS; d++) {
        json_open(&json, NULL, '[');
        for (uint32_t i = 0; i < grid->count[d]; i++)
            json_number(&json, NULL, grid->value[d][i]);
        json_close(&json, ']');
    }
    json_close(&json, ']');
    json_open(&json, "now", '[');
    for (int d = 0; d < DIMENSIONS; d++)
        json_number(&json, NULL, grid->now[d]);
    json_close(&json, ']');
    json_open(&json, "outcomes", '['); /* low, mid, high, share of waiting, readiness, CPUs */
    for (uint32_t n = 0; n < grid->outcomes; n++) {
        const struct dr_outcome *o = &grid->outcome[n];
        const double numbers[] = {o->step.low,   o->step.mid,  o->step.high,
                                  o->wait_share, o->readiness, o->cpus};
        json_open(&json, NULL, '[');
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            char text[32];
            snprintf(text, sizeof text, "%.4g", numbers[i]);
            json_number(&json, NULL, strtod(text, NULL));
        }
        json_close(&json, ']');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    fputs("</script>\n", to);
}

/* The result for the settings of the run is also there without the script. */
static void put_result(const struct dr_page *page, const struct grid *grid)
{
    const struct dr_outcome *o = &grid->outcome[place_of(grid, grid->now)];
    struct dr_text text;
    FILE *to = page->to;
    fputs("<dl class=tiles id=outcome aria-live=polite>\n", to);
    fprintf(to,
            "<div><dt>step time</dt><dd><span data-out=step>%s</span><small "
            "data-out=range></small></dd></div>\n",
            dr_seconds_text(&text, o->step.mid));
    fprintf(to, "<div><dt>samples per second</dt><dd data-out=rate>%s</dd></div>\n",
            dr_plain_text(&text, page->facts->loader.batch_size / o->step.mid));
    fputs("<div><dt>speed-up</dt><dd data-out=gain>1.00x</dd></div>\n", to);
    fprintf(to, "<div><dt>waits in next()</dt><dd data-out=wait>%s</dd></div>\n",
            dr_share_text(&text, o->wait_share));
    fprintf(to, "<div><dt>batch is ready</dt><dd data-out=ready>%s</dd></div>\n</dl>\n",
            dr_share_text(&text, o->readiness));
    fputs("<figure class=chart><figcaption><b>Step time by number of workers</b></figcaption><div "
          "class=plot>"
          "<svg id=curve viewBox=\"0 0 1000 100\" preserveAspectRatio=none aria-hidden=true></svg><span "
          "class=top></span></div><div class=axis id=curve-axis>",
          to);
    for (uint32_t i = 0; i < grid->count[WORKERS]; i++)
        fprintf(to, "<span>%s</span>", dr_plain_text(&text, grid->value[WORKERS][i]));
    fputs("</div></figure>\n", to);
    struct dr_text simulated, measured;
    fprintf(
        to,
        "<p class=note>%u combinations, simulated from the measured times of batches and steps. For the "
        "settings of this run, the simulated step takes %s; measured: %s.</p>\n",
        grid->outcomes, dr_seconds_text(&simulated, o->step.mid),
        dr_seconds_text(&measured, page->facts->step));
}

void dr_html_what_if(const struct dr_page *page)
{
    struct grid grid = {0};
    struct dr_trace trace;
    struct dr_plan now;
    dr_section_begin(page, "what-if", "What if", "Other settings and machines, simulated.");
    bool fine = dr_trace_of(&trace, &now, page->facts);
    if (fine) {
        if (trace.batches > BATCHES_MOST)
            trace.batches = BATCHES_MOST;
        if (trace.steps > BATCHES_MOST)
            trace.steps = BATCHES_MOST;
        choose_values(&grid, page, &now);
        fine = simulate_all(&grid, &trace, &now) &&
               isfinite(grid.outcome[place_of(&grid, grid.now)].step.mid);
    }
    if (fine) {
        put_controls(page, &grid);
        put_result(page, &grid);
        put_grid(page->to, &grid, page->facts);
    } else {
        dr_html_none(page, "Not enough was measured to simulate this run: the simulation needs the "
                           "times of batches and of steps.");
    }
    free(grid.outcome);
    dr_section_end(page);
}
