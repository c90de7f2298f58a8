/* test_rules.c - each rule on facts in which it is the first cause, and on facts that just miss it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "tap.h"

#include "cli/doctor/report.h"
#include "cli/doctor/report/numbers.h"
#include "cli/doctor/rule/judge.h"

#include <string.h>

/* ---- facts --------------------------------------------------------------------------------------- */

enum { BATCHES = 400 };
static double wall[BATCHES], on_cpu[BATCHES];
static struct dr_step steps[BATCHES];
static struct dr_rank_facts ranks[4];

/* Nothing is known at all. */
static void unknown_facts(struct dr_facts *f)
{
    memset(f, 0, sizeof *f);
    for (const struct dr_number *n = dr_fact_numbers; n->name; n++)
        memcpy((char *)f + n->offset, &(double){NAN}, sizeof(double));
    for (const struct dr_number *n = dr_limit_numbers; n->name; n++)
        memcpy((char *)&f->limits + n->offset, &(double){NAN}, sizeof(double));
    for (int i = 0; i < DR_STAGES; i++)
        f->stage[i] = f->stage_cpu[i] = f->stage_share[i] = NAN;
    struct dr_settings *l = &f->loader;
    l->batch_size = l->batches = l->samples = l->batch_bytes = l->tensors = l->objects = NAN;
}

static void set_stage(struct dr_facts *f, enum dr_stage stage, double share, double cpu_share)
{
    f->stage_share[stage] = share;
    f->stage[stage] = share * f->batch_mean;
    f->stage_cpu[stage] = share * f->batch_mean * cpu_share;
}

/* A run whose batches take `batch` seconds in one of `workers`, `cpu` of that on a CPU, and whose model
 * computes for `compute` seconds. */
static void run_of(struct dr_facts *f, uint32_t workers, double batch, double cpu, double compute)
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
static void healthy(struct dr_facts *f)
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
    f->behind_share = f->behind_wait = 0;
    f->slowest_share = 0.03;
    f->opens_per_sample = 0, f->bytes_per_open = NAN;
    f->pin = 0.002, f->pin_bytes = 38e6, f->put = 0.004;
    f->workers_seen = 4;
    f->worker_run_queue = 0.01, f->worker_blocked = 0.02, f->worker_disk = 0;
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
                                          .wait_before_others = NAN};
    f->ranks = ranks;
    f->rank_count = 4;
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
static void fires_ST301(struct dr_facts *f)
{
    f->gpu_sm = 0.2;
    f->trainer_on_cpu = 0.99;
}
static void misses_ST301(struct dr_facts *f) { f->trainer_on_cpu = 0.5; }
static void fires_ST302(struct dr_facts *f)
{
    f->sync = 0.04;
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
    CASE(ST224), CASE(ST225), CASE(ST226), CASE(ST227), CASE(ST228), CASE(ST301), CASE(ST302),
    CASE(ST303), CASE(ST304), CASE(ST305), CASE(ST306),
#undef CASE
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

/* ---- checks -------------------------------------------------------------------------------------- */

static bool has(const struct dr_verdict *v, const char *code)
{
    for (uint32_t i = 0; i < v->findings; i++)
        if (!strcmp(v->finding[i].rule->code, code))
            return true;
    return false;
}

static const char *first(const struct dr_verdict *v)
{
    return v->findings ? v->finding[0].rule->code : "none";
}

static void note_findings(const struct dr_verdict *v)
{
    for (uint32_t i = 0; i < v->findings; i++)
        note("%s order %d weight %.2f gain %.2f (%.2f to %.2f): %s", v->finding[i].rule->code,
             v->finding[i].order, v->finding[i].weight, v->finding[i].gain.mid, v->finding[i].gain.low,
             v->finding[i].gain.high, v->finding[i].sentence);
}

/* Gains within the ceiling, no empty text, no number that is none. */
static bool is_sound(const struct dr_verdict *v)
{
    bool good = v->sentence[0] && !strstr(v->sentence, "nan");
    for (uint32_t i = 0; i < v->findings; i++) {
        const struct dr_finding *x = &v->finding[i];
        good = good && x->sentence[0] && x->advice[0] && x->basis[0] && !strstr(x->sentence, "nan") &&
               !strstr(x->advice, "nan") && !strstr(x->advice, "inf ");
        if (dr_known(x->gain.mid))
            good = good && x->gain.low <= x->gain.mid && x->gain.mid <= x->gain.high;
        if (dr_known(x->gain.mid) && x->order < DR_ORDER_OWN && x->order != DR_ORDER_RANK)
            good = good && !(x->gain.high > v->ceiling * 1.0001);
        for (uint32_t j = 0; j < i; j++)
            good = good && v->finding[j].rule != x->rule;
    }
    return good && (!dr_known(v->all.mid) || (v->all.low <= v->all.mid && v->all.mid <= v->all.high));
}

static void test_cases(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        healthy(&f);
        cases[i].fires(&f);
        dr_judge(v, &f);
        if (!ok(!strcmp(first(v), cases[i].code), "%s is the first finding (%s is)", cases[i].code,
                first(v)))
            note_findings(v);
        if (!ok(is_sound(v), "%s: its texts and numbers are sound", cases[i].code))
            note_findings(v);
        cases[i].misses(&f);
        dr_judge(v, &f);
        if (!ok(!has(v, cases[i].code), "%s is not found where it just misses", cases[i].code))
            note_findings(v);
        ok(is_sound(v), "%s: nor is anything unsound there", cases[i].code);
    }
}

