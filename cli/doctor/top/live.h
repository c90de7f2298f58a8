/* live.h - runs and processes that `stoker top` can look at
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_TOP_LIVE_H
#define ST_DOCTOR_TOP_LIVE_H

#include "cli/doctor/top/screen.h"
#include "stoker/stoker.h"

/* The run directory of the `stoker run` that a process belongs to (STOKER_RUN in its environment). */
bool dr_run_of_process(char *out, size_t room, int pid);

/* The loaders of a process that nobody watches, by the counters that they publish. */
struct dr_live;
int dr_live_open(struct dr_live **out, int pid, struct stoker_error *err);
/* Draws what happened since the frame before. Fails when the process has ended. */
bool dr_live_frame(struct dr_screen *screen, struct dr_live *live, struct stoker_error *err);
void dr_live_close(struct dr_live *live); /* NULL is fine */

#endif
