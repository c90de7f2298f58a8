/* simulate.h - what a loader would do with other settings: replay of measured batch and step times
 *
 * torch's loader: batch i goes to worker i mod W; each worker has at most `prefetch` batches asked for;
 * a new index goes out when a batch is taken; batches are taken in order, or as they come. Stoker's:
 * whoever is free makes the next sample, so a batch takes 1/W of its time on W workers. CPUs are shared
 * by processor sharing: workers that want more CPU than there is slow one another down (and the training
 * process).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SIMULATE_H
#define ST_DOCTOR_SIMULATE_H

#include <stdbool.h>
#include <stdint.h>

/* What was measured; times in seconds, as they would be on a CPU of one's own (run-queue waits taken
 * out). */
struct dr_trace {
    const double *wall; /* of each batch in its maker */
    const double *cpu;  /* of that, on the CPU */
    uint32_t batches;
    double queued_share; /* of `wall` that is waiting for a CPU, and is taken out first; 0 */
    const double *step;  /* between two calls of next() */
    const struct dr_step *step_of; /* where `step` is NULL: seconds - wait of these (facts.h) */
    uint32_t steps;
    double step_queued;     /* of a step, waiting for a CPU; taken out as well; 0 */
    double step_cpu;        /* CPU seconds of the training process in such a step */
    double hand_over;       /* seconds of next() itself with a batch ready: queue, unpickling, pinning if
                               inline */
    double pin;             /* seconds a batch in the pinning thread; 0: none */
    double put; /* CPU seconds a batch in a worker process to hand it over, not in `wall`: a batch that
                   is made in the training thread does without */
    double start_worker;    /* seconds to start one worker */
    uint32_t epoch_batches; /* 0: one long epoch */
    double all_threads;     /* CPU time of all threads of a maker for each second of `cpu`, which is of the
                               thread that makes the batch; below 1: there are no others */
};

struct dr_plan {
    uint32_t workers;  /* 0: in the training thread */
    uint32_t prefetch; /* batches a worker; with shared_samples, in all */
    bool in_order, persistent;
    bool shared_samples; /* Stoker: whoever is free makes the next sample */
    double cpus;         /* that all of this may use */
    double wall_scale;   /* stage what-ifs: factor on the waiting part of a batch's time; 1 */
    double cpu_scale;    /* and on its CPU part; 1 */
    double step_scale;   /* a faster GPU: factor on the step; 1 */
};

/* low <= mid <= high; NaN: unknown. */
struct dr_range {
    double low, mid, high;
};

struct dr_outcome {
    struct dr_range
        step; /* seconds a step, all included; the interval is a bootstrap over blocks of batches */
    double wait_share; /* of it, in next() */
    double readiness;
    double cpus; /* used */
};

void dr_simulate(struct dr_outcome *out, const struct dr_trace *trace, const struct dr_plan *plan);
/* How many times faster `then` is than `now`; never beyond `ceiling` (NaN: none). */
struct dr_range dr_gain(const struct dr_trace *trace, const struct dr_plan *now,
                        const struct dr_plan *then, double ceiling);
/* The smallest number of workers (and the prefetch) whose step time is within 2 % of the best of all
 * that are allowed: at most `most_workers`, and `most_batches` batches in flight (memory, shm). */
struct dr_plan dr_best_plan(const struct dr_trace *trace, const struct dr_plan *now,
                            uint32_t most_workers, uint64_t most_batches);

struct dr_facts;
/* The trace and the plan that the run had. False: too little was measured to simulate. */
bool dr_trace_of(struct dr_trace *trace, struct dr_plan *now, const struct dr_facts *facts);

#endif
