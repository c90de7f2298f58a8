/* rule_cases.h - facts of runs that never ran: for each rule, some of which it is the first cause, and
 * some that just miss it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TESTS_DOCTOR_RULE_CASES_H
#define TESTS_DOCTOR_RULE_CASES_H

#include "rule_facts.h"

static struct dr_rank_facts ranks[4];

/* ---- cases --------------------------------------------------------------------------------------- */

/* Waits of which making batches is not the reason: this share of the step. */
static void starve(struct dr_facts *f, double share)
{
    f->step = f->compute / (1 - share);
    f->stall = f->wait = f->step - f->compute;
    f->stall_share = f->wait_share = share;
    f->stall_share_low = share - 0.02, f->stall_share_high = share + 0.02;
    for (uint32_t i = 0; i < BATCHES; i++)
        steps[i].seconds = f->step, steps[i].wait = steps[i].stall = f->stall;
}

/* Every tenth batch takes five times as long, at the same mean. */
static void vary(struct dr_facts *f)
{
    for (uint32_t i = 0; i < BATCHES; i++) {
        wall[i] = f->batch_mean / 1.4 * (i % 10 == 7 ? 5 : 1);
        on_cpu[i] = 0.97 * wall[i];
    }
    f->batch_cv = 0.86;
    f->batch_p99 = f->batch_mean * 3.6;
    starve(f, 0.25);
}

static void spread_ranks(struct dr_facts *f, double worst)
{
    for (int i = 0; i < 4; i++)
        ranks[i] = (struct dr_rank_facts){.rank = i,
                                          .step = f->step,
                                          .stall_share = i == 2 ? worst : 0.04,
                                          .wait_share = 0.04,
                                          .wait_before_others = NAN,
                                          .pace = f->step * (i == 2 ? 1 : 0.4)};
    f->ranks = ranks;
    f->rank_count = 4;
    f->rank_skew = worst - 0.04;
}

