/* samples.h - the file RUN/samples: what the parent saw from outside, tick by tick
 *
 * A log of records (samples_file.h) that is appended to once a second, so that a reader finds a whole
 * state at any time: it leaves out a last record that is cut off. At DR_TICKS_MOST rows neighbours are
 * merged in pairs, a row stands for twice the time from then on, and the file is replaced as a whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SAMPLES_H
#define ST_DOCTOR_SAMPLES_H

#include "cli/doctor/probe.h"

enum { DR_TICKS_MOST = 4096, DR_PROCESSES_MOST = 1024 };

struct dr_samples;
/* Makes DIRECTORY/samples. `started`: seconds since 1970. */
int dr_samples_open(struct dr_samples **out, const char *directory, uint64_t start_ns, int64_t started,
                    struct stoker_error *err);
void dr_samples_limits(struct dr_samples *samples, const struct dr_limits *limits);
/* Takes copies of the texts. */
void dr_samples_missing(struct dr_samples *samples, const struct dr_missing *missing);
/* One tick: the machine's values, and for each process of `watched` the one row of its table. */
void dr_samples_tick(struct dr_samples *samples, const struct dr_tick *tick,
                     const struct dr_watched *watched);
/* Puts what is new into the file. */
int dr_samples_flush(struct dr_samples *samples, double own_cpu_seconds, struct stoker_error *err);
/* The same at the end of the command. */
int dr_samples_finish(struct dr_samples *samples, uint64_t end_ns, int exit_code, double own_cpu_seconds,
                      struct stoker_error *err);
void dr_samples_close(struct dr_samples *samples); /* NULL is fine */

/* Fills in what DIRECTORY/samples tells of a run, in one block that run->memory holds and the caller
 * frees. Roles, ranks, what processes said and their events are left empty. */
int dr_samples_read(struct dr_run *run, const char *directory, struct stoker_error *err);

#endif
