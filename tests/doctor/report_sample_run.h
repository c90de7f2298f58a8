/* report_sample_run.h - the records of a run that was never run: events, steps, samples of the machine
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_DOCTOR_REPORT_SAMPLE_RUN_H
#define ST_TESTS_DOCTOR_REPORT_SAMPLE_RUN_H

#include "doctor/report/numbers.h"
#include "doctor/report/report.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLE_WORKERS = 8, SAMPLE_BATCHES = 900, SAMPLE_EPOCH = 300, SAMPLE_TICKS_MOST = 4000 };
#define SAMPLE_START 5000000000000ull

struct sample {
    struct dr_run run;
    struct dr_facts facts;
    struct dr_verdict verdict;
    struct dr_process process[2 + 3 * SAMPLE_WORKERS];
    struct dr_event *events[2 + 3 * SAMPLE_WORKERS];
    struct dr_step *steps;
    double *made, *cpu;
    struct dr_rank_facts ranks[4];
    uint64_t *tick_ns;
    double *tables[3 + 3 * SAMPLE_WORKERS];
    uint64_t random;
};
/* In [0, 1). */
static inline double sample_random(struct sample *s)
{
    s->random = s->random * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(s->random >> 11) / 9007199254740992.0;
}

static inline uint64_t sample_ns(double seconds) { return SAMPLE_START + (uint64_t)(seconds * 1e9); }

static inline void sample_event(struct sample *s, int process, uint16_t kind, double start,
                                double seconds, uint32_t batch, uint32_t a, uint32_t b)
{
    struct dr_process *p = &s->process[process];
    enum { MOST = 20000 };
    if (!s->events[process] && !(s->events[process] = calloc(MOST, sizeof(struct dr_event))))
        abort();
    if (p->event_count < MOST)
        s->events[process][p->event_count++] = (struct dr_event){
            sample_ns(start), (uint64_t)(seconds * 1e9), batch % SAMPLE_EPOCH, kind, 0, a, b};
    p->events = s->events[process];
}

/* Making batch `i`, stage by stage, as a worker says it. */
static inline void sample_make_batch(struct sample *s, int process, double start, double seconds,
                                     uint32_t i)
{
    static const struct {
        uint16_t kind;
        double share;
    } parts[] = {{DR_READ, 0.06}, {DR_DECODE, 0.68}, {DR_TRANSFORM, 0.15}, {DR_COLLATE, 0.05}};
    double at = start;
    sample_event(s, process, DR_FETCH, start, seconds, i, 256, (uint32_t)(seconds * 0.7e6));
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        sample_event(s, process, parts[k].kind, at, seconds * parts[k].share, i, 256,
                     (uint32_t)(seconds * parts[k].share * 1e6));
        at += seconds * parts[k].share;
    }
    sample_event(s, process, DR_SLOWEST, start, seconds * (0.01 + 0.05 * sample_random(s)), i,
                 (uint32_t)(sample_random(s) * 50000), 0);
    sample_event(s, process, DR_PUT, start + seconds, 0.004, i, 1, 3000);
}

