/* made_run.h - a run written down event by event in memory, and the facts found in it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_TESTS_DOCTOR_MADE_RUN_H
#define ST_TESTS_DOCTOR_MADE_RUN_H

#include "doctor/model/facts.h"
#include "tap.h"

#include <string.h>

#define MS UINT64_C(1000000)
enum { EVENTS = 20000, TICKS = 400, PROCESSES = 6 };

/* A run that is written down event by event. */
static struct {
    struct dr_run run;
    struct dr_process process[PROCESSES];
    struct dr_event events[PROCESSES][EVENTS];
    struct dr_text_pair said[PROCESSES][16];
    double machine[TICKS * DR_MACHINE_COUNT], values[PROCESSES][TICKS * DR_PROCESS_COUNT];
    uint64_t tick_ns[TICKS];
    uint64_t now; /* of the training process */
} made;
static struct dr_facts facts;
static struct stoker_error err;

static inline struct dr_process *new_process(enum dr_role role, int rank, int worker)
{
    const uint32_t at = made.run.processes++;
    struct dr_process *process = &made.process[at];
    *process = (struct dr_process){.pid = 100 + (int)at,
                                   .role = role,
                                   .rank = rank,
                                   .worker = worker,
                                   .trainer = role == DR_WORKER ? 0 : -1,
                                   .events = made.events[at],
                                   .said = made.said[at]};
    process->table.signals = DR_PROCESS_COUNT;
    return process;
}

static inline struct dr_process *begin(void)
{
    dr_facts_free(&facts);
    memset(&made, 0, sizeof made);
    made.run.process = made.process;
    made.run.machine.signals = DR_MACHINE_COUNT;
    made.run.own_cpu_seconds = NAN;
    snprintf(made.run.directory, sizeof made.run.directory, "made-up");
    made.now = 1000 * MS;
    return new_process(DR_TRAINER, -1, -1);
}

static inline void say(struct dr_process *process, const char *key, const char *value)
{
    made.said[process - made.process][process->said_count++] = (struct dr_text_pair){key, value};
}

static inline void event(struct dr_process *process, uint16_t kind, uint64_t start, uint64_t dur,
                         uint32_t batch, uint16_t loader, uint32_t a, uint32_t b)
{
    made.events[process - made.process][process->event_count++] =
        (struct dr_event){start, dur, batch, kind, loader, a, b};
}

/* next() of a loader that takes `wait`. */
static inline void call(struct dr_process *process, uint16_t loader, uint32_t batch, uint64_t wait,
                        uint32_t flags)
{
    event(process, DR_NEXT, made.now, wait, batch, loader, flags & DR_NEXT_READY ? 1 : 0,
          flags | 500 << 8);
    made.now += wait;
}

static inline void step(struct dr_process *process, uint32_t batch, uint64_t wait, uint64_t work)
{
    call(process, 0, batch, wait,
         DR_NEXT_TRAINING | (batch ? 0 : DR_NEXT_FIRST) | (wait < 5 * MS ? DR_NEXT_READY : 0));
    event(process, DR_STEP, made.now + work / 2, work / 4, 0, 0, 0, 0);
    made.now += work;
}

static inline void end_epoch(struct dr_process *process)
{
    event(process, DR_EPOCH, made.now, MS, 0, 0, 0, 0);
    made.now += MS;
}

static inline bool near(double value, double expected)
{
    const bool holds = fabs(value - expected) <= 1e-6 * fabs(expected) + 1e-9;
    if (!holds)
        note("%.9g where %.9g was expected", value, expected);
    return holds;
}

static inline int judge(int rank)
{
    memset(&err, 0, sizeof err);
    dr_facts_free(&facts);
    const int rc = dr_facts_of(&facts, &made.run, rank, &err);
    if (rc)
        note("%s", err.message);
    return rc;
}

#endif
