/* samples_file.h - the records of RUN/samples
 *
 * DR_SAMPLES_MAGIC, then records: kind and size of the payload, 32 bits each, then the payload. Numbers
 * are in native byte order, texts are zero-terminated. Signals are named, so that programs with other
 * signals can read the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SAMPLES_FILE_H
#define ST_DOCTOR_SAMPLES_FILE_H

#include "doctor/run/run.h"

#define DR_SAMPLES_MAGIC "stkrsm1" /* 8 bytes with the terminator */
#define DR_SAMPLES_NAME  "samples"

enum dr_record_kind {
    DR_RECORD_START = 1, /* u64 start_ns, i64 started */
    DR_RECORD_SIGNALS,   /* u32 of the machine, u32 of a process, then their names */
    DR_RECORD_LIMITS,    /* u32 count, that many doubles in the order of dr_limits, then its texts */
    DR_RECORD_MISSING,   /* the three texts */
    DR_RECORD_PROCESS,   /* u32 id, i32 pid, i32 parent, then its name; a later one replaces it */
    DR_RECORD_THREADS,   /* u32 id, u32 count, then struct dr_threads; a later one replaces it */
    DR_RECORD_TICK, /* u64 time, u32 processes, floats of the machine; for each process its id, floats */
    DR_RECORD_END,  /* struct dr_record_end; the last one counts */
};

struct dr_record_head {
    uint32_t kind, size;
};

struct dr_record_end {
    uint64_t end_ns;
    double own_cpu_seconds;
    int32_t exit_code;
    uint32_t finished;
};

/* dr_limits begins with its numbers; the texts follow. */
enum { DR_LIMIT_NUMBERS = offsetof(struct dr_limits, gpu_name) / sizeof(double), DR_LIMIT_TEXTS = 4 };
struct dr_limit_text {
    size_t at, room;
};
#define DR_LIMIT_TEXT(field)                                                                            \
    {                                                                                                   \
        offsetof(struct dr_limits, field), sizeof((struct dr_limits *)0)->field                         \
    }
static const struct dr_limit_text dr_limit_texts[DR_LIMIT_TEXTS] = {
    DR_LIMIT_TEXT(gpu_name), DR_LIMIT_TEXT(disk_name), DR_LIMIT_TEXT(file_system),
    DR_LIMIT_TEXT(cpu_name)};

#endif
