/* facts.h - a run reduced to the numbers that rules, screens and reports use
 *
 * Everything refers to one training process (with several ranks: the requested one) and to the steps
 * after the warm-up. NaN means unknown: compare with dr_above and dr_below, which are then false. Times
 * are in seconds, shares between 0 and 1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_FACTS_H
#define ST_DOCTOR_FACTS_H

#include "doctor/run/run.h"

enum dr_stage {
    DR_STAGE_READ,
    DR_STAGE_NETWORK,
    DR_STAGE_DECOMPRESS,
    DR_STAGE_DECODE,
    DR_STAGE_TRANSFORM,
    DR_STAGE_COLLATE,
    DR_STAGE_PUT,
    DR_STAGE_OTHER, /* inside __getitem__, but in none of the others */
    DR_STAGES
};
extern const char *const dr_stage_names[DR_STAGES];

/* One step: from one next() of the training loader to the next one. */
struct dr_step {
    uint64_t start_ns;
    double seconds; /* whole */
    double wait;    /* part of it in next() */
    double stall;   /* part of wait in which the GPU was idle (by CUDA events); without a GPU = wait */
    double copy, sync, save, gc, logging, eval, optimizer; /* parts of the rest, as far as observed */
    double sampler; /* part of wait, in which the sampler drew indices */
    uint32_t ready;                         /* batches ready at next(); DR_UNKNOWN */
    uint8_t flags;                          /* DR_NEXT_* */
    uint32_t batch;
};

struct dr_settings {
    char class_name[96], dataset[96], start_method[16], file[512], source[512], transform[256],
        handles[512];
    char failure[512]; /* the exception that next() raised; "": none */
    int line;          /* 0: unknown */
    bool feeder; /* a thread that takes no training steps takes the batches */
    bool native; /* Stoker's engine makes the batches */
    bool stoker; /* Stoker's loader (native or Python workers) */
    bool iterable, pin_memory, persistent, in_order, shuffle;
    uint32_t workers, prefetch; /* prefetch: batches per worker */
    double batch_size, batches, samples, batch_bytes, tensors, objects;
};

struct dr_rank_facts {
    int rank;
    double step, stall_share, wait_share;
    double wait_before_others; /* share of the steps in which this rank was the last */
    double pace; /* seconds per batch of all its makers together while they are at work */
};

/* A function that takes part in making samples: a transform, a decoder and the format it decodes, ... */
struct dr_operator {
    char name[64];
    enum dr_stage stage;
    double calls, seconds; /* per sample, without other operators inside */
    double share;          /* of the time of a batch */
};
enum { DR_OPERATORS_MOST = 64 };

/* Samples of the run that were made once more at its end, with --try-stoker. */
struct dr_tried {
    const char *plan; /* how Stoker's loader makes them: "engine", "rows", "python"; NULL: not known */
    const char *why;  /* why not in the engine; NULL */
    const char *error; /* why nothing was measured; NULL */
    bool on_gpu;       /* with a GPU, that loader would make the batches there, which was not tried */
    double samples;    /* made in both ways; 0: none */
    double workers;    /* of that loader */
    double torch_cpu, stoker_cpu; /* CPU seconds per sample */
    double share, share_low, share_high; /* stoker_cpu / torch_cpu, with its 95 % interval */
};

struct dr_facts {
    const struct dr_run *run;
    const struct dr_process *trainer;
    struct dr_limits limits;
    struct dr_settings loader; /* of the training loader */
    bool has_gpu; /* the stall is measured by CUDA events; otherwise it is the wait of the training
                     thread */
    double steps_seen, steps_lost; /* calls of next() that were recorded, and those that were not:
                                      overwritten, or after watching had ended early */
    const char *watch_error; /* why watching the training process ended early; NULL */
    double confidence_steps; /* steps measured after the warm-up; if the run is too short: steps seen */

