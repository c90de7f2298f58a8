/* samples.h - the file RUN/samples: what was observed from outside, tick by tick
 *
 * A log of records (samples_file.h), appended to once per second. A reader can read it at any time: it
 * ignores a truncated last record. At DR_TICKS_MOST rows, neighbours are merged in pairs, a row covers
 * twice the time from then on, and the file is replaced.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SAMPLES_H
#define ST_DOCTOR_SAMPLES_H

#include "doctor/probe/probe.h"

enum { DR_TICKS_MOST = 4096, DR_PROCESSES_MOST = 1024 };

struct dr_samples;
/* Creates DIRECTORY/samples. `started`: seconds since 1970. */
int dr_samples_open(struct dr_samples **out, const char *directory, uint64_t start_ns, int64_t started,
                    struct stoker_error *err);
void dr_samples_limits(struct dr_samples *samples, const struct dr_limits *limits);
/* Copies the texts. */
void dr_samples_missing(struct dr_samples *samples, const struct dr_missing *missing);
/* Adds one tick: the values of the machine, and the row of each process in `watched`. */
void dr_samples_tick(struct dr_samples *samples, const struct dr_tick *tick,
                     const struct dr_watched *watched);
/* Appends new rows to the file. */
int dr_samples_flush(struct dr_samples *samples, double own_cpu_seconds, struct stoker_error *err);
/* The same when the command has ended. */
int dr_samples_finish(struct dr_samples *samples, uint64_t end_ns, int exit_code, double own_cpu_seconds,
                      struct stoker_error *err);
void dr_samples_close(struct dr_samples *samples); /* NULL is allowed */

/* Reads DIRECTORY/samples into `run`, in one block, run->memory, that the caller frees. Roles, ranks,
 * what processes reported and their events stay empty. */
int dr_samples_read(struct dr_run *run, const char *directory, struct stoker_error *err);

#endif
