/* probe.h - one source of signals per file: opened once, sampled ten times per second, or twice
 *
 * A probe is a file in probe/ that ends in its `const struct dr_probe`, listed in probe/registry.c. It
 * keeps its files open (reading 150 files then costs 1.4 us per file) and fills in its signals. Signals
 * that it cannot provide stay NaN and are reported once, with reason and remedy.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_PROBE_H
#define ST_DOCTOR_PROBE_H

#include "doctor/run/run.h"

/* The processes of the run as currently known (record/watched.c); the table of each has one row, the
 * values of this tick. */
struct dr_watched {
    const struct dr_process *process;
    const uint32_t *id; /* never reused, unlike pids; ascending */
    uint32_t processes;
};

/* Missing signals, and why. */
struct dr_absent {
    struct dr_missing *missing; /* texts are copies */
    uint32_t count;
};
/* Adds a signal by name; `why` has no full stop at its end. If memory runs out, it is just NaN. */
void dr_absent_add(struct dr_absent *absent, const char *signal, const char *why, const char *remedy);
void dr_absent_free(struct dr_absent *absent);

struct dr_tick {
    uint64_t now_ns, before_ns; /* before_ns: the previous sample */
    double *machine;            /* DR_MACHINE_COUNT values, initially NaN */
};

struct dr_probe {
    const char *name;
    size_t state_size; /* zeroed memory of this size is `state` */
    /* Fills in its part of `limits`, which stays valid until close, so that sample may refine it. `root`
     * is prepended to paths ("" outside tests). False: the probe provides nothing. Missing signals are
     * added to `absent`, here or later in sample. */
    bool (*open)(void *state, const char *root, struct dr_limits *limits, struct dr_absent *absent);
    void (*sample)(void *state, struct dr_tick *tick, const struct dr_watched *watched);
    void (*close)(void *state); /* safe after a failed open */
    uint32_t pause_ms; /* between samples, whose values hold until the next; 0: in every tick */
};
enum { DR_PROBES_MOST = 32 }; /* the room of a recorder; registry.c asserts it */
extern const struct dr_probe *const dr_probes[]; /* NULL at the end */

#endif
