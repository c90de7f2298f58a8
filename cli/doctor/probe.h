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

/* The processes of the run as the parent knows them now (record/watched.c); the table of each is one
 * row, the values of this tick. */
struct dr_watched {
    const struct dr_process *process;
    const uint32_t *id; /* unlike pids never used again; ascending */
    uint32_t processes;
};

/* Signals that cannot be had, and why. */
struct dr_absent {
    struct dr_missing *missing; /* texts are copies */
    uint32_t count;
};
/* A signal by its name; `why` ends in no full stop. Without memory the signal is just NaN. */
void dr_absent_add(struct dr_absent *absent, const char *signal, const char *why, const char *remedy);
void dr_absent_free(struct dr_absent *absent);

struct dr_tick {
    uint64_t now_ns, before_ns;
    double *machine; /* DR_MACHINE_COUNT values, NaN at first */
};

struct dr_probe {
    const char *name;
    size_t state_size; /* zeroed memory of this size is `state` */
    /* Fills in what it knows of `limits`, which stays where it is until close, so that sample may refine
     * it. `root` stands for "/" ("" outside tests). False: nothing of it
     * can be had. Each signal that cannot is added to `absent`, now or, if that shows later, in sample. */
    bool (*open)(void *state, const char *root, struct dr_limits *limits, struct dr_absent *absent);
    void (*sample)(void *state, struct dr_tick *tick, const struct dr_watched *watched);
    void (*close)(void *state); /* safe after a failed open */
};
extern const struct dr_probe *const dr_probes[]; /* NULL at the end */

#endif
