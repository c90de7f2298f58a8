/* recorder.h - samples a command, its processes and the machine into RUN/samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_RECORDER_H
#define ST_DOCTOR_RECORDER_H

#include "doctor/probe/probe.h"

struct dr_recorder;
/* Starts to watch process `command`; `ignored`: a child of this process that is not part of it, or 0. */
int dr_recorder_open(struct dr_recorder **out, const char *directory, int command, int ignored,
                     struct stoker_error *err);
/* Samples everything, and updates the file once per second. Returns the time of the next tick. */
uint64_t dr_recorder_tick(struct dr_recorder *recorder);
/* The mean of a machine signal since the last call for it; NaN. */
double dr_recorder_mean(struct dr_recorder *recorder, enum dr_machine_signal signal);
const struct dr_limits *dr_recorder_limits(const struct dr_recorder *recorder);
/* The number of processes currently watched. */
uint32_t dr_recorder_processes(const struct dr_recorder *recorder);
/* Records the end of the command. Returns the error of writing, if any. */
int dr_recorder_finish(struct dr_recorder *recorder, int exit_code, struct stoker_error *err);
void dr_recorder_close(struct dr_recorder *recorder); /* NULL is allowed */

#endif
