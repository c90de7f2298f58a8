/* samples_kept.h - the rows of a run in the memory of the recorder
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SAMPLES_KEPT_H
#define ST_DOCTOR_SAMPLES_KEPT_H

#include "base/mem.h"
#include "doctor/record/samples.h"
#include "doctor/record/samples_file.h"

#include <limits.h>

enum { DR_MISSING_MOST = 256 };

/* The values of a row that is being filled: sums weighted by time, and the time for which each was
 * known. */
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
    bool started;  /* `sums` is not empty */
    bool new_name; /* to be written */
    bool new_threads;
    struct dr_row_sum sums[DR_PROCESS_COUNT];
};

struct dr_samples {
    char path[PATH_MAX], temporary[PATH_MAX];
    int file;
    bool behind;            /* a write failed: the file must be replaced */
    uint64_t size, compact; /* current size of the file; its size when it was last replaced */
    struct st_buffer out;
    uint64_t start_ns;
    int64_t started;
    struct dr_limits limits;
    struct dr_missing missing[DR_MISSING_MOST];
    uint32_t missing_count;
    struct dr_record_end end;
    uint32_t merge; /* ticks per row */
    uint32_t in_row;
    struct dr_row_sum sums[DR_MACHINE_COUNT];
    uint32_t ticks;
    uint64_t tick_ns[DR_TICKS_MOST];
    float machine[DR_TICKS_MOST][DR_MACHINE_COUNT];
    struct dr_kept_process *process[DR_PROCESSES_MOST]; /* by id */
    uint32_t processes;
    uint32_t flushes;
};

/* Adds the values of a tick to a row; finishes a row: means over time, NaN if nothing was known. */
void dr_row_add(struct dr_row_sum *sums, const double *values, uint32_t count, double seconds);
void dr_row_end(float *row, struct dr_row_sum *sums, uint32_t count);
/* Merges rows of the machine and of all processes in pairs; each then covers twice the time. */
void dr_rows_merge(struct dr_samples *samples);

#endif