static void fires_ST202(struct dr_facts *f) { run_of(f, 0, 0.2, 0.97, 0.1); }
static void misses_ST202(struct dr_facts *f) { run_of(f, 4, 0.2, 0.97, 0.1); }
static void fires_ST203(struct dr_facts *f) { run_of(f, 2, 0.4, 0.97, 0.1); }
static void misses_ST203(struct dr_facts *f) { f->limits.cpus = f->limits.cpus_machine = 2; }
static void fires_ST204(struct dr_facts *f)
{
    run_of(f, 16, 3.2, 0.25, 0.1);
    f->worker_run_queue = 0.7;
    f->cpus_used = 8;
    set_stage(f, DR_STAGE_DECODE, 0.45, 1);
}
static void misses_ST204(struct dr_facts *f) { f->worker_run_queue = 0.03; }
static void fires_ST205(struct dr_facts *f)
{
    run_of(f, 8, 1.6, 0.5, 0.1);
    f->limits.cpus_quota = f->limits.cpus = 4;
    f->throttled_share = 0.3;
    f->worker_run_queue = 0.4;
}
static void misses_ST205(struct dr_facts *f) { f->throttled_share = 0.001; }
static void fires_ST206(struct dr_facts *f)
{
    run_of(f, 8, 2, 0.6, 0.1);
    f->worker_threads = 17;
    f->worker_busy_threads = 9;
    f->worker_cpus = 1.4;
    f->worker_run_queue = 0.3;
    f->worker_system_share = 0.3;
    f->workers_seen = 8;
}
static void misses_ST206(struct dr_facts *f) { f->worker_busy_threads = 2; }
static void fires_ST207(struct dr_facts *f)
{
    run_of(f, 4, 1, 0.2, 0.1);
    set_stage(f, DR_STAGE_READ, 0.8, 0.02);
    f->disk_busy = 0.98;
    f->disk_await = 0.02;
    f->hit_ratio = 0.1;
}
static void misses_ST207(struct dr_facts *f)
{
    set_stage(f, DR_STAGE_READ, 0.2, 0.02);
    f->disk_busy = 0.3;
}
static void fires_ST208(struct dr_facts *f)
{
    run_of(f, 4, 1, 0.2, 0.1);
    set_stage(f, DR_STAGE_READ, 0.8, 0.02);
    f->opens_per_sample = 1;
    f->bytes_per_open = 20e3;
}
static void misses_ST208(struct dr_facts *f) { f->bytes_per_open = 4e6; }
static void fires_ST209(struct dr_facts *f)
{
    run_of(f, 4, 1, 0.1, 0.1);
    set_stage(f, DR_STAGE_NETWORK, 0.9, 0.02);
}
static void misses_ST209(struct dr_facts *f) { set_stage(f, DR_STAGE_NETWORK, 0.2, 0.02); }
static void fires_ST210(struct dr_facts *f)
{
    run_of(f, 4, 1, 0.2, 0.1);
    set_stage(f, DR_STAGE_READ, 0.8, 0.02);
    f->refaults = 5000;
    f->hit_ratio = 0.2;
    f->data_bytes = 200e9;
}
static void misses_ST210(struct dr_facts *f) { f->data_bytes = 2e9; }
static void fires_ST211(struct dr_facts *f)
{
    run_of(f, 2, 0.4, 0.97, 0.1);
    f->first_epoch_stall_share = 0.6;
    f->later_epochs_stall_share = 0.01;
    f->stall_share = 0.3;
}
static void misses_ST211(struct dr_facts *f) { f->later_epochs_stall_share = 0.2; }
static void fires_ST212(struct dr_facts *f)
{
    run_of(f, 4, 0.36, 0.97, 0.1);
    vary(f);
    f->behind_share = 0.2, f->behind_wait = 0.8;
}
static void misses_ST212(struct dr_facts *f) { f->batch_cv = 0.2; }
static void fires_ST214(struct dr_facts *f)
{
    f->loader.persistent = false;
    f->respawn = 4;
    f->epoch_start = 4.2;
}
static void misses_ST214(struct dr_facts *f) { f->respawn = 0.5, f->epoch_start = 0.7; }
static void fires_ST215(struct dr_facts *f)
{
    starve(f, 0.2);
    f->main_cpu_in_next = 0.018;
}
static void misses_ST215(struct dr_facts *f) { f->main_cpu_in_next = 0.001; }
static void fires_ST216(struct dr_facts *f)
{
    f->copies_pageable_share = 1;
    f->copy = 0.02;
}
static void misses_ST216(struct dr_facts *f) { f->copies_pageable_share = 0.1; }
static void fires_ST217(struct dr_facts *f)
{
    f->gpu_pcie_in = 20e9;
    f->copy = 0.03;
}
static void misses_ST217(struct dr_facts *f) { f->gpu_pcie_in = 5e9; }
static void fires_ST218(struct dr_facts *f)
{
    f->shm_size = 64e6;
    f->shm_used_most = 60e6;
}
static void misses_ST218(struct dr_facts *f) { f->shm_size = 2e9; }
static void fires_ST219(struct dr_facts *f)
{
    f->worker_private_growth = 20e6;
    f->loader.objects = 5e6;
}
static void misses_ST219(struct dr_facts *f) { f->loader.objects = 500; }
static void fires_ST220(struct dr_facts *f)
{
    run_of(f, 4, 0.0005, 0.97, 0.002);
    starve(f, 0.5);
    f->main_cpu_in_next = 0.002;
    f->pin = 0.00005;
    f->loader.batch_bytes = f->pin_bytes = 50e3;
}
static void misses_ST220(struct dr_facts *f) { run_of(f, 4, 0.2, 0.97, 0.1); }
static void fires_ST221(struct dr_facts *f)
{
    snprintf(f->loader.handles, sizeof f->loader.handles, "an open h5py.File at .file");
}
static void misses_ST221(struct dr_facts *f)
{
    snprintf(f->loader.start_method, sizeof f->loader.start_method, "spawn");
}
static void fires_ST222(struct dr_facts *f)
{
    starve(f, 0.15);
    f->limits.nodes = 2;
    f->limits.gpu_node = 1;
}
static void misses_ST222(struct dr_facts *f) { f->limits.gpu_node = 0; }
static void fires_ST223(struct dr_facts *f)
{
    run_of(f, 6, 1.2, 0.5, 0.1);
    f->cpus_busy_others = 5;
    f->cpus_used = 4;
    f->worker_run_queue = 0.45;
}
static void misses_ST223(struct dr_facts *f) { f->cpus_busy_others = 0.5; }
static void fires_ST224(struct dr_facts *f)
{
    run_of(f, 2, 0.2, 0.97, 0.1);
    starve(f, 0.3);
    f->has_gpu = false;
    f->trainer_cpus = 1.02;
    f->trainer_on_cpu = 0.4;
}
static void misses_ST224(struct dr_facts *f) { f->trainer_cpus = 3; }
static void fires_ST225(struct dr_facts *f)
{
    run_of(f, 2, 0.3, 0.97, 0.1);
    spread_ranks(f, 0.5);
}
static void misses_ST225(struct dr_facts *f) { spread_ranks(f, 0.05); }
static void fires_ST226(struct dr_facts *f)
{
    run_of(f, 8, 1.6, 0.97, 0.1);
    set_stage(f, DR_STAGE_TRANSFORM, 0.7, 1);
}
static void misses_ST226(struct dr_facts *f) { set_stage(f, DR_STAGE_TRANSFORM, 0.4, 1); }
static void fires_ST227(struct dr_facts *f)
{
    run_of(f, 8, 1.6, 0.97, 0.1);
    set_stage(f, DR_STAGE_DECODE, 0.7, 1);
}
static void misses_ST227(struct dr_facts *f) { set_stage(f, DR_STAGE_DECODE, 0.4, 1); }
static void fires_ST228(struct dr_facts *f)
{
    run_of(f, 8, 1.6, 0.97, 0.1);
    set_stage(f, DR_STAGE_DECOMPRESS, 0.5, 1);
}
static void misses_ST228(struct dr_facts *f) { set_stage(f, DR_STAGE_DECOMPRESS, 0.1, 1); }
static void fires_ST229(struct dr_facts *f)
{
    run_of(f, 8, 1.6, 0.97, 0.1);
    set_stage(f, DR_STAGE_COLLATE, 0.7, 1);
}
static void misses_ST229(struct dr_facts *f) { set_stage(f, DR_STAGE_COLLATE, 0.4, 1); }
static void fires_ST230(struct dr_facts *f)
{
    starve(f, 0.2);
    f->main_cpu_in_next = 0.024;
    f->sampler = 0.022;
}
static void misses_ST230(struct dr_facts *f) { f->sampler = 0.002; }
static void fires_ST231(struct dr_facts *f)
{
    run_of(f, 4, 1, 0.2, 0.1);
    f->worker_lock = 0.7;
}
static void misses_ST231(struct dr_facts *f) { f->worker_lock = 0.02; }
static void fires_ST232(struct dr_facts *f)
{
    run_of(f, 4, 0.7, 0.2, 0.1);
    f->loader.iterable = true;
    f->workers_at_work = 0.5;
}
static void misses_ST232(struct dr_facts *f) { f->workers_at_work = 0.96; }
static void fires_ST233(struct dr_facts *f)
{
    f->loader.iterable = true;
    f->workers_alike = 4;
}
static void misses_ST233(struct dr_facts *f) { f->workers_alike = 0; }
static void fires_ST234(struct dr_facts *f)
{
    f->workers_random = 4;
    snprintf(f->random_at, sizeof f->random_at, " dataset.rng");
}
static void misses_ST234(struct dr_facts *f) { f->workers_random = 0; }
static void fires_ST235(struct dr_facts *f)
{
    run_of(f, 8, 1.6, 0.97, 0.1);
    f->opening = 1.4, f->opening_cpu = 1.35, f->openings_per_sample = 1;
}
static void misses_ST235(struct dr_facts *f) { f->openings_per_sample = 0.01; }
static void fires_ST236(struct dr_facts *f)
{
    run_of(f, 4, 1, 0.2, 0.1);
    f->swapped = 2e9, f->major_faults = 4000, f->psi_memory = 0.4;
}
static void misses_ST236(struct dr_facts *f) { f->major_faults = 2; }
static void fires_ST301(struct dr_facts *f)
{
    f->gpu_sm = 0.2;
    f->trainer_on_cpu = 0.4, f->trainer_cpus = 0.99;
}
static void misses_ST301(struct dr_facts *f) { f->trainer_cpus = 0.5; }
static void fires_ST302(struct dr_facts *f)
{
    f->sync = 0.04;
    for (uint32_t i = 0; i < BATCHES; i++)
        steps[i].sync = f->sync;
    f->gpu_busy = 0.7;
}
static void misses_ST302(struct dr_facts *f) { f->gpu_busy = 0.97; }
static void fires_ST303(struct dr_facts *f)
{
    f->gpu_sm = 0.4;
    f->gpu_memory_peak_share = 0.2;
}
static void misses_ST303(struct dr_facts *f) { f->gpu_memory_peak_share = 0.7; }
static void fires_ST304(struct dr_facts *f)
{
    f->amp = f->tf32 = 0;
    f->gpu_tensor = 0.001;
}
static void misses_ST304(struct dr_facts *f) { f->amp = 1; }
static void fires_ST305(struct dr_facts *f)
{
    f->gpu_limited = 0.9;
    f->gpu_clock = 0.6;
}
static void misses_ST305(struct dr_facts *f) { f->gpu_clock = 0.95; }
static void fires_ST306(struct dr_facts *f)
{
    f->outlier_share = 0.2;
    f->outlier_save = 0.9;
}
static void misses_ST306(struct dr_facts *f) { f->outlier_share = 0.02; }