/* torch's loader with `workers` workers and 2 batches ahead, feeding steps of `compute` seconds. */
static inline double sample_train(struct sample *s, int workers, double batch, double compute)
{
    double *ready = calloc(SAMPLE_BATCHES, sizeof *ready),
           *asked = calloc(SAMPLE_BATCHES, sizeof *asked);
    double free_at[SAMPLE_WORKERS] = {0}, now = 2;
    if (!ready || !asked)
        abort();
    for (uint32_t i = 0; i < SAMPLE_BATCHES; i++) {
        const double slow = sample_random(s) < 0.02 ? 1.8 : 1;
        s->made[i] = batch * slow * (0.85 + 0.3 * sample_random(s));
        s->cpu[i] = s->made[i] * 0.94;
    }
    for (uint32_t i = 0, sent = 0; i < SAMPLE_BATCHES; i++) {
        struct dr_step *step = &s->steps[i];
        const uint32_t epoch_end = (i / SAMPLE_EPOCH + 1) * SAMPLE_EPOCH;
        for (; sent < SAMPLE_BATCHES && sent < epoch_end && sent < i + 2 * (uint32_t)workers; sent++) {
            const int w = (int)sent % workers;
            const double start = now > free_at[w] ? now : free_at[w];
            free_at[w] = start + s->made[sent] + 0.005;
            ready[sent] = start + s->made[sent] + 0.004;
            sample_make_batch(s, 1 + w, start, s->made[sent], sent);
        }
        uint32_t there = 0;
        for (uint32_t k = i; k < sent; k++)
            there += ready[k] <= now;
        const double wait = (ready[i] > now ? ready[i] - now : 0) + 0.001;
        const double save = i % 250 == 249 ? 1.4 : 0, gc = i % 97 == 0 ? 0.03 : 0;
        const double work = compute * (0.95 + 0.1 * sample_random(s));
        *step = (struct dr_step){.start_ns = sample_ns(now),
                                 .seconds = wait + work + save + gc,
                                 .wait = wait,
                                 .stall = s->facts.has_gpu ? (wait > 0.003 ? wait - 0.003 : 0) : wait,
                                 .copy = s->facts.has_gpu ? 0.004 : NAN,
                                 .sync = s->facts.has_gpu ? compute * 0.6 : NAN,
                                 .save = save,
                                 .gc = gc,
                                 .optimizer = compute * 0.1,
                                 .ready = there,
                                 .flags = (uint8_t)((i % SAMPLE_EPOCH ? 0 : DR_NEXT_FIRST) |
                                                    DR_NEXT_TRAINING |
                                                    (ready[i] <= now ? DR_NEXT_READY
                                                     : there         ? DR_NEXT_BEHIND
                                                                     : 0)),
                                 .batch = i % SAMPLE_EPOCH};
        if (i % SAMPLE_EPOCH == 0)
            sample_event(s, 0, DR_ITER, now - 0.4, 0.39, 0, (uint32_t)workers, 0);
        sample_event(s, 0, DR_NEXT, now, wait, i, there, step->flags | 900u << 8);
        if (s->facts.has_gpu) {
            sample_event(s, 0, DR_STALL, now, step->stall, i, 0, 0);
            sample_event(s, 0, DR_COPY, now + wait, 0.004, i, 150000, DR_COPY_PINNED);
            sample_event(s, 0, DR_SYNC, now + wait + work * 0.3, work * 0.6, i, 0, 0);
        }
        sample_event(s, 0, DR_STEP, now + wait + work * 0.9, work * 0.1, i, 0, 0);
        if (save > 0)
            sample_event(s, 0, DR_SAVE, now + wait + work, save, i, 0, 0);
        now += step->seconds + (i % SAMPLE_EPOCH == SAMPLE_EPOCH - 1 ? 2.5 : 0);
    }
    free(ready);
    free(asked);
    return now;
}

static inline struct dr_table sample_table(struct sample *s, int number, uint32_t ticks,
                                           uint32_t signals)
{
    double *values = malloc((size_t)ticks * signals * sizeof *values);
    if (!values)
        abort();
    for (size_t i = 0; i < (size_t)ticks * signals; i++)
        values[i] = NAN;
    s->tables[number] = values;
    return (struct dr_table){ticks, signals, values};
}

