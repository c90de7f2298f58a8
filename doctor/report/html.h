/* html.h - the parts of report.html, and what they share
 *
 * Charts are inline SVG stretched to the available width; their labels are HTML, so that text keeps its
 * size on small and large screens. A part without data tells why.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_HTML_H
#define ST_DOCTOR_REPORT_HTML_H

#include "doctor/report/report.h"
#include "doctor/rule/words.h"
#include "doctor/tune/tune.h"

struct dr_page {
    FILE *to;
    const struct dr_verdict *verdict;
    const struct dr_facts *facts;
    const struct dr_tuned *tuned; /* NULL: the page of a run, not of `stoker tune` */
};

void dr_html_verdict(const struct dr_page *page);
void dr_html_tune(const struct dr_page *page);
void dr_html_steps(const struct dr_page *page);
void dr_html_pipeline(const struct dr_page *page);
void dr_html_queue(const struct dr_page *page);
void dr_html_workers(const struct dr_page *page);
void dr_html_resources(const struct dr_page *page);
void dr_html_gpu(const struct dr_page *page);
void dr_html_what_if(const struct dr_page *page);
void dr_html_settings(const struct dr_page *page);
void dr_html_ranks(const struct dr_page *page);
void dr_html_evidence(const struct dr_page *page);

/* `lead` is one sentence that introduces the part. It is not escaped, so it must not contain data. */
void dr_section_begin(const struct dr_page *page, const char *id, const char *title, const char *lead);
void dr_section_end(const struct dr_page *page);
/* Replaces something without data by the reason. */
void dr_html_none(const struct dr_page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Why this signal is missing, as the probes reported; `otherwise` if they did not. */
const char *dr_why_missing(const struct dr_run *run, const char *signal, const char *otherwise);
/* A tile with a number and its unit; n/a if it is unknown. */
void dr_tile_put(const struct dr_page *page, const char *name, double value, const char *unit);

/* ---- charts ------------------------------------------------------------------------------------ */

enum { DR_CHART_LINES = 8, DR_CHART_POINTS = 240 };
struct dr_line {
    const char *name;
    const char *color; /* the name of a variable of page.css, such as "stall" */
    double values[DR_CHART_POINTS];
};
struct dr_chart {
    const char *title, *unit;
    double begin, end; /* seconds of the run */
    uint32_t points;
    struct dr_line line[DR_CHART_LINES];
    uint32_t lines;
    bool stacked; /* stacked areas */
    double limit; /* a horizontal line; NaN: none */
    const char *limit_name;
    double top;          /* end of the scale; NaN: chosen from the values */
    const double *marks; /* vertical lines at these seconds, such as epochs */
    uint32_t mark_count;
    const char *mark_name;
};
/* Initializes the NaN members. NULL when out of memory; free() it. */
struct dr_chart *dr_chart_new(const char *title, const char *unit, double begin, double end,
                              uint32_t points);
struct dr_line *dr_chart_line(struct dr_chart *chart, const char *name, const char *color);
/* Writes the chart, or `why` if all its values are unknown. Frees it. */
void dr_chart_put(const struct dr_page *page, struct dr_chart *chart, const char *why);
/* Vertical bars; `labels` are for the first, the middle and the last one. */
void dr_histogram_put(const struct dr_page *page, const char *title, const double *counts, uint32_t bars,
                      const char *color, const char *const labels[3]);

#endif
