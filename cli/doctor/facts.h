/* facts.h - a run boiled down to the numbers that rules, screens and reports use
 *
 * Everything is of one training process (of several ranks: the one that is asked for) and of the steps
 * after the warm-up. NaN is unknown: compare by dr_above and dr_below, which are false then. Times are
 * seconds, shares are of 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_FACTS_H
#define ST_DOCTOR_FACTS_H

#include "cli/doctor/run.h"

#include <math.h>

static inline bool dr_known(double value) { return !isnan(value); }
static inline bool dr_above(double value, double limit) { return value > limit; }
static inline bool dr_below(double value, double limit) { return value < limit; }

enum dr_stage {
    DR_STAGE_READ,
    DR_STAGE_NETWORK,
    DR_STAGE_DECOMPRESS,
    DR_STAGE_DECODE,
    DR_STAGE_TRANSFORM,
    DR_STAGE_COLLATE,
    DR_STAGE_PUT,
    DR_STAGE_OTHER, /* inside __getitem__, in none of these */
    DR_STAGES
};
extern const char *const dr_stage_names[DR_STAGES];

/* One step: from one next() of the training loader to the following one. */
struct dr_step {
    uint64_t start_ns;
    double seconds; /* whole */
    double wait;    /* of that, in next() */
    double stall;   /* of that, the GPU idle (by events), or = wait where there is no GPU */
    double copy, sync, save, gc, optimizer; /* parts of the rest, as far as they are seen */
    uint32_t ready;                         /* batches ready at next(); DR_UNKNOWN */
    uint8_t flags;                          /* DR_NEXT_* */
    uint32_t batch;
};

struct dr_settings {
    char class_name[96], dataset[96], start_method[16], file[512], source[512], transform[256],
        handles[512];
    char failure[512]; /* the exception that next() raised; "": none */
    int line;          /* 0: unknown */
    bool native; /* Stoker's engine makes the batches */
    bool stoker; /* Stoker's loader (native or Python workers) */
    bool iterable, pin_memory, persistent, in_order, shuffle;
    uint32_t workers, prefetch; /* prefetch: batches a worker */
    double batch_size, batches, samples, batch_bytes, tensors, objects;
};

struct dr_rank_facts {
    int rank;
    double step, stall_share, wait_share;
    double wait_before_others; /* share of the steps in which this rank came last to the step's end */
};

struct dr_facts {
    const struct dr_run *run;
    const struct dr_process *trainer;
    struct dr_limits limits;
    struct dr_settings loader; /* the training loader's */
    bool has_gpu; /* stall is by CUDA events; otherwise it is the wait of the training thread */
    double confidence_steps; /* steps measured after the warm-up; of too short a run: steps seen */

    /* steps: measured ones only, in order */
    const struct dr_step *steps;
    uint32_t step_count, warm_up_steps;
    double step, step_p50, step_p99;          /* mean, percentiles */
    double stall, stall_share;                /* mean seconds; of the step */
    double stall_share_low, stall_share_high; /* 95 %, by bootstrap over blocks of steps */
    double wait, wait_share;
    double warm_up_stall_share;   /* in the steps before: slow start */
    double compute;               /* step - stall: the floor with a perfect loader */
    double copy, sync, optimizer; /* mean seconds in a step */
    double samples_per_second;
    double accumulation; /* calls of next() for one step of the optimizer; NaN: no optimizer was seen */

    /* the queue */
    double readiness; /* share of calls that found their batch ready */
    double ready_mean;
    double behind_share; /* calls that waited while later batches were ready */
    double behind_wait;  /* of the time in next(), in such calls */
    double wait_period; /* steps between long waits where they are periodic (lag of the autocorrelation);
                           NaN */

