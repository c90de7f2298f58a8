/* recorder.h - samples a command: its processes, the machine, into RUN/samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_RECORDER_H
#define ST_DOCTOR_RECORDER_H

#include "cli/doctor/probe.h"

struct dr_recorder;
/* Begins to watch process `command`; `ignored`: a child of this process that is no part of it, or 0. */
int dr_recorder_open(struct dr_recorder **out, const char *directory, int command, int ignored,
                     struct stoker_error *err);
/* Samples everything; once a second the file is brought up to date. Returns the time of the next tick.
 */
uint64_t dr_recorder_tick(struct dr_recorder *recorder);
/* The mean of a signal of the machine since the last time it was asked for; NaN. */
double dr_recorder_mean(struct dr_recorder *recorder, enum dr_machine_signal signal);
const struct dr_limits *dr_recorder_limits(const struct dr_recorder *recorder);
/* Processes that are watched now. */
uint32_t dr_recorder_processes(const struct dr_recorder *recorder);
/* Writes the end of the command, and gives back what writing failed with, if it did. */
int dr_recorder_finish(struct dr_recorder *recorder, int exit_code, struct stoker_error *err);
void dr_recorder_close(struct dr_recorder *recorder); /* NULL is fine */

#endif
