/* trace.c - the input of the simulator from a run: its settings, and its times as on free CPUs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/facts.h"
#include "doctor/model/simulate.h"

#include <string.h>

enum { LEAST = 8 };

/* Assumptions for what a run without workers cannot show: seconds to receive a tensor, bytes/s into
 * shared memory, seconds to start a worker by fork and by other methods. */
static const double RECEIVE = 1e-4, INTO_SHARED = 2e9, FORK = 0.02, SPAWN = 1;

static const double TORCH_THREADS =
    3; /* of a worker: itself, the feeder of its queue, the one that shares memory */
static const double LEAST_ON_CPU = 0.02; /* below this, the CPU time of other threads is noise */

static double or_else(double value, double otherwise) { return dr_known(value) ? value : otherwise; }

/* The time of next() with a ready batch, but at most the CPU time of next(): the rest is a worker that
 * answers late because it computes, which the replay accounts for. */
static double hand_over_of(const struct dr_facts *facts)
{
    double sum = 0, count = 0;
    for (uint32_t k = 0; k < facts->step_count; k++)
        if (facts->steps[k].flags & DR_NEXT_READY)
            sum += facts->steps[k].wait, count++;
    const double ready = count >= LEAST ? sum / count : INFINITY;
    if (facts->loader.workers && dr_known(facts->main_cpu_in_next))
        return fmin(ready, facts->main_cpu_in_next);
    if (isfinite(ready))
        return ready;
    return RECEIVE * fmax(or_else(facts->loader.tensors, 1), 1);
}

/* What watching costs a step. Without worker processes, most of it is part of making the batch, where it
 * is limited to 1 %. */
static double watch_of(const struct dr_facts *facts)
{
    return facts->loader.workers && !facts->loader.native ? or_else(facts->watch_step, 0) : 0;
}

/* CPU seconds of the training process between two calls of next(), without what its threads do for the
 * loader. */
static double step_cpu_of(const struct dr_facts *facts)
{
    double cpu = or_else(facts->trainer_cpus, 0) * facts->step - or_else(facts->main_cpu_in_next, 0);
    if (!facts->loader.workers) /* part of the batch, not of the step */
        cpu -= or_else(facts->helpers_cpu, 0);
    if (facts->loader.native)
        cpu -= or_else(facts->batch_cpu_mean, 0);
    if (facts->loader.workers)
        cpu -= or_else(facts->pin, 0) + watch_of(facts);
    /* With a GPU, one thread at a time launches kernels, this one or autograd's: what others use then
     * are OpenMP's threads, which spin until they are needed or give up. */
    if (facts->has_gpu && !facts->loader.native)
        cpu = fmin(cpu, facts->step - facts->wait);
    return fmax(cpu, 0);
}

/* CPUs for this training process: without those of other programs, but at least what this run used;
 * ranks share them. */
static double cpus_of(const struct dr_facts *facts)
{
    const struct dr_limits *limits = &facts->limits;
    double cpus = limits->cpus;
    if (dr_known(limits->cpus_affinity)) { /* a quota leaves CPUs to others */
        const double left = limits->cpus_affinity - or_else(facts->cpus_busy_others, 0);
        cpus = fmin(cpus, fmax(left, or_else(facts->cpus_used, 0)));
    }
    if (facts->rank_count > 1)
        cpus /= facts->rank_count;
    return dr_known(cpus) ? fmax(cpus, fmin(limits->cpus, 1)) : NAN;
}

bool dr_trace_of(struct dr_trace *trace, struct dr_plan *now, const struct dr_facts *facts)
{
    const struct dr_settings *loader = &facts->loader;
    memset(trace, 0, sizeof *trace);
    *now = (struct dr_plan){.workers = loader->workers,
                            .prefetch = loader->prefetch ? loader->prefetch : 2,
                            .in_order = loader->in_order,
                            .persistent = loader->persistent || loader->native || !loader->workers,
                            .shared_samples = loader->native,
                            .cpus = cpus_of(facts),
                            .wall_scale = 1,
                            .cpu_scale = 1,
                            .step_scale = 1};
    if (facts->batch_count < LEAST || facts->step_count < LEAST || !facts->batch_seconds ||
        !facts->steps)
        return false;
    trace->wall = facts->batch_seconds;
    trace->cpu = facts->batch_cpu;
    trace->batches = facts->batch_count;
    trace->step_of = facts->steps;
    trace->steps = facts->step_count;
    const double busy = 1 - or_else(facts->worker_idle, 0);
    if (loader->workers && !loader->native && dr_known(facts->worker_run_queue) && busy > 0)
        trace->queued_share = fmin(facts->worker_run_queue / busy, 1);
    if (loader->workers && !loader->native && facts->worker_on_cpu > LEAST_ON_CPU)
        trace->all_threads = or_else(facts->worker_cpus / facts->worker_on_cpu, 1);
    trace->threads_transfer = facts->worker_threads <= TORCH_THREADS;
    trace->step_watch = watch_of(facts);
    trace->step_cpu = step_cpu_of(facts);
    trace->step_queued = fmin(or_else(facts->trainer_run_queue, 0), 1);
    trace->hand_over = hand_over_of(facts);
    trace->pin = loader->pin_memory ? or_else(facts->pin, 0) : 0;
    if (loader->workers)
        trace->put = or_else(facts->stage_cpu[DR_STAGE_PUT], 0);
    else
        trace->put = or_else(loader->batch_bytes, 0) / INTO_SHARED;
    if (dr_above(facts->respawn, 0) && loader->workers)
        trace->start_worker = /* the part outside iter() is in the wait for the first batch */
            fmax(facts->respawn, or_else(facts->epoch_start - facts->batch_mean, 0)) / loader->workers;
    else
        trace->start_worker =
            !loader->start_method[0] || !strcmp(loader->start_method, "fork") ? FORK : SPAWN;
    trace->epoch_batches = dr_above(loader->batches, 0) ? (uint32_t)fmin(loader->batches, 4e9) : 0;
    return true;
}