    /* steps: measured ones only, in order */
    const struct dr_step *steps;
    uint32_t step_count, warm_up_steps;
    double step, step_p50, step_p99;          /* mean, percentiles */
    double stall, stall_share;                /* mean seconds; share of the step */
    double stall_share_low, stall_share_high; /* 95 % interval, by bootstrap over blocks of steps */
    /* part of stall_share in calls that did not find their batch ready, and the lower end of its
     * interval; the rest is the transfer of ready batches */
    double late_share, late_share_low;
    double wait, wait_share;
    double warm_up_stall_share;   /* during the warm-up: a slow start */
    double compute;               /* step - stall: the step with a perfect loader */
    double own_fast, own_least;   /* time of a step outside next(): first percentile, minimum */
    double copy, sync, optimizer; /* mean seconds per step */
    double save, gc, logging, eval; /* the same: work besides model and data */
    double save_steps, gc_steps, logging_steps, eval_steps; /* share of the steps that contain it */
    double sampler;               /* mean seconds per step, part of wait: the sampler */
    double watch_step;            /* seconds per step that watching costs the training process, by its
                                     own account */
    double samples_per_second;
    double accumulation; /* calls of next() per step of the optimizer; NaN: no optimizer was seen */

    /* the queue */
    double readiness; /* share of calls that found their batch ready */
    double ready_mean;
    double behind_share; /* calls that waited while later batches were ready */
    double behind_wait;  /* share of the time in next() spent in such calls */
    double wait_period; /* steps between long waits if they are periodic (lag of the autocorrelation);
                           NaN */

    /* making batches: over all makers of the training loader */
    const double *batch_seconds,
        *batch_cpu; /* wall and CPU seconds of each measured batch, in its maker */
    uint32_t batch_count;
    double batch_mean, batch_cv, batch_p99, batch_cpu_mean;
    double stage[DR_STAGES], stage_cpu[DR_STAGES]; /* mean seconds per batch */
    double stage_share[DR_STAGES];                 /* share of batch_mean */
    double discarded[DR_STAGES]; /* part of `stage` spent on elements that the samples do not contain in
                                    the end */
    double reduced; /* part of the transforms spent on making images smaller */
    double opens_per_sample, bytes_per_open;
    double slowest_share;    /* mean of (time of the slowest sample / time of the batch) */
    double pin, pin_bytes;   /* seconds and bytes per batch */
    double put;              /* = stage[DR_STAGE_PUT] */
    double shared_cpu;       /* part of batch_cpu_mean for allocating shared memory in workers */
    double opening, opening_cpu; /* seconds per batch for opening archives and databases */
    double openings_per_sample;
    double helpers_cpu;      /* CPU time of other threads of the training process while it makes a batch:
                                they work, or spin between two pieces of work */
    double batch_cpu_fast, batch_cpu_least; /* CPU time of a batch: first percentile, minimum */
    double main_cpu_in_next; /* CPU seconds per step of the training thread inside next(): unpickling, or
                                loading with 0 workers */

    /* makers, observed from outside: worker processes (or the trainer without workers) */
    double workers_seen;
    double worker_on_cpu, worker_run_queue, worker_blocked,
        worker_disk;    /* shares of a worker's time, of its main thread; blocked: while it made a batch,
                           without idle time */
    double worker_lock, worker_socket; /* shares of its time that its main thread waits for a lock of a
                                          file or between processes; for a socket */
    double workers_at_work; /* of an iterable dataset: share of the workers that make batches, mean over
                               the only epoch */
    double workers_alike;  /* workers whose first samples are those of another one */
    double workers_random; /* workers whose random numbers begin as those of another one */
    double worker_children;            /* processes that workers started: how many, on average */
    double worker_idle; /* share of time in which a worker had no batch to make */
    double worker_threads, worker_busy_threads,
        worker_cpus;              /* threads per worker; busy ones; CPUs used per worker, all threads */
    double worker_system_share;   /* kernel time, share of its CPU time */
    double worker_private_growth; /* bytes/s of all workers, by a straight line through the samples of
                                     some */
    double worker_private, worker_rss; /* per worker, mean */
    char storm_names[128]; /* names of the most frequent threads */
    char random_at[160];   /* where the generator of workers_random is */

