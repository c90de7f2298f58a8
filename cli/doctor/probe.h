/* probe.h - one source of signals, one file: opened once, sampled ten times a second
 *
 * A probe is a file in probe/ that ends in its `const struct dr_probe`, listed in probe/registry.c. It
 * keeps its files open (a sweep of 150 files costs 1.4 us a file that way) and fills in its signals;
 * what it cannot have it leaves NaN and reports once, with the reason and the remedy.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_PROBE_H
#define ST_DOCTOR_PROBE_H

#include "cli/doctor/run.h"

/* The processes of the run as the parent knows them now (record/watched.c). */
struct dr_watched {
    const struct dr_process *process;
    uint32_t processes;
};

struct dr_tick {
    uint64_t now_ns, before_ns;
    double *machine; /* DR_MACHINE_COUNT values, NaN at first */
};

struct dr_probe {
    const char *name;
    size_t state_size; /* zeroed memory of this size is `state` */
    /* Fills in what it knows of `limits`. `root` stands for "/" ("" outside tests). False: nothing of it
     * can be had; missing() was called for each signal. */
    bool (*open)(void *state, const char *root, struct dr_limits *limits,
                 const struct dr_watched *watched);
    void (*sample)(void *state, struct dr_tick *tick, const struct dr_watched *watched);
    void (*close)(void *state); /* safe after a failed open */
};
extern const struct dr_probe *const dr_probes[]; /* NULL at the end */

#endif
