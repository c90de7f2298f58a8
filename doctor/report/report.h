/* report.h - a judged run as text, JSON, a page and a trace
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_H
#define ST_DOCTOR_REPORT_H

#include "doctor/rule/rule.h"

#include <stdio.h>

struct dr_style {
    uint32_t width; /* columns */
    bool color, ascii;
    bool first; /* report of this folder: it says at length why no GPU is seen, the others in a line */
};

/* Prints the verdict, at the end of `stoker run` and for `stoker report`. */
void dr_print_verdict(FILE *to, const struct dr_style *style, const struct dr_verdict *verdict,
                      const struct dr_facts *facts);
/* Every number as JSON (run.json). */
int dr_write_json(FILE *to, const struct dr_verdict *verdict, const struct dr_facts *facts);
/* One self-contained page (report.html). */
int dr_write_html(FILE *to, const struct dr_verdict *verdict, const struct dr_facts *facts);
/* The same for `stoker tune`: its results, and the page of its first run, with unchanged settings. */
struct dr_tuned;
int dr_write_tune_html(FILE *to, const struct dr_verdict *verdict, const struct dr_facts *facts,
                       const struct dr_tuned *tuned);
/* For Perfetto and Chrome (trace.json): batches as flows from worker to step. */
int dr_write_trace(FILE *to, const struct dr_facts *facts);

/* ---- from a directory to a verdict (report/judged.c) --------------------------------------------- */

struct dr_judged {
    struct dr_run *run;
    struct dr_facts facts;
    struct dr_verdict verdict;
};
/* Finds the directory of a run: `word` is its number in .stoker, its path, or NULL for the newest. */
int dr_find_run(char out[4096], const char *word, struct stoker_error *err);
/* Reads and judges a run. The caller closes it, even after a failure. */
int dr_judged_open(struct dr_judged **out, const char *word, struct stoker_error *err);
void dr_judged_close(struct dr_judged *judged);
/* How to print to this file: its width, and whether to use colours and non-ASCII characters. */
struct dr_style dr_style_for(FILE *to);

#endif