static void test_healthy(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    dr_judge(v, &f);
    ok(v->kind == DR_COMPUTE_BOUND && v->findings == 0,
       "a healthy run is compute-bound and has no findings (%s)", first(v));
    note_findings(v);
    ok(!strcmp(v->confidence, "high"), "with high confidence");
    ok(v->cleared_count > 25, "and %u causes are cleared", v->cleared_count);
    ok(v->ceiling == 1, "a perfect loader gains nothing");
    /* Signs of trouble without a stall are no trouble. */
    run_of(&f, 8, 0.6, 0.97, 0.1);
    f.worker_run_queue = 0.4, f.throttled_share = 0.1, f.worker_busy_threads = 9, f.worker_cpus = 2;
    f.behind_share = 0.5, f.behind_wait = 0.9, f.batch_cv = 0.9, f.cpus_busy_others = 6, f.wait_period = 8;
    set_stage(&f, DR_STAGE_DECODE, 0.9, 1);
    dr_judge(v, &f);
    ok(v->kind == DR_COMPUTE_BOUND && v->findings == 0, "no stall, no finding (%s)", first(v));
    healthy(&f);
    run_of(&f, 2, 0.4, 0.97, 0.1);
    f.stall_share = 0.049, f.stall_share_low = 0.04;
    dr_judge(v, &f);
    ok(v->findings == 0, "nor at a stall of 4.9 %% (%s)", first(v));
    f.stall_share = 0.06, f.stall_share_low = 0.001;
    dr_judge(v, &f);
    ok(v->findings == 0, "nor at one of 6 %% that may be none (%s)", first(v));
}

static void test_unknown(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    unknown_facts(&f);
    dr_judge(v, &f);
    ok(v->kind == DR_CANNOT_TELL && v->findings == 1 && has(v, "ST901"), "nothing known: ST901");
    ok(is_sound(v) && !strncmp(v->sentence, "cannot tell", 11), "in a sentence: %s", v->sentence);
    ok(v->unjudged_count > 5 && v->cleared_count == 0, "%u rules could not be judged, none is cleared",
       v->unjudged_count);
    f.loader.workers = 4, f.has_gpu = true, f.rank_count = 3;
    dr_judge(v, &f);
    ok(v->cleared_count <= 1 && v->unjudged_count > 25, "with workers and a GPU more: %u (%u cleared)",
       v->unjudged_count, v->cleared_count);
    healthy(&f);
    f.confidence_steps = 5;
    dr_judge(v, &f);
    ok(v->kind == DR_CANNOT_TELL && has(v, "ST901"), "five steps: ST901");
    healthy(&f);
    run_of(&f, 2, 0.4, 0.97, 0.1);
    f.batch_count = 0, f.batch_mean = f.batch_cpu_mean = f.limits.cpus = NAN;
    for (int i = 0; i < DR_STAGES; i++)
        f.stage[i] = f.stage_cpu[i] = f.stage_share[i] = NAN;
    dr_judge(v, &f);
    ok(v->kind == DR_DATA_BOUND && !strcmp(first(v), "ST901"),
       "a stall without a cause: data-bound, ST901 (%s)", first(v));
}

