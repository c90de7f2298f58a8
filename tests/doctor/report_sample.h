/* report_sample.h - runs that were never run, for the tests of the reports: rich, poor and hostile ones
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_DOCTOR_REPORT_SAMPLE_H
#define ST_TESTS_DOCTOR_REPORT_SAMPLE_H

#include "report_sample_run.h"

enum sample_kind { SAMPLE_RICH, SAMPLE_FAST, SAMPLE_CPU, SAMPLE_UNKNOWN, SAMPLE_HOSTILE, SAMPLE_KINDS };
static const char *const sample_names[SAMPLE_KINDS] = {"rich", "fast", "cpu", "unknown", "hostile"};

static const struct dr_rule sample_rules[] = {
    {"ST206", "thread-storm", "Workers start more threads than there are CPUs", "threads", NULL, "", "",
     "", "", ""},
    {"ST203", "too-few-workers", "More workers would keep up", "", NULL, "", "", "", "", ""},
    {"ST227", "slow-decode", "Decoding takes most of the workers' time", "", NULL, "", "", "", "", ""},
    {"ST207", "disk-bandwidth", "The disk is at its limit", "disk.read", NULL, "", "", "", "", ""},
    {"ST216", "pageable-copies", "Copies to the GPU from pageable memory", "", NULL, "", "", "", "", ""},
    {"ST302", "sync-points", "The program waits for the GPU in every step", "", NULL, "", "", "", "",
     ""},
    {"ST222", "numa", "Workers run on another node than the GPU's", "gpu_node", NULL, "", "", "", "",
     ""},
};

static const char sample_hostile[] = "</script><b>\"'\\ \x01\x1b[31m\xff\xfe\xc3(& \xe2\x80\xa8\xc2\x85";
static inline double sample_mean(const struct sample *s, size_t offset)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->facts.step_count; i++) {
        double value;
        memcpy(&value, (const char *)&s->steps[i] + offset, sizeof value);
        sum += value;
    }
    return sum / s->facts.step_count;
}

static inline void sample_facts(struct sample *s, int workers, double batch)
{
    struct dr_facts *f = &s->facts;
    double ready = 0, behind = 0, found = 0;
    f->steps = s->steps;
    f->step_count = SAMPLE_BATCHES;
    f->confidence_steps = SAMPLE_BATCHES;
    f->warm_up_steps = 20;
    f->batch_seconds = s->made;
    f->batch_cpu = s->cpu;
    f->batch_count = SAMPLE_BATCHES;
    f->step = sample_mean(s, offsetof(struct dr_step, seconds));
    f->wait = sample_mean(s, offsetof(struct dr_step, wait));
    f->stall = sample_mean(s, offsetof(struct dr_step, stall));
    f->optimizer = sample_mean(s, offsetof(struct dr_step, optimizer));
    if (f->has_gpu) {
        f->copy = 0.004;
        f->sync = sample_mean(s, offsetof(struct dr_step, sync));
    }
    f->stall_share = f->stall / f->step;
    f->stall_share_low = f->stall_share * 0.97;
    f->stall_share_high = f->stall_share * 1.03;
    f->wait_share = f->wait / f->step;
    f->compute = f->step - f->stall;
    f->step_p50 = f->step * 0.97;
    f->step_p99 = f->step * 1.6;
    f->samples_per_second = 256 / f->step;
    for (uint32_t i = 0; i < SAMPLE_BATCHES; i++) {
        ready += s->steps[i].ready;
        behind += (s->steps[i].flags & DR_NEXT_BEHIND) != 0;
        found += (s->steps[i].flags & DR_NEXT_READY) != 0;
    }
    f->ready_mean = ready / SAMPLE_BATCHES;
    f->behind_share = behind / SAMPLE_BATCHES;
    f->behind_wait = 0.4;
    f->readiness = found / SAMPLE_BATCHES;
    f->batch_mean = batch * 1.016;
    f->batch_cv = 0.14;
    f->batch_p99 = batch * 1.9;
    f->batch_cpu_mean = batch * 0.94;
    const double share[DR_STAGES] = {0.06, 0, 0, 0.68, 0.15, 0.05, 0.002, 0.06};
    for (int i = 0; i < DR_STAGES; i++) {
        f->stage_share[i] = share[i];
        f->stage[i] = share[i] * f->batch_mean;
        f->stage_cpu[i] = f->stage[i] * (i ? 0.95 : 0.3);
    }
    f->put = f->stage[DR_STAGE_PUT];
    f->pin = 0.006;
    f->main_cpu_in_next = 0.0009;
    f->slowest_share = 0.03;
    f->workers_seen = workers;
    f->worker_on_cpu = 0.94;
    f->worker_run_queue = 0.04;
    f->worker_blocked = 0.01;
    f->worker_threads = 19;
    f->worker_busy_threads = 14;
    f->cpus_used = 11.6;
    f->throttled_share = 0.01;
    f->hit_ratio = 0.97;
    f->disk_read = 38e6;
    f->shm_size = 8e9;
    f->shm_needed = 3.7e9;
    f->overhead_share = 0.004;
    f->epochs = 3;
    snprintf(f->storm_names, sizeof f->storm_names, "cv::worker");
}

static inline void sample_loader(struct dr_settings *l, int workers)
{
    snprintf(l->class_name, sizeof l->class_name, "torch.utils.data.DataLoader");
    snprintf(l->dataset, sizeof l->dataset, "ImageFolder");
    snprintf(l->start_method, sizeof l->start_method, "fork");
    snprintf(l->file, sizeof l->file, "train.py");
    snprintf(l->source, sizeof l->source,
             "DataLoader(ds, batch_size=256, shuffle=True, num_workers=%d, pin_memory=True)", workers);
    l->line = 84;
    l->pin_memory = l->in_order = l->shuffle = true;
    l->workers = (uint32_t)workers;
    l->prefetch = 2;
    l->batch_size = 256;
    l->batches = SAMPLE_EPOCH;
    l->samples = 256 * SAMPLE_EPOCH;
    l->batch_bytes = 154e6;
    l->tensors = 2;
    l->objects = NAN;
}

static inline struct dr_finding *sample_finding(struct dr_verdict *v, int rule, double weight,
                                                double gain, const char *sentence, const char *advice)
{
    struct dr_finding *f = &v->finding[v->findings++];
    f->rule = &sample_rules[rule];
    f->weight = weight;
    f->gain = (struct dr_range){gain * 0.94, gain, gain * 1.06};
    f->plan.workers = UINT32_MAX;
    snprintf(f->sentence, sizeof f->sentence, "%s", sentence);
    snprintf(f->advice, sizeof f->advice, "%s", advice);
    snprintf(f->basis, sizeof f->basis, "simulated from %d batches", SAMPLE_BATCHES);
    return f;
}

static inline void sample_data_bound(struct sample *s)
{
    struct dr_verdict *v = &s->verdict;
    struct dr_finding *f;
    v->kind = DR_DATA_BOUND;
    v->confidence = "high";
    snprintf(v->sentence, sizeof v->sentence,
             "data-bound: the %s waits %.0f %% of every step for the next batch",
             s->facts.has_gpu ? "GPU" : "training loop", 100 * s->facts.stall_share);
    snprintf(v->limiter, sizeof v->limiter, "JPEG decode in %d workers, which queue for 12 CPUs",
             SAMPLE_WORKERS);
    f = sample_finding(v, 0, 0.4, 1.35, "8 workers run 17 OpenCV threads each: 136 threads on 12 CPUs",
                       "cv2.setNumThreads(0) in worker_init_fn");
    snprintf(f->next, sizeof f->next, "too few workers");
    f = sample_finding(v, 1, 0.2, 1.12, "8 workers cannot feed this GPU, and 12 CPUs carry 11",
                       "num_workers=11, prefetch_factor=4, persistent_workers=True");
    f->plan = (struct dr_plan){11, 4, true, true, false, 12, 1, 1, 1};
    snprintf(f->advice_stoker, sizeof f->advice_stoker, "stoker.DataLoader(ds, batch_size=256, ...)");
    sample_finding(v, 2, 0.15, 1.6,
                   "decode is 68 % of the workers' time; inputs are 2.1 times too large",
                   "decode at half the size (draft mode), or stoker pack --resize 256");
    v->ceiling = s->facts.step / s->facts.compute;
    v->all = (struct dr_range){v->ceiling * 0.9, v->ceiling * 0.95, v->ceiling};
    snprintf(v->limit_after, sizeof v->limit_after, "compute");
    v->cleared[v->cleared_count++] = &sample_rules[3];
    v->cleared[v->cleared_count++] = &sample_rules[4];
    v->cleared[v->cleared_count++] = &sample_rules[5];
    v->unjudged[v->unjudged_count++] = &sample_rules[6];
}

static inline void sample_start(struct sample *s)
{
    static char *const argv[] = {"python", "train.py", "--epochs", "3", NULL};
    static const struct dr_missing missing[] = {{"gpu_node", "the GPU's NUMA node is not known here",
                                                 "run outside the container, or mount /sys"}};
    memset(s, 0, sizeof *s);
    s->random = 42;
    s->run.argv = argv;
    s->run.cwd = "/home/anna/imagenet";
    s->run.start_ns = SAMPLE_START;
    s->run.started = 1794000000;
    s->run.finished = true;
    s->run.missing = missing;
    s->run.missing_count = 1;
    s->run.own_cpu_seconds = 1.1;
    snprintf(s->run.directory, sizeof s->run.directory, "/home/anna/imagenet/.stoker/0007");
    s->facts.run = &s->run;
    for (const struct dr_number *n = dr_fact_numbers; n->name; n++)
        memcpy((char *)&s->facts + n->offset, &(double){NAN}, sizeof(double));
    for (const struct dr_number *n = dr_limit_numbers; n->name; n++)
        memcpy((char *)&s->run.limits + n->offset, &(double){NAN}, sizeof(double));
    for (int i = 0; i < DR_STAGES; i++)
        s->facts.stage[i] = s->facts.stage_cpu[i] = s->facts.stage_share[i] = NAN;
    struct dr_settings *l = &s->facts.loader;
    l->batch_size = l->batches = l->samples = l->batch_bytes = l->tensors = l->objects = NAN;
    s->verdict.kind = DR_CANNOT_TELL;
    s->verdict.confidence = "low";
    s->verdict.ceiling = NAN;
    s->verdict.all = (struct dr_range){NAN, NAN, NAN};
    snprintf(s->verdict.sentence, sizeof s->verdict.sentence, "cannot tell: no step was seen");
    s->run.end_ns = SAMPLE_START + 3000000000ull;
    s->facts.limits = s->run.limits;
}

static inline void sample_limits(struct sample *s)
{
    struct dr_limits *l = &s->run.limits;
    l->cpus = l->cpus_quota = 12;
    l->cpus_affinity = l->cpus_machine = 192;
    l->memory = 128e9;
    l->memory_machine = 2e12;
    l->shm = 8e9;
    l->nodes = 2;
    snprintf(l->cpu_name, sizeof l->cpu_name, "AMD EPYC 9654");
    snprintf(l->disk_name, sizeof l->disk_name, "nvme0n1");
    snprintf(l->file_system, sizeof l->file_system, "ext4");
    if (s->facts.has_gpu) {
        l->gpu_memory = 141e9;
        l->pcie_limit = 55e9;
        snprintf(l->gpu_name, sizeof l->gpu_name, "NVIDIA H200");
    }
    s->facts.limits = *l;
}

/* What somebody might call their files to break a page. */
static inline void sample_spoil(struct sample *s)
{
    static char *const argv[] = {(char *)(uintptr_t)sample_hostile, "\"]}", NULL};
    static const struct dr_text_pair said[] = {{sample_hostile, sample_hostile},
                                               {"torch", sample_hostile}};
    static const struct dr_missing missing[] = {{sample_hostile, sample_hostile, sample_hostile}};
    char *const texts[] = {
        s->run.process[1].name,    s->facts.loader.dataset, s->facts.loader.file,
        s->facts.loader.transform, s->facts.storm_names,    s->facts.sync_where,
        s->facts.limits.gpu_name,  s->verdict.limiter,      s->verdict.finding[0].advice};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        strcpy(texts[i], sample_hostile);
    snprintf(s->facts.loader.source, sizeof s->facts.loader.source,
             "DataLoader((%s, num_workers=", sample_hostile);
    snprintf(s->verdict.sentence, sizeof s->verdict.sentence, "data-bound: %s", sample_hostile);
    snprintf(s->run.directory, sizeof s->run.directory, "/%s/%0200d", sample_hostile, 7);
    s->run.argv = argv;
    s->run.cwd = sample_hostile;
    s->run.missing = missing;
    s->process[0].said = said;
    s->process[0].said_count = 2;
    s->facts.step_p99 = INFINITY;
    s->events[0][100].dur_ns = UINT64_MAX; /* lies in the files of events */
    s->events[0][200].start_ns = 0;
    s->events[1][100].kind = 999;
    s->events[1][200].start_ns = UINT64_MAX;
    s->events[1][300].batch = UINT32_MAX;
    s->steps[5].seconds = NAN;
    s->steps[6].seconds = 1e300;
}