    /* making batches: over all makers of the training loader */
    const double *batch_seconds,
        *batch_cpu; /* wall and CPU seconds of each measured batch, by its maker */
    uint32_t batch_count;
    double batch_mean, batch_cv, batch_p99, batch_cpu_mean;
    double stage[DR_STAGES], stage_cpu[DR_STAGES]; /* mean seconds a batch */
    double stage_share[DR_STAGES];                 /* of batch_mean */
    double opens_per_sample, bytes_per_open;
    double slowest_share;    /* mean of (slowest sample's time / batch's time) */
    double pin, pin_bytes;   /* seconds and bytes a batch */
    double put;              /* = stage[DR_STAGE_PUT] */
    double main_cpu_in_next; /* CPU seconds of the training thread inside next(), a step: unpickling, or
                                loading with 0 workers */

    /* makers from outside: worker processes (or the trainer without workers) */
    double workers_seen;
    double worker_on_cpu, worker_run_queue, worker_blocked,
        worker_disk;    /* shares of a worker's time, all its threads' CPU
                           capped at the main thread's; blocked: while it made a batch, without idle */
    double worker_idle; /* share of time in which a worker waited for something to do */
    double worker_threads, worker_busy_threads,
        worker_cpus;              /* threads of one; busy ones; CPUs used by one, all threads */
    double worker_system_share;   /* kernel time of its CPU time */
    double worker_private_growth; /* bytes/s, all workers together, by a line through the second half */
    double worker_private, worker_rss; /* of one worker, mean */
    char storm_names[128]; /* names of the threads that make worker_threads large */

    /* CPUs */
    double cpus_used, cpus_busy_others; /* by the run; by others on this machine */
    double throttled_share;
    double trainer_on_cpu, trainer_run_queue; /* of the training thread */
    double trainer_cpus;                      /* all threads of the training process */
    double system_share;
    double psi_cpu, psi_io, psi_memory;

    /* storage and network */
    double read_asked, read_storage; /* bytes/s of the makers together */
    double hit_ratio;                /* 1 - storage / asked; NaN where little was read */
    double disk_read, disk_reads, disk_await, disk_busy, disk_request; /* request: bytes */
    double refaults, major_faults;
    double net_received, net_loopback;
    double data_bytes; /* estimate of the data set's size: samples x bytes read a sample */

    /* memory */
    double shm_size, shm_used_most,
        shm_needed; /* needed: (workers x prefetch + workers) x batch_bytes */
    double memory_available_least, rss_all;

    /* epochs */
    double epochs;        /* ends of epochs seen */
    double epoch_start;   /* seconds from iter() to the first batch, mean, later epochs than the first */
    double respawn;       /* of that, starting workers */
    double epoch_seconds; /* mean */
    double first_epoch_stall_share, later_epochs_stall_share;

    /* GPU */
    double gpu_busy, gpu_sm, gpu_tensor, gpu_dram, gpu_pcie_in, gpu_clock, gpu_limited, gpu_watts;
    double gpu_memory_peak_share; /* torch's peak of the device's memory */
    double copy_bytes;            /* host to device, a step */
    double copy_alone;            /* seconds for these at the speed of the fastest copy: `copy` also holds the time that the
                                     host waits for the GPU to come to them */
    double copies_pageable_share, copies_blocking_share;
    double amp, tf32;        /* 1, 0 or unknown */
    double gpu_capability;   /* 9.0 */
    char sync_where[256];    /* the place that costs most */
    double sync_where_share; /* of the step */

    /* outliers: steps far longer than their neighbours for a reason other than the loader */
    double outlier_share;  /* of the time, beyond what ordinary steps would have taken */
    double outlier_period; /* steps; NaN: no period */
    double outlier_save, outlier_gc, outlier_eval; /* of the outliers' excess, by cause */

    /* ranks */
    struct dr_rank_facts *ranks;
    uint32_t rank_count;

    double
        overhead_share; /* of the watch, of the run's CPU time in watched processes and of the parent */
    void *memory;
};

/* The facts of the training process with this rank; rank -1: the one that trains most. Of a run with too
 * few steps to measure, all that steps tell is unknown, and the machine's numbers are of the whole run.
 * Fails where no such process was seen, with a sentence that says what was missing. */
int dr_facts_of(struct dr_facts *out, const struct dr_run *run, int rank, struct stoker_error *err);
void dr_facts_free(struct dr_facts *facts);

#endif