/* A program that its loader ended before there was a step to measure. */
static void test_failed(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    unknown_facts(&f);
    f.confidence_steps = 0;
    f.loader.workers = 2, f.loader.prefetch = 2;
    snprintf(f.loader.failure, sizeof f.loader.failure, "ValueError: no such label");
    dr_judge(v, &f);
    ok(v->kind == DR_CANNOT_TELL && !strcmp(first(v), "ST901") && strstr(v->sentence, "no such label"),
       "the loader's error is named: %s", v->sentence);
    f.shm_size = 16e6;
    snprintf(f.loader.failure, sizeof f.loader.failure,
             "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.");
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST218") && v->finding[0].blocks && has(v, "ST901"),
       "a bus error before the first step: ST218 (%s)", v->finding[0].sentence);
    ok(is_sound(v) && strstr(v->finding[0].sentence, "2 workers with prefetch_factor=2 share it"),
       "what is unknown is left out of the sentence");
    f.loader.stoker = true;
    dr_judge(v, &f);
    ok(!has(v, "ST218"), "Stoker's loader uses no /dev/shm");
}

static bool says_nan(const char *text)
{
    for (const char *at = text; (at = strstr(at, "nan")); at++)
        if (at == text || strchr(" (=,", at[-1]))
            return true;
    return strstr(text, "inf ") || strstr(text, "-inf") || strstr(text, "inf%");
}

/* Each number in turn is unknown, without and with what makes a cause: no crash, and none of it in a
 * text. */
static void test_each_unknown(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    bool good = true;
    for (size_t i = 0; i < CASE_COUNT; i++)
        for (size_t k = 0; dr_fact_numbers[k].name || dr_limit_numbers[0].name; k++) {
            if (dr_fact_numbers[k].name && (i * 37 + k) % 100 >= share_of(100))
                continue;
            healthy(&f);
            cases[i].fires(&f);
            f.batch_count = 0; /* without the simulator: it takes too long, and cannot be had either */
            if (dr_fact_numbers[k].name)
                memcpy((char *)&f + dr_fact_numbers[k].offset, &(double){NAN}, sizeof(double));
            else
                for (const struct dr_number *n = dr_limit_numbers; n->name; n++)
                    memcpy((char *)&f.limits + n->offset, &(double){NAN}, sizeof(double));
            dr_judge(v, &f);
            bool sound = is_sound(v) && !says_nan(v->sentence) && !says_nan(v->limiter);
            for (uint32_t j = 0; j < v->findings; j++)
                sound = sound && !says_nan(v->finding[j].sentence) && !says_nan(v->finding[j].advice);
            if (!sound) {
                note("%s without %s", cases[i].code,
                     dr_fact_numbers[k].name ? dr_fact_numbers[k].name : "limits");
                note_findings(v);
            }
            good = good && sound;
            if (!dr_fact_numbers[k].name)
                break;
        }
    ok(good, "each number may be unknown");
}

