/* samples_kept.h - the rows of a run as the parent keeps them in memory
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SAMPLES_KEPT_H
#define ST_DOCTOR_SAMPLES_KEPT_H

#include "base/mem.h"
#include "cli/doctor/record/samples.h"
#include "cli/doctor/record/samples_file.h"

#include <limits.h>

enum { DR_MISSING_MOST = 256 };

/* The values of one row while its time lasts: sums weighted by time, and the time that each was known.
 */
struct dr_row_sum {
    double value, seconds;
};

struct dr_kept_process {
    uint32_t id;
    int32_t pid, parent;
    char name[sizeof((struct dr_process *)0)->name];
    uint32_t first_tick, ticks, room;
    float *rows; /* of DR_PROCESS_COUNT */
    struct dr_threads *threads;
    uint32_t thread_names;
    bool present;  /* in this tick */
    bool started;  /* has something in `sums` */
    bool new_name; /* to be written */
    bool new_threads;
    struct dr_row_sum sums[DR_PROCESS_COUNT];
};

struct dr_samples {
    char path[PATH_MAX], temporary[PATH_MAX];
    int file;
    bool behind;            /* the file lacks something that was to be written: replace it */
    uint64_t size, compact; /* bytes of the file now; when it was last written as a whole */
    struct st_buffer out;
    uint64_t start_ns;
    int64_t started;
    struct dr_limits limits;
    struct dr_missing missing[DR_MISSING_MOST];
    uint32_t missing_count;
    struct dr_record_end end;
    uint32_t merge; /* ticks that make a row */
    uint32_t in_row;
    struct dr_row_sum sums[DR_MACHINE_COUNT];
    uint32_t ticks;
    uint64_t tick_ns[DR_TICKS_MOST];
    float machine[DR_TICKS_MOST][DR_MACHINE_COUNT];
    struct dr_kept_process *process[DR_PROCESSES_MOST]; /* by id */
    uint32_t processes;
    uint32_t flushes;
};

/* Adds one tick's values to a row; ends it: means by time, NaN where nothing was known. */
void dr_row_add(struct dr_row_sum *sums, const double *values, uint32_t count, double seconds);
void dr_row_end(float *row, struct dr_row_sum *sums, uint32_t count);
/* Half as many rows, of the machine and of all processes, each standing for twice the time. */
void dr_rows_merge(struct dr_samples *samples);

#endif
