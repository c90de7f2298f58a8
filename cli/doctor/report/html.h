/* html.h - the parts of report.html, and what they share
 *
 * Charts are inline SVG that is stretched to the width there is; their labels are HTML beside it, so
 * that text keeps its size on a phone and on a wall. A part without data says why.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_HTML_H
#define ST_DOCTOR_REPORT_HTML_H

#include "cli/doctor/report.h"
#include "cli/doctor/report/words.h"

struct dr_page {
    FILE *to;
    const struct dr_verdict *verdict;
    const struct dr_facts *facts;
};

void dr_html_verdict(const struct dr_page *page);
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

/* `lead` is one sentence that says what to see; of this program's own, not escaped. */
void dr_section_begin(const struct dr_page *page, const char *id, const char *title, const char *lead);
void dr_section_end(const struct dr_page *page);
/* In the place of something that there is no data for: why. */
void dr_html_none(const struct dr_page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Why this signal is missing, as the probes said; `otherwise` where they said nothing. */
const char *dr_why_missing(const struct dr_run *run, const char *signal, const char *otherwise);
/* A tile with a number and its unit; one that is unknown says n/a. */
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
    bool stacked; /* areas on one another */
    double limit; /* a line across; NaN: none */
    const char *limit_name;
    double top;          /* of the scale; NaN: by the values */
    const double *marks; /* seconds: thin lines, such as epochs */
    uint32_t mark_count;
    const char *mark_name;
};
/* Zeroed memory is not enough: NaN limits. NULL when out of memory; free() it. */
struct dr_chart *dr_chart_new(const char *title, const char *unit, double begin, double end,
                              uint32_t points);
struct dr_line *dr_chart_line(struct dr_chart *chart, const char *name, const char *color);
/* Writes it; one whose lines are all unknown says `why`. Frees it. */
void dr_chart_put(const struct dr_page *page, struct dr_chart *chart, const char *why);
/* Upright bars; `labels` stand under the first, the middle and the last one. */
void dr_histogram_put(const struct dr_page *page, const char *title, const double *counts, uint32_t bars,
                      const char *color, const char *const labels[3]);

#endif
