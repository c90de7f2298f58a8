/* frame.h - what `stoker top` shows of a run
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_TOP_FRAME_H
#define ST_DOCTOR_TOP_FRAME_H

#include "doctor/report/report.h"
#include "doctor/top/screen.h"

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

#endif