    /* CPUs */
    double cpus_used, cpus_busy_others; /* used by the run; by others, and by the host, of the CPUs that
                                           the run may use */
    double cpus_busy_elsewhere;         /* busy ones among those that it may not use */
    double cpus_stolen;                 /* withheld by the host, of all CPUs of this machine */
    double throttled_share;
    double trainer_on_cpu, trainer_run_queue; /* of the training thread */
    double trainer_cpus;                      /* all threads of the training process */
    double system_share;
    double psi_cpu, psi_io, psi_memory;

    /* storage and network */
    double read_asked, read_storage; /* bytes/s of all makers */
    double hit_ratio;                /* 1 - storage / asked; NaN if little was read */
    double disk_read, disk_reads, disk_await, disk_busy, disk_request; /* request: bytes */
    double refaults, major_faults;
    double net_received, net_loopback;
    double nfs_read, nfs_reads, nfs_rtt, nfs_time; /* of all NFS mounts; unknown without one */
    double data_bytes; /* estimated size of the dataset: samples x bytes read per sample */

    /* memory */
    double shm_size, shm_used_most,
        shm_needed; /* needed: (workers x prefetch + workers) x batch_bytes */
    double memory_available_least, rss_all;
    double swapped; /* bytes of the run's processes that are swapped out, mean */

    /* epochs */
    double epochs;        /* completed epochs */
    double epoch_start;   /* mean seconds from iter() to the first batch, without the first epoch */
    double respawn;       /* part of it for starting workers */
    double epoch_seconds; /* mean of the same epochs, or of the only one */
    double first_epoch_stall_share, later_epochs_stall_share;

    /* GPU */
    double gpu_busy, gpu_sm, gpu_tensor, gpu_dram, gpu_pcie_in, gpu_clock, gpu_limited, gpu_watts;
    double gpu_memory_peak_share; /* peak of torch's device memory */
    double copy_bytes;            /* host to device, per step */
    double copy_alone; /* seconds for these bytes at the speed of the fastest copy: `copy` also contains
                          the time that the host waits for earlier work of the GPU */
    double copies_pageable_share, copies_blocking_share;
    double amp, tf32;        /* 1, 0 or unknown */
    double gpu_capability;   /* 9.0 */
    char sync_where[256];    /* the costliest place */
    double sync_where_share; /* of the step */

    /* outliers: steps far longer than the others, for a reason other than the loader */
    double outlier_share;  /* share of the time, beyond what ordinary steps would have taken */
    double outlier_period; /* steps; NaN: no period */
    double outlier_save, outlier_gc, outlier_eval; /* share of that excess, by cause */

    /* ranks */
    struct dr_rank_facts *ranks;
    uint32_t rank_count;
    double rank_skew; /* share of the time in which the rank that gets its batch last waits longer than
                         the others do on average: whichever rank that is, all of them lose it */

    struct dr_operator *operators; /* the costliest first; over the whole run */
    uint32_t operator_count;
    double sample_seconds; /* of which they are parts: of a batch, per sample */
    struct dr_tried tried;
    double
        overhead_share; /* of watching: how much longer the run takes at most, as a share of its time */
    void *memory;
};

/* The facts of the training process with this rank; -1: the one with the most steps. If there are too
 * few steps to measure, all facts about steps are unknown, and those about the machine cover the whole
 * run. Fails if no such process was seen, with a sentence that tells what was missing. */
int dr_facts_of(struct dr_facts *out, const struct dr_run *run, int rank, struct stoker_error *err);
void dr_facts_free(struct dr_facts *facts);

#endif
