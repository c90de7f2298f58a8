/* live.h - runs and processes that `stoker top` can look at
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_TOP_LIVE_H
#define ST_DOCTOR_TOP_LIVE_H

#include "cli/json.h"
#include "doctor/top/screen.h"
#include "stoker/stoker.h"

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