static void test_pairs(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST206(&f);
    f.limits.cpus_quota = f.limits.cpus = 4, f.throttled_share = 0.3;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST206") && has(v, "ST205") && !has(v, "ST203") && !has(v, "ST204"),
       "a thread storm comes before the quota that it uses up, and excludes a number of workers");
    healthy(&f);
    fires_ST209(&f);
    dr_judge(v, &f);
    ok(!has(v, "ST203") && v->finding[0].plan.workers > 8,
       "waits for a network: more workers than CPUs (%u), in the same finding",
       v->finding[0].plan.workers);
    healthy(&f);
    run_of(&f, 4, 1, 0.1, 0.1);
    set_stage(&f, DR_STAGE_READ, 0.9, 0.02);
    strcpy(f.limits.file_system, "nfs4");
    strcpy(f.limits.disk_name, "server:/export");
    f.nfs_reads = 200, f.nfs_read = 30e6, f.nfs_rtt = 0.010, f.nfs_time = 0.012;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST209") &&
           strstr(v->finding[0].sentence, "nfs4 on server:/export, whose READ requests take 12"),
       "waits for NFS: the mount and its latency are named: %s", v->finding[0].sentence);
    healthy(&f);
    run_of(&f, 4, 2, 0.97, 0.1);
    set_stage(&f, DR_STAGE_DECODE, 0.8, 1);
    dr_judge(v, &f);
    ok(has(v, "ST227") && has(v, "ST203"), "decode and too few workers are both named");
    healthy(&f);
    fires_ST227(&f);
    f.worker_run_queue = 0.15;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST227") && has(v, "ST204"),
       "at the limit of the CPUs the stage comes first (%s)", first(v));
    healthy(&f);
    run_of(&f, 1, 0.4, 0.02, 0.1);
    f.cpus_busy_others = 5, f.cpus_used = 0.1, f.worker_run_queue = 0.11;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST203"), "a neighbour that costs little hides no lack of workers (%s)",
       first(v));
    note_findings(v);
    healthy(&f);
    fires_ST203(&f);
    f.wait_period = 2;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST203") && !strcmp(v->finding[v->findings - 1].rule->code, "ST213"),
       "periodic waits are a remark, the last");
    f.outlier_share = 0.8, f.outlier_gc = 1;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST306"), "outliers that cost more than the stall come first");
    healthy(&f);
    fires_ST203(&f);
    fires_ST221(&f);
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST221") && v->finding[0].blocks && has(v, "ST203"),
       "what breaks results comes before what costs time");
}

static void test_numbers(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST203(&f);
    dr_judge(v, &f);
    const struct dr_finding *x = &v->finding[0];
    ok(x->plan.workers >= 4 && x->plan.workers <= 7, "2 workers of 0.4 s for a step of 0.1 s: %u",
       x->plan.workers);
    ok(x->gain.mid > 1.8 && x->gain.mid <= 2.0001, "gain %.2f of at most 2", x->gain.mid);
    ok(strstr(x->advice, "num_workers=") != NULL, "the advice says so: %s", x->advice);
    ok(!strncmp(x->next, "computation", 11), "and the next limit: %s", x->next);
    ok(fabs(v->ceiling - 2) < 1e-9, "ceiling %.2f", v->ceiling);
    ok(strstr(v->sentence, "50 %") != NULL, "sentence: %s", v->sentence);
    f.loader.native = f.loader.stoker = true;
    dr_judge(v, &f);
    ok(v->findings && strstr(v->finding[0].advice_stoker, "auto"), "for Stoker's loader: %s",
       v->finding[0].advice_stoker);
    healthy(&f);
    fires_ST214(&f);
    dr_judge(v, &f);
    ok(fabs(v->finding[0].gain.mid - 1.25) < 1e-9 && v->kind == DR_DATA_BOUND,
       "4 s of 20 s for starting workers: %.2f", v->finding[0].gain.mid);
    healthy(&f);
    run_of(&f, 4, 1, 0.97, 0.1);
    f.memory_available_least = 100e6, f.shm_size = 500e6, f.shm_needed = 400e6;
    dr_judge(v, &f);
    ok(!has(v, "ST203") || v->finding[0].plan.workers * (v->finding[0].plan.prefetch + 1) <= 14,
       "no more batches in flight than there is memory for");
}

