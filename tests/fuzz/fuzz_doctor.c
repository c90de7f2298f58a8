/* fuzz_doctor.c - any bytes at all as what a watched process says and does; facts are made of it
 *
 * Two bytes are the length of the text of process/PID, which follows; the rest is events/PID.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/facts.h"
#include "doctor/model/load.h"
#include "doctor/model/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory and its name; -1: there is none. */
static int file_of(const uint8_t *data, size_t size, char name[64])
{
    const int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    snprintf(name, 64, "/proc/self/fd/%d", file);
    return file;
}

static void make_facts(struct dr_process *process)
{
    struct dr_run run = {.process = process, .processes = 1, .own_cpu_seconds = NAN};
    struct dr_facts facts;
    struct dr_trace trace;
    struct dr_plan plan;
    process->role = DR_TRAINER;
    process->trainer = -1;
    if (dr_facts_of(&facts, &run, -1, NULL))
        return;
    if (facts.step < 0 || facts.wait < 0 || isnan(facts.step) != !facts.step_count || facts.stall_share > 1 + 1e-9)
        abort();
    if (dr_trace_of(&trace, &plan, &facts) && plan.workers < 64 && plan.prefetch < 64) {
        struct dr_outcome outcome;
        dr_simulate(&outcome, &trace, &plan);
    }
    dr_facts_free(&facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const size_t rest = size - 2, said = (size_t)data[0] | (size_t)data[1] << 8;
    const size_t text = said < rest ? said : rest;
    char name[64];
    struct dr_blocks blocks = {0};
    struct dr_process process = {.rank = -1, .worker = -1};
    const int first = file_of(data + 2, text, name);
    const int bad_text = dr_read_said(name, &blocks, &process, NULL);
    const int second = file_of(data + 2 + text, rest - text, name);
    const int bad_events = dr_read_events(name, &blocks, &process, NULL);
    close(first);
    close(second);
    if (!bad_text && !bad_events)
        make_facts(&process);
    dr_blocks_free(&blocks);
    return 0;
}
