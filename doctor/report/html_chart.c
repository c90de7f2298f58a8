/* html_chart.c - charts of report.html: lines, areas and bars as inline SVG
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/html.h"
#include "doctor/report/json.h"
#include "doctor/report/numbers.h"

#include "cli/out.h"

#include <stdlib.h>
#include <string.h>

enum { WIDE = 1000, HIGH = 100 }; /* of the view box, which is stretched to the available width */

struct dr_chart *dr_chart_new(const char *title, const char *unit, double begin, double end,
                              uint32_t points)
{
    struct dr_chart *chart = calloc(1, sizeof *chart);
    if (!chart)
        return NULL;
    chart->title = title;
    chart->unit = unit;
    chart->begin = begin;
    chart->end = end;
    chart->points = points < DR_CHART_POINTS ? points : DR_CHART_POINTS;
    chart->limit = chart->top = NAN;
    return chart;
}

struct dr_line *dr_chart_line(struct dr_chart *chart, const char *name, const char *color)
{
    struct dr_line *line =
        &chart->line[chart->lines < DR_CHART_LINES - 1 ? chart->lines++ : chart->lines];
    line->name = name;
    line->color = color;
    for (uint32_t i = 0; i < DR_CHART_POINTS; i++)
        line->values[i] = NAN;
    return line;
}

static bool line_known(const struct dr_chart *chart, const struct dr_line *line)
{
    for (uint32_t i = 0; i < chart->points; i++)
        if (isfinite(line->values[i]))
            return true;
    return false;
}

/* The sum of the known values of all lines up to and including `upto`. */
static double stack_at(const struct dr_chart *chart, uint32_t upto, uint32_t point)
{
    double sum = 0;
    for (uint32_t i = 0; i <= upto; i++)
        if (isfinite(chart->line[i].values[point]))
            sum += chart->line[i].values[point];
    return sum;
}

