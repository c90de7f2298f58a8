/* simulate.h - simulates a loader with other settings by replaying measured batch and step times
 *
 * torch's loader: batch i goes to worker i mod W; each worker has at most `prefetch` batches requested;
 * a new index is sent when a batch is taken; batches are taken in order, or as they are finished.
 * Stoker's loader: any free thread makes the next sample, so that a batch takes 1/W of its time on W
 * workers. CPUs are modelled by processor sharing: if workers need more CPU time than there is, they
 * slow each other (and the training process) down.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SIMULATE_H
#define ST_DOCTOR_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

/* What was measured; times in seconds, as they would be on a free CPU (without waits in the
 * run queue). */
struct dr_trace {
    const double *wall; /* of each batch in its maker */
    const double *cpu;  /* part of it on the CPU */
    uint32_t batches;
    double queued_share; /* share of `wall` spent waiting for a CPU, which is removed first; 0 */
    const double *step;  /* between two calls of next() */
    const struct dr_step *step_of; /* if `step` is NULL: seconds - wait of these (facts.h) */
    uint32_t steps;
    double step_queued;     /* share of a step spent waiting for a CPU, which is removed too; 0 */
    double step_cpu;        /* CPU seconds of the training process in such a step */
    double hand_over;       /* seconds of next() with a batch ready: queue, unpickling, inline pinning */
    double pin;             /* seconds per batch in the pinning thread; 0: none */
    double put; /* CPU seconds per batch in a worker process to transfer it, not part of `wall`: not
                   needed for a batch made in the training thread */
    double start_worker;    /* seconds to start one worker */
    uint32_t epoch_batches; /* 0: one long epoch */
    double all_threads; /* CPU time of all threads of a maker per second of `cpu`, which is that of the
                           thread that makes the batch; below 1: there are no others */
    bool threads_transfer;  /* the other threads of a maker only transfer batches: without workers there
                               is  nothing for them to do */
    double step_watch;      /* seconds of a step that watching costs, which are removed first; 0 */
};

struct dr_plan {
    uint32_t workers;  /* 0: in the training thread */
    uint32_t prefetch; /* batches per worker; with shared_samples, in total */
    bool in_order, persistent;
    bool shared_samples; /* Stoker: any free thread makes the next sample */
    double cpus;         /* available to the whole run */
    double wall_scale;   /* what-ifs of stages: factor on the waiting part of a batch; 1 */
    double cpu_scale;    /* factor on its CPU part; 1 */
    double step_scale;   /* for a faster GPU: factor on the step; 1 */
    double step_less;    /* seconds of work that a step then lacks, after the factor; 0 */
    bool engine; /* threads of the engine take the place of worker processes: they write into the batch
                    that next() returns, in pinned memory if it is wanted */
};

/* low <= mid <= high; NaN: unknown. */
struct dr_range {
    double low, mid, high;
};

struct dr_outcome {
    struct dr_range
        step; /* seconds per step, everything included; interval by bootstrap over blocks of batches */
    double wait_share; /* share of it in next() */
    double readiness;
    double cpus; /* used */
};

void dr_simulate(struct dr_outcome *out, const struct dr_trace *trace, const struct dr_plan *plan);
/* The speed-up of `then` over `now`; never above `ceiling` (NaN: none). */
struct dr_range dr_gain(const struct dr_trace *trace, const struct dr_plan *now,
                        const struct dr_plan *then, double ceiling);
/* The smallest number of workers (and prefetch) whose step time is within 2 % of the best allowed one:
 * at most `most_workers`, and `most_batches` batches in flight (memory, /dev/shm). */
struct dr_plan dr_best_plan(const struct dr_trace *trace, const struct dr_plan *now,
                            uint32_t most_workers, uint64_t most_batches);

struct dr_facts;
/* The trace and the plan of the run. False: not enough was measured to simulate. */
bool dr_trace_of(struct dr_trace *trace, struct dr_plan *now, const struct dr_facts *facts);
/* The speed-up by Stoker's loader, if samples were made with it (facts->tried), with the uncertainty of
 * that measurement in its interval. */
struct dr_range dr_gain_with_stoker(const struct dr_facts *facts, const struct dr_trace *trace,
                                    const struct dr_plan *now, double ceiling);

#endif