static inline void sample_open(struct sample *s, enum sample_kind kind)
{
    sample_start(s);
    if (kind == SAMPLE_UNKNOWN)
        return;
    const double batch = kind == SAMPLE_FAST ? 0.5 : 1.85;
    s->facts.has_gpu = kind != SAMPLE_CPU;
    s->steps = calloc(SAMPLE_BATCHES, sizeof *s->steps);
    s->made = calloc(SAMPLE_BATCHES, sizeof *s->made);
    s->cpu = calloc(SAMPLE_BATCHES, sizeof *s->cpu);
    s->tick_ns = calloc(SAMPLE_TICKS_MOST, sizeof *s->tick_ns);
    if (!s->steps || !s->made || !s->cpu || !s->tick_ns)
        abort();
    const double seconds = sample_train(s, SAMPLE_WORKERS, batch, 0.09);
    const double wanted = seconds * 10;
    const uint32_t ticks = wanted < SAMPLE_TICKS_MOST ? (uint32_t)wanted : SAMPLE_TICKS_MOST;
    for (uint32_t t = 0; t < ticks; t++)
        s->tick_ns[t] = sample_ns(0.1 * t);
    s->run.tick_ns = s->tick_ns;
    s->run.end_ns = sample_ns(seconds);
    sample_facts(s, SAMPLE_WORKERS, batch);
    sample_loader(&s->facts.loader, SAMPLE_WORKERS);
    sample_limits(s);
    sample_machine(s, ticks, s->facts.stall_share);
    sample_processes(s, SAMPLE_WORKERS, ticks);
    s->facts.trainer = &s->process[0];
    if (s->facts.has_gpu) {
        s->facts.gpu_busy = 0.95;
        s->facts.gpu_sm = (1 - s->facts.stall_share) * 0.65;
        s->facts.gpu_watts = 270;
        s->facts.copy_bytes = 154e6;
    }
    for (int i = 0; i < 4; i++)
        s->ranks[i] = (struct dr_rank_facts){i, s->facts.step, s->facts.stall_share * (i == 2 ? 1 : 0.2),
                                             s->facts.wait_share, i == 2 ? 0.8 : 0.07, 0.02};
    s->facts.ranks = s->ranks;
    s->facts.rank_count = kind == SAMPLE_FAST ? 4 : 0;
    if (kind == SAMPLE_FAST) {
        s->verdict.kind = DR_COMPUTE_BOUND;
        s->verdict.confidence = "high";
        s->verdict.ceiling = s->facts.step / s->facts.compute;
        snprintf(s->verdict.sentence, sizeof s->verdict.sentence,
                 "compute-bound: the GPU waits %.1f %% of a step for data", 100 * s->facts.stall_share);
        for (int i = 0; i < 6; i++)
            s->verdict.cleared[s->verdict.cleared_count++] = &sample_rules[i];
    } else {
        sample_data_bound(s);
    }
    if (kind == SAMPLE_HOSTILE)
        sample_spoil(s);
}

static inline void sample_close(struct sample *s)
{
    for (size_t i = 0; i < sizeof s->events / sizeof *s->events; i++)
        free(s->events[i]);
    for (size_t i = 0; i < sizeof s->tables / sizeof *s->tables; i++)
        free(s->tables[i]);
    free(s->steps);
    free(s->made);
    free(s->cpu);
    free(s->tick_ns);
}

#endif