/* A round number at or above `value`. */
static double round_up(double value)
{
    if (!(value > 0) || !isfinite(value))
        return 1;
    const double power = pow(10, floor(log10(value)));
    static const double steps[] = {1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (value <= steps[i] * power * 1.0000001)
            return steps[i] * power;
    return 10 * power;
}

static double top_of(const struct dr_chart *chart)
{
    double most = 0;
    if (isfinite(chart->top) && chart->top > 0)
        return chart->top;
    for (uint32_t p = 0; p < chart->points; p++) {
        if (chart->stacked && chart->lines)
            most = fmax(most, stack_at(chart, chart->lines - 1, p));
        for (uint32_t i = 0; i < chart->lines && !chart->stacked; i++)
            if (isfinite(chart->line[i].values[p]))
                most = fmax(most, chart->line[i].values[p]);
    }
    if (isfinite(chart->limit))
        most = fmax(most, chart->limit * 1.05);
    if (!strcmp(chart->unit, "share") && most > 0.5 && most <= 1)
        return 1;
    return round_up(most * 1.06);
}

static double across(const struct dr_chart *chart, uint32_t point)
{
    return WIDE * (point + 0.5) / chart->points;
}

static double down(double value, double top)
{
    const double share = value / top;
    return HIGH * (1 - (share < 0 ? 0 : share > 1 ? 1 : share));
}

static void put_area(FILE *to, const struct dr_chart *chart, uint32_t number, double top)
{
    fprintf(to, "<path style=\"fill:var(--c-%s)\" d=\"", chart->line[number].color);
    for (uint32_t p = 0; p < chart->points; p++)
        fprintf(to, "%c%.1f %.2f", p ? 'L' : 'M', across(chart, p),
                down(stack_at(chart, number, p), top));
    for (uint32_t p = chart->points; p; p--)
        fprintf(to, "L%.1f %.2f", across(chart, p - 1),
                number ? down(stack_at(chart, number - 1, p - 1), top) : HIGH);
    fputs("Z\"/>", to);
}

static void put_line(FILE *to, const struct dr_chart *chart, const struct dr_line *line, double top)
{
    bool drawing = false;
    fprintf(to, "<path class=line style=\"stroke:var(--c-%s)\" d=\"", line->color);
    for (uint32_t p = 0; p < chart->points; p++) {
        if (isfinite(line->values[p]))
            fprintf(to, "%c%.1f %.2f", drawing ? 'L' : 'M', across(chart, p),
                    down(line->values[p], top));
        drawing = isfinite(line->values[p]);
    }
    fputs("\"/>", to);
}

/* The numbers, for the pointer and the keyboard. */
static void put_data(FILE *to, const struct dr_chart *chart)
{
    struct json json = {.to = to, .depth = 4}; /* deep: values do not get their own lines */
    fputs("<script type=\"application/json\">", to);
    json_open(&json, NULL, '{');
    json_number(&json, "begin", chart->begin);
    json_number(&json, "end", chart->end);
    json_string(&json, "unit", chart->unit);
    json_open(&json, "lines", '[');
    for (uint32_t i = 0; i < chart->lines; i++) {
        json_open(&json, NULL, '{');
        json_string(&json, "name", chart->line[i].name);
        json_string(&json, "color", chart->line[i].color);
        json_open(&json, "values", '[');
        for (uint32_t p = 0; p < chart->points; p++) {
            const double value = chart->line[i].values[p];
            char text[32]; /* four digits are enough for a chart, and keep the page small */
            snprintf(text, sizeof text, "%.4g", value);
            json_number(&json, NULL, isfinite(value) ? strtod(text, NULL) : NAN);
        }
        json_close(&json, ']');
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    fputs("</script>", to);
}

static void put_head(FILE *to, const struct dr_chart *chart)
{
    fputs("<figcaption><b>", to);
    html_text(to, chart->title);
    fputs("</b>", to);
    if (chart->lines == 1) { /* the title names it: leave room for numbers */
        const struct dr_line *line = &chart->line[0];
        struct dr_text mean, most;
        double highest = NAN;
        for (uint32_t i = 0; i < chart->points; i++)
            highest = fmax(highest, line->values[i]);
        fprintf(to, " <span class=key>mean <b>%s</b>, max <b>%s</b></span></figcaption>",
                dr_unit_text(&mean, dr_mean_of(line->values, 0, chart->points), chart->unit),
                dr_unit_text(&most, highest, chart->unit));
        return;
    }
    for (uint32_t i = 0; i < chart->lines; i++) {
        fprintf(to, " <span class=key><i style=\"background:var(--c-%s)\"></i>", chart->line[i].color);
        html_text(to, chart->line[i].name);
        fputs(line_known(chart, &chart->line[i]) ? "</span>" : " (n/a)</span>", to);
    }
    fputs("</figcaption>", to);
}

static void put_marks(FILE *to, const struct dr_chart *chart)
{
    const double length = chart->end - chart->begin;
    for (uint32_t i = 0; i < chart->mark_count && length > 0; i++) {
        const double at = WIDE * (chart->marks[i] - chart->begin) / length;
        if (at >= 0 && at <= WIDE)
            fprintf(to, "<path class=mark d=\"M%.1f 0V%d\"/>", at, HIGH);
    }
}

/* All labels use the unit of the last one. */
static void put_axis(FILE *to, const struct dr_chart *chart)
{
    const bool minutes = chart->end >= 120;
    fputs("<div class=axis>", to);
    for (int i = 0; i < 3; i++) {
        const double at = chart->begin + (chart->end - chart->begin) * i / 2;
        if (!(at > 0))
            fputs("<span>0</span>", to);
        else
            fprintf(to, minutes ? "<span>%.1f min</span>" : "<span>%.1f s</span>",
                    minutes ? at / 60 : at);
    }
    fputs("</div>", to);
}

static void put_chart(FILE *to, const struct dr_chart *chart)
{
    const double top = top_of(chart);
    struct dr_text text;
    fputs("<figure class=chart>", to);
    put_head(to, chart);
    fputs("<div class=plot tabindex=0 role=group aria-label=\"", to);
    html_text(to, chart->title);
    fprintf(to,
            ": arrow keys move along\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=none "
            "aria-hidden=true><path class=grid d=\"M0 25H%d M0 50H%d M0 75H%d\"/>",
            WIDE, HIGH, WIDE, WIDE, WIDE);
    for (uint32_t i = chart->lines; i; i--)
        if (chart->stacked)
            put_area(to, chart, i - 1, top);
        else if (line_known(chart, &chart->line[i - 1]))
            put_line(to, chart, &chart->line[i - 1], top);
    put_marks(to, chart);
    if (isfinite(chart->limit))
        fprintf(to, "<path class=limit d=\"M0 %.2fH%d\"/>", down(chart->limit, top), WIDE);
    fprintf(to, "</svg><span class=top>%s</span>", dr_unit_text(&text, top, chart->unit));
    if (isfinite(chart->limit))
        fprintf(to, "<span class=limit-name style=\"top:%.1f%%\">%s</span>", down(chart->limit, top),
                chart->limit_name);
    fputs("<i class=cursor hidden></i></div>", to);
    put_axis(to, chart);
    if (chart->mark_count)
        fprintf(to, "<p class=note>Dotted lines: %s.</p>", chart->mark_name);
    put_data(to, chart);
    fputs("</figure>\n", to);
}

void dr_chart_put(const struct dr_page *page, struct dr_chart *chart, const char *why)
{
    bool known = false;
    if (!chart) {
        dr_html_none(page, "Out of memory for a chart.");
        return;
    }
    for (uint32_t i = 0; i < chart->lines; i++)
        known |= line_known(chart, &chart->line[i]);
    if (known) {
        put_chart(page->to, chart);
    } else {
        fputs("<figure class=chart><figcaption><b>", page->to);
        html_text(page->to, chart->title);
        fputs("</b></figcaption>", page->to);
        dr_html_none(page, "n/a: %s", why);
        fputs("</figure>\n", page->to);
    }
    free(chart);
}

void dr_histogram_put(const struct dr_page *page, const char *title, const double *counts, uint32_t bars,
                      const char *color, const char *const labels[3])
{
    FILE *to = page->to;
    double most = 0, all = 0;
    for (uint32_t i = 0; i < bars; i++) {
        most = fmax(most, counts[i]);
        all += counts[i];
    }
    if (!(most > 0))
        return;
    fputs("<figure class=chart><figcaption><b>", to);
    html_text(to, title);
    fprintf(
        to,
        "</b></figcaption><div class=\"plot low\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=none "
        "role=img aria-label=\"",
        WIDE, HIGH);
    html_text(to, title);
    fputs("\">", to);
    for (uint32_t i = 0; i < bars; i++)
        if (counts[i] > 0)
            fprintf(to,
                    "<rect x=\"%.2f\" width=\"%.2f\" y=\"%.2f\" height=\"%.2f\" "
                    "style=\"fill:var(--c-%s)\"><title>%.1f %%</title></rect>",
                    WIDE * (i + 0.08) / bars, WIDE * 0.84 / bars, HIGH * (1 - counts[i] / most),
                    HIGH * counts[i] / most, color, 100 * counts[i] / all);
    struct dr_text text;
    fprintf(to, "</svg><span class=top>%s</span></div><div class=axis>",
            dr_share_text(&text, most / all));
    for (int i = 0; i < 3; i++) {
        fputs("<span>", to);
        html_text(to, labels[i]);
        fputs("</span>", to);
    }
    fputs("</div></figure>\n", to);
}