/* A cost of each step, on a run whose steps the host limits. */
static void fires_ST307(struct dr_facts *f)
{
    f->gpu_busy = 0.3;
    f->gc = 0.06, f->gc_steps = 1;
}
static void misses_ST307(struct dr_facts *f) { f->gc_steps = 0.1; }
static void fires_ST308(struct dr_facts *f)
{
    f->gpu_busy = 0.3;
    f->save = 0.06, f->save_steps = 0.5;
}
static void misses_ST308(struct dr_facts *f) { f->save = 0.004; }
static void fires_ST309(struct dr_facts *f)
{
    f->gpu_busy = 0.3;
    f->eval = 0.06, f->eval_steps = 1;
}
static void misses_ST309(struct dr_facts *f) { f->eval = 0.004; }
static void fires_ST310(struct dr_facts *f)
{
    f->gpu_busy = 0.3;
    f->logging = 0.06, f->logging_steps = 1;
}
static void misses_ST310(struct dr_facts *f) { f->gpu_busy = 0.99; }

/* `fires`: changes to a healthy run that make the code the first finding; `misses`: what then makes it
 * none. ST213 is never first, and ST201 and ST901 have tests of their own. */
static const struct {
    const char *code;
    void (*fires)(struct dr_facts *), (*misses)(struct dr_facts *);
} cases[] = {
#define CASE(code)                                                                                      \
    {                                                                                                   \
#code, fires_##code, misses_##code                                                              \
    }
    CASE(ST202), CASE(ST203), CASE(ST204), CASE(ST205), CASE(ST206), CASE(ST207), CASE(ST208),
    CASE(ST209), CASE(ST210), CASE(ST211), CASE(ST212), CASE(ST214), CASE(ST215), CASE(ST216),
    CASE(ST217), CASE(ST218), CASE(ST219), CASE(ST220), CASE(ST221), CASE(ST222), CASE(ST223),
    CASE(ST224), CASE(ST225), CASE(ST226), CASE(ST227), CASE(ST228), CASE(ST229), CASE(ST230), CASE(ST231), CASE(ST232),
    CASE(ST233), CASE(ST234), CASE(ST235), CASE(ST236),
    CASE(ST301), CASE(ST302),
    CASE(ST303), CASE(ST304), CASE(ST305), CASE(ST306), CASE(ST307), CASE(ST308), CASE(ST309), CASE(ST310),
#undef CASE
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

#endif
