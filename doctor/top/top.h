/* top.h - what `stoker top` shows: a run, or the loaders of a process
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_TOP_H
#define ST_DOCTOR_TOP_H

#include "cli/json.h"
#include "doctor/report/report.h"
#include "doctor/top/screen.h"

/* ---- a run (frame.c) ----------------------------------------------------------------------------- */

enum dr_pane {
    DR_PANE_ALL,
    DR_PANE_STEPS,
    DR_PANE_PIPELINE,
    DR_PANE_WORKERS,
    DR_PANE_RESOURCES,
    DR_PANES
};

/* `facts` and `verdict` are NULL until there are enough steps; `why` then tells the reason. */
void dr_top_frame(struct dr_screen *screen, const struct dr_run *run, const struct dr_facts *facts,
                  const struct dr_verdict *verdict, enum dr_pane pane, const char *why);

/* ---- a process (live.c) -------------------------------------------------------------------------- */

/* The run directory of the `stoker run` that a process belongs to (STOKER_RUN in its environment). */
bool dr_run_of_process(char *out, size_t room, int pid);

/* The loaders of a process outside `stoker run`, by the counters that they publish. */
struct dr_live;
int dr_live_open(struct dr_live **out, int pid, struct stoker_error *err);
/* Draws what happened since the last frame. Fails when the process has ended. */
bool dr_live_frame(struct dr_screen *screen, struct dr_live *live, struct stoker_error *err);
/* Writes all counters as one JSON object. Fails when the process has ended. */
int dr_live_json(struct json *json, struct dr_live *live, struct stoker_error *err);
void dr_live_close(struct dr_live *live); /* NULL is allowed */

#endif
