/* rule_facts.h - facts of runs that never ran, for the tests of the rules
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_DOCTOR_RULE_FACTS_H
#define TESTS_DOCTOR_RULE_FACTS_H

#include "doctor/report/numbers.h"
#include "doctor/rule/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCHES = 400 };
static double wall[BATCHES], on_cpu[BATCHES];
static struct dr_step steps[BATCHES];

/* Nothing is known at all. */
static inline void unknown_facts(struct dr_facts *f)
{
    memset(f, 0, sizeof *f);
    for (const struct dr_number *n = dr_fact_numbers; n->name; n++)
        memcpy((char *)f + n->offset, &(double){NAN}, sizeof(double));
    for (const struct dr_number *n = dr_limit_numbers; n->name; n++)
        memcpy((char *)&f->limits + n->offset, &(double){NAN}, sizeof(double));
    for (int i = 0; i < DR_STAGES; i++)
        f->stage[i] = f->stage_cpu[i] = f->stage_share[i] = f->discarded[i] = NAN;
    struct dr_settings *l = &f->loader;
    l->batch_size = l->batches = l->samples = l->batch_bytes = l->tensors = l->objects = NAN;
}

static inline void set_stage(struct dr_facts *f, enum dr_stage stage, double share, double cpu_share)
{
    f->stage_share[stage] = share;
    f->stage[stage] = share * f->batch_mean;
    f->stage_cpu[stage] = share * f->batch_mean * cpu_share;
}

/* A run whose batches take `batch` seconds in one of `workers`, `cpu` of that on a CPU, and whose model
 * computes for `compute` seconds. */
static inline void run_of(struct dr_facts *f, uint32_t workers, double batch, double cpu, double compute)
{
    f->loader.workers = workers;
    f->loader.prefetch = workers ? 2 : 0;
    f->batch_mean = f->batch_p99 = batch;
    f->batch_cv = 0.05;
    f->batch_cpu_mean = batch * cpu;
    f->compute = compute;
    f->step = f->step_p50 = f->step_p99 = workers ? fmax(compute, batch / workers) : compute + batch;
    f->stall = f->wait = f->step - compute;
    f->stall_share = f->wait_share = f->stall / f->step;
    f->stall_share_low = fmax(0, f->stall_share - 0.02);
    f->stall_share_high = f->stall_share + 0.02;
    f->readiness = f->stall > 0 ? 0 : 1;
    for (uint32_t i = 0; i < BATCHES; i++) {
        wall[i] = batch * (1 + 0.05 * ((int)(i % 3) - 1));
        on_cpu[i] = wall[i] * cpu;
        steps[i] = (struct dr_step){.start_ns = (uint64_t)(1e9 * f->step * i),
                                    .seconds = f->step,
                                    .wait = f->wait,
                                    .stall = f->stall,
                                    .ready = f->stall > 0 ? 0 : 3,
                                    .flags = DR_NEXT_TRAINING,
                                    .batch = i};
    }
    f->main_cpu_in_next = workers ? 0.0005 : batch * cpu;
    f->trainer_cpus = f->trainer_on_cpu = (0.8 * compute + f->main_cpu_in_next) / f->step;
    f->worker_on_cpu = cpu * (f->stall > 0 ? 1 : batch / workers / compute);
    f->worker_idle = f->stall > 0 ? 0 : 1 - batch / workers / compute;
    f->cpus_used = workers * f->worker_on_cpu + f->trainer_cpus;
    set_stage(f, DR_STAGE_READ, 0.1, cpu);
    set_stage(f, DR_STAGE_NETWORK, 0, 1);
    set_stage(f, DR_STAGE_DECOMPRESS, 0, 1);
    set_stage(f, DR_STAGE_DECODE, 0.35, cpu);
    set_stage(f, DR_STAGE_TRANSFORM, 0.35, cpu);
    set_stage(f, DR_STAGE_COLLATE, 0.1, cpu);
    set_stage(f, DR_STAGE_PUT, 0.02, cpu);
    set_stage(f, DR_STAGE_OTHER, 0.08, cpu);
}

