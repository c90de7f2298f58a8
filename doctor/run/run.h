/* run.h - a recorded run in memory
 *
 * A run directory holds:
 *   command       the command line, one argument per line (escaped as below), then its working directory
 *   process/PID   what a watched process reports about itself: lines "KEY VALUE", in which \n and \\
 *                 stand for a line break and a backslash; a later line replaces an earlier one with
 *                 the same key
 *   events/PID    what it did and when (events.h)
 *   samples       what was observed from outside (record/samples.h)
 *   run.json, report.html, trace.json   written at the end, from all of the above
 *
 * Keys in process/PID: pid, parent, role (trainer, worker), rank, local_rank, world_size, argv, cwd,
 * python, torch, cuda.uuid, cuda.name, cuda.memory_peak, cuda.memory_total, cuda.capability, amp (0/1:
 * autocast was seen), tf32 (0/1), threads.torch, exit (code), worker.id, worker.loader, worker.samples
 * (digests of the first samples of an iterable dataset), worker.random (digest of the state from which a
 * generator of random numbers was used first, and where it is); of loader N:
 * loader.N.class, .native (1: Stoker's engine makes the batches), .workers, .prefetch, .batch_size,
 * .pin_memory, .persistent, .in_order, .start_method, .drop_last, .batches (len), .samples (len of the
 * dataset), .dataset (class), .iterable, .shuffle, .batch_bytes, .file, .line, .source (the text of the
 * DataLoader call), .handles (open handles found in the dataset, in words), .objects (Python objects in
 * its lists: what copy-on-write growth comes from), .tensors (tensors in a batch), .transform (what it
 * applies, in words), .seed (by which workers that are not forked find their loader), .try.plan (how
 * Stoker's loader makes its samples: engine; rows, gathered from tensors; python), .try.workers (of that
 * loader), .try.why (why not in the engine), .try.error (why nothing was measured), .operators (what
 * this process spent in each timed function: "SAMPLES NS", then for each "|STAGE CALLS NS NAME");
 * sync.N.where ("FILE:LINE what"); watch.error (why watching this process ended early).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_RUN_H
#define ST_DOCTOR_RUN_H

#include "doctor/run/events.h"
#include "doctor/run/signals.h"
#include "stoker/stoker.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* NaN means unknown, here and in everything that is computed from it. */
static inline bool dr_known(double value) { return !isnan(value); }
static inline bool dr_above(double value, double limit) { return value > limit; }
static inline bool dr_below(double value, double limit) { return value < limit; }

/* Values over time: `ticks` rows of `signals` numbers. */
struct dr_table {
    uint32_t ticks, signals;
    const double *values; /* row after row */
};
static inline double dr_at(const struct dr_table *table, uint32_t tick, uint32_t signal)
{
    return table->values[(size_t)tick * table->signals + signal];
}

struct dr_text_pair {
    const char *key, *value;
};

/* Threads with the same name in one process, over the whole run. */
struct dr_threads {
    char name[16];
    uint32_t most; /* at the same time */
    double cpu_seconds;
};

enum dr_role { DR_OTHER, DR_TRAINER, DR_WORKER };

struct dr_process {
    int pid, parent;
    enum dr_role role;
    int rank;              /* -1: unknown, or only one rank */
    int worker;            /* number of the worker; -1 */
    int trainer;           /* index in run->process of the trainer it belongs to; -1 */
    char name[64];         /* comm, or the file name of the program */
    uint32_t first_tick;   /* tick of the run in which it was first seen */
    struct dr_table table; /* DR_PROCESS_COUNT signals */
    const struct dr_threads *threads;
    uint32_t thread_names;
    const struct dr_text_pair *said; /* process/PID; sorted by key */
    uint32_t said_count;
    const struct dr_event *events;     /* oldest first, unrolled from the ring */
    uint64_t event_count, events_lost; /* lost: overwritten in the ring buffer */
    uint64_t watch_spent_ns;
};

/* Why a signal is missing. */
struct dr_missing {
    const char *signal, *why, *remedy;
};

/* Facts about the machine that do not change during a run; NaN: unknown. */
struct dr_limits {
    double cpus; /* effective: min(affinity, quota) */
    double cpus_affinity, cpus_quota /* NaN: no quota */, cpus_machine;
    double memory, memory_machine; /* bytes: limit of the cgroup, or the machine; of the machine */
    double shm;                    /* size of /dev/shm */
    double gpu_memory;
    double nodes; /* NUMA nodes */
    double gpu_node,
        cpu_node;      /* of the GPU; of the CPUs that ran the workers (the most used node) */
    double pcie_limit; /* bytes/s of the GPU's link (generation x width) */
    char gpu_name[96];
    char disk_name[96], file_system[32]; /* where the data are stored, as far as observed */
    char cpu_name[96];
};

struct dr_run {
    char directory[4096];
    char *const *argv; /* NULL at the end */
    const char *cwd;
    uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC */
    int64_t started;           /* seconds since 1970 */
    bool finished;
    int exit_code; /* of the command; 128 + N if signal N killed it */
    struct dr_limits limits;
    const uint64_t *tick_ns; /* the time of each row */
    struct dr_table machine; /* DR_MACHINE_COUNT signals */
    struct dr_process *process;
    uint32_t processes;
    const struct dr_missing *missing;
    uint32_t missing_count;
    double own_cpu_seconds; /* of the recorder */
    void *memory;           /* owns everything that is pointed to above */
};

/* Reads a run directory, even while it is being written. */
int dr_run_open(struct dr_run **out, const char *directory, struct stoker_error *err);
void dr_run_close(struct dr_run *run);
/* What the process reported under this key, or NULL; as a number: NaN. */
const char *dr_said(const struct dr_process *process, const char *key);
double dr_said_number(const struct dr_process *process, const char *key);

#endif