static inline void sample_machine(struct sample *s, uint32_t ticks, double stall)
{
    s->run.machine = sample_table(s, 0, ticks, DR_MACHINE_COUNT);
    for (uint32_t t = 0; t < ticks; t++) {
        double *row = s->tables[0] + (size_t)t * DR_MACHINE_COUNT;
        const double wave = sample_random(s);
        row[DR_CPU_BUSY] = 13 + wave;
        row[DR_CPU_OURS] = 11.2 + 0.8 * wave;
        row[DR_CPU_SYSTEM] = 2.1 + wave;
        row[DR_CPU_THROTTLED] = 0.02 * wave;
        row[DR_PSI_CPU] = 0.4 + 0.2 * wave;
        row[DR_PSI_IO] = t < 400 ? 0.3 * wave : 0.01 * wave;
        row[DR_MEMORY_AVAILABLE] = 80e9 - 4e6 * t;
        row[DR_MEMORY_CACHE] = 20e9 + (t < 1500 ? 8e6 * t : 12e9);
        row[DR_SHM_USED] = 5e8 + 4e8 * wave;
        row[DR_SHM_FREE] = 8e9 - row[DR_SHM_USED];
        row[DR_DISK_READ] = t < 400 ? 3e8 * wave : 3e7 * wave;
        row[DR_DISK_READS] = row[DR_DISK_READ] / 1.2e5;
        row[DR_DISK_AWAIT] = 0.0004 + 0.0006 * wave;
        row[DR_DISK_BUSY] = t < 400 ? 0.8 * wave : 0.06 * wave;
        row[DR_NET_RECEIVED] = 2e4 * wave;
        if (s->facts.has_gpu) {
            row[DR_GPU_BUSY] = 0.9 + 0.1 * wave;
            row[DR_GPU_SM] = (1 - stall) * (0.5 + 0.3 * wave);
            row[DR_GPU_TENSOR] = (1 - stall) * 0.3 * wave;
            row[DR_GPU_DRAM] = (1 - stall) * 0.4;
            row[DR_GPU_PCIE_IN] = 6e8 + 1e8 * wave;
            row[DR_GPU_WATTS] = 240 + 60 * wave;
            row[DR_GPU_CLOCK] = 0.98;
            row[DR_GPU_MEMORY] = 31e9;
            row[DR_GPU_LIMITED] = 0;
        }
    }
}

static inline void sample_processes(struct sample *s, int workers, uint32_t ticks)
{
    static const struct dr_threads threads[] = {{"python", 2, 180.0}, {"cv::worker", 17, 2400.0}};
    static const struct dr_text_pair said[] = {
        {"argv", "train.py --epochs 3"}, {"python", "3.11.9"}, {"role", "trainer"}, {"torch", "2.7.0"}};
    for (int i = 0; i <= workers; i++) {
        struct dr_process *p = &s->process[i];
        p->pid = 48213 + i;
        p->parent = i ? 48213 : 48212;
        p->role = i ? DR_WORKER : DR_TRAINER;
        p->rank = -1;
        p->worker = i - 1;
        p->trainer = i ? 0 : -1;
        snprintf(p->name, sizeof p->name, "%s", i ? "pt_data_worker" : "python");
        p->first_tick = i ? 18 : 0;
        p->table = sample_table(s, 1 + i, ticks - p->first_tick, DR_PROCESS_COUNT);
        p->threads = threads;
        p->thread_names = i ? 2 : 1;
        p->said = said;
        p->said_count = i ? 0 : sizeof said / sizeof *said;
        p->watch_spent_ns = 400000000;
        for (uint32_t t = 0; t < p->table.ticks; t++) {
            double *row = s->tables[1 + i] + (size_t)t * DR_PROCESS_COUNT;
            const double wave = sample_random(s);
            row[DR_P_ON_CPU] = i ? 1.2 + 0.2 * wave : 0.5 + 0.2 * wave;
            row[DR_P_RUN_QUEUE] = i ? 3 * wave : 0.05 * wave;
            row[DR_P_MAIN_ON_CPU] = i ? 0.7 : 0.4;
            row[DR_P_RSS] = 1.1e9 + 1e5 * t;
            row[DR_P_PRIVATE] = 4e8 + 1e5 * t;
            row[DR_P_THREADS] = i ? 19 : 64;
        }
    }
    s->run.process = s->process;
    s->run.processes = (uint32_t)workers + 1;
}

#endif