static void test_texts(void)
{
    struct dr_facts f;
    char room[64];
    healthy(&f);
    size_t count = 0;
    bool unique = true, full = true, known = true, ordered = true;
    for (; dr_rules[count]; count++) {
        const struct dr_rule *r = dr_rules[count];
        for (size_t i = 0; i < count; i++)
            unique = unique && strcmp(dr_rules[i]->code, r->code) && strcmp(dr_rules[i]->name, r->name);
        ordered = ordered && (!count || strcmp(dr_rules[count - 1]->code, r->code) < 0);
        full = full && r->title[0] && r->symptoms[0] && r->why[0] && r->fix_torch[0] &&
               r->fix_stoker[0] && r->how_to_check[0];
        const char *lacking = dr_lacks(r, &f, room, sizeof room);
        if (lacking)
            note("%s needs %s", r->code, lacking);
        known = known && !lacking;
        if (dr_rule_find(r->code) != r || dr_rule_find(r->name) != r)
            unique = false;
    }
    ok(count == 35 && unique && ordered, "%zu rules, each code and name once, in order", count);
    ok(full, "every text is there");
    ok(known, "what rules need is what a full run has");
    ok(!dr_rule_find("ST999") && dr_rule_find("st206") == dr_rule_find("thread-storm"),
       "found by code or name");
}

/* ---- the screen ---------------------------------------------------------------------------------- */

static char screen[65536];
static void print(const struct dr_verdict *v, const struct dr_facts *f, uint32_t width, bool color,
                  bool ascii)
{
    FILE *to = fmemopen(screen, sizeof screen, "w");
    if (!to)
        abort();
    const struct dr_style style = {.width = width, .color = color, .ascii = ascii};
    dr_print_verdict(to, &style, v, f);
    fclose(to);
}

static uint32_t widest(void)
{
    uint32_t most = 0, now = 0;
    for (const char *at = screen; *at; at++) {
        now = *at == '\n' ? 0 : now + (((unsigned char)*at & 0xc0) != 0x80);
        most = now > most ? now : most;
    }
    return most;
}

static void test_screen(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    bool fits = true;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        healthy(&f);
        cases[i].fires(&f);
        dr_judge(v, &f);
        print(v, &f, 80, false, true);
        fits = fits && widest() <= 80 && strstr(screen, cases[i].code) && strstr(screen, "VERDICT") &&
               !strchr(screen, '\033');
        for (const char *at = screen; *at; at++)
            fits = fits && (unsigned char)*at < 128;
        if (!fits)
            note("%s: %u columns", cases[i].code, widest());
    }
    ok(fits, "every verdict fits into 80 columns of ASCII");
    if (getenv("STOKER_SHOW")) {
        healthy(&f);
        fires_ST206(&f);
        dr_judge(v, &f);
        print(v, &f, 100, false, false);
        fputs(screen, stderr);
    }
    print(v, &f, 100, true, false);
    ok(strstr(screen, "\033[31m") && strstr(screen, "\u2588") == NULL ? true
                                                                      : strchr(screen, '\033') != NULL,
       "in color where that is wanted");
    snprintf(v->finding[0].advice, sizeof v->finding[0].advice, "a\033[2Jb");
    print(v, &f, 80, false, true);
    ok(strchr(screen, '\033') == NULL, "text from data cannot move the cursor");
    memset(v, 0, sizeof v);
    v->kind = DR_CANNOT_TELL;
    print(v, NULL, 80, false, true);
    ok(strstr(screen, "cannot tell") != NULL, "also a verdict without any facts");
    unknown_facts(&f);
    dr_judge(v, &f);
    print(v, &f, 80, false, true);
    ok(strstr(screen, "COULD NOT SEE") && !strstr(screen, "nan"), "unknown numbers are not shown");
}

int main(void)
{
    test_texts();
    test_healthy();
    test_unknown();
    test_failed();
    test_cases();
    test_each_unknown();
    test_pairs();
    test_numbers();
    test_screen();
    return done_testing();
}