/* Compute-bound, with everything measured: 4 workers with time to spare on 8 CPUs, and a GPU. */
static inline void healthy(struct dr_facts *f)
{
    unknown_facts(f);
    f->steps = steps;
    f->step_count = f->batch_count = BATCHES;
    f->confidence_steps = BATCHES;
    f->batch_seconds = wall;
    f->batch_cpu = on_cpu;
    f->has_gpu = true;
    f->limits.cpus = f->limits.cpus_affinity = f->limits.cpus_machine = 8;
    f->limits.memory = f->limits.memory_machine = 64e9;
    f->limits.shm = f->shm_size = 8e9;
    f->limits.nodes = 1;
    f->limits.gpu_node = f->limits.cpu_node = 0;
    f->limits.pcie_limit = 25e9;
    snprintf(f->loader.class_name, sizeof f->loader.class_name, "DataLoader");
    snprintf(f->loader.start_method, sizeof f->loader.start_method, "fork");
    f->loader.pin_memory = f->loader.in_order = f->loader.persistent = true;
    f->loader.batch_size = 64;
    f->loader.batches = 200;
    f->loader.samples = 12800;
    f->loader.batch_bytes = 38e6;
    f->loader.tensors = 2;
    f->loader.objects = 12800;
    run_of(f, 4, 0.2, 0.97, 0.1);
    f->warm_up_stall_share = 0.1;
    f->copy = 0.001, f->sync = 0.001, f->optimizer = 0.005;
    f->save = f->gc = f->logging = f->eval = f->sampler = 0;
    f->save_steps = f->gc_steps = f->logging_steps = f->eval_steps = 0;
    f->behind_share = f->behind_wait = 0;
    f->slowest_share = 0.03;
    f->opens_per_sample = 0, f->bytes_per_open = NAN;
    f->pin = 0.002, f->pin_bytes = 38e6, f->put = 0.004;
    f->workers_seen = 4;
    f->worker_run_queue = 0.01, f->worker_blocked = 0.02, f->worker_disk = 0;
    f->workers_at_work = 1;
    f->workers_alike = f->workers_random = f->opening = f->opening_cpu = f->openings_per_sample = 0;
    f->swapped = f->major_faults = 0;
    f->worker_lock = f->worker_socket = f->worker_children = f->helpers_cpu = 0;
    f->steps_seen = BATCHES + 10, f->steps_lost = 0;
    f->worker_threads = 3, f->worker_busy_threads = 1.5, f->worker_cpus = 0.9,
    f->worker_system_share = 0.05;
    f->worker_private_growth = 0, f->worker_private = 200e6;
    f->cpus_busy_others = 0.1, f->throttled_share = 0, f->trainer_run_queue = 0.01;
    f->psi_cpu = f->psi_io = f->psi_memory = 0;
    f->read_asked = 60e6, f->read_storage = 0, f->hit_ratio = 1, f->disk_read = 0, f->disk_reads = 0;
    f->disk_await = 0.0002, f->disk_busy = 0.01, f->refaults = 0, f->net_received = 1000,
    f->net_loopback = 0;
    f->data_bytes = 1.5e9, f->memory_available_least = 40e9;
    f->shm_used_most = 0.4e9, f->shm_needed = 0.5e9;
    f->epochs = 2, f->epoch_start = 0.25, f->respawn = 0.02, f->epoch_seconds = 20;
    f->first_epoch_stall_share = 0.01, f->later_epochs_stall_share = 0.005;
    f->gpu_busy = 0.98, f->gpu_sm = 0.85, f->gpu_tensor = 0.3, f->gpu_dram = 0.4, f->gpu_pcie_in = 0.4e9;
    f->gpu_clock = 0.97, f->gpu_limited = 0, f->gpu_watts = 500, f->gpu_memory_peak_share = 0.8;
    f->copy_bytes = 38e6, f->copies_pageable_share = 0, f->copies_blocking_share = 0;
    f->amp = 1, f->tf32 = 1, f->gpu_capability = 9;
    f->outlier_share = 0.002;
}

static inline bool has(const struct dr_verdict *v, const char *code)
{
    for (uint32_t i = 0; i < v->findings; i++)
        if (!strcmp(v->finding[i].rule->code, code))
            return true;
    return false;
}

static inline const char *first(const struct dr_verdict *v)
{
    return v->findings ? v->finding[0].rule->code : "none";
}

#endif
