/* facts_gpu.c - the GPU, copies to it, and places where the program waits for it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include <stdio.h>

enum { PLACES = 256, LARGE_KIB = 256 /* smaller copies mostly measure the overhead of the call */ };

struct copies {
    double bytes, pageable, blocking;
    double place[PLACES]; /* seconds of waiting for the GPU */
    uint64_t count;
    double fastest; /* seconds per byte; NaN */
};

static void copy_event(struct copies *copies, const struct dr_event *event)
{
    const double bytes = event->a == DR_UNKNOWN ? 0 : event->a * 1024.0;
    const double weight = bytes + 1; /* so that copies of less than 1 KiB count too */
    copies->count++;
    copies->bytes += bytes;
    copies->pageable += event->b & DR_COPY_PINNED ? 0 : weight;
    copies->blocking += event->b & DR_COPY_NON_BLOCKING ? 0 : weight;
}

/* Before the first copies of a program the stream is empty, so they show the cost of a copy itself.
 * Therefore all copies count, not only those of the measured steps. */
static void fastest_copy(struct copies *copies, const struct dr_event *event)
{
    if (event->a == DR_UNKNOWN || event->a < LARGE_KIB || event->dur_ns == 0)
        return;
    copies->fastest = fmin(copies->fastest, (double)event->dur_ns / 1e9 / (event->a * 1024.0));
}

static void dearest_place(struct dr_part *part, const struct copies *copies)
{
    uint32_t best = 0;
    for (uint32_t k = 1; k < PLACES; k++)
        best = copies->place[k] > copies->place[best] ? k : best;
    if (!(copies->place[best] > 0))
        return;
    char key[32];
    snprintf(key, sizeof key, "sync.%u.where", best);
    const char *where = dr_said(part->trainer, key);
    snprintf(part->facts->sync_where, sizeof part->facts->sync_where, "%s", where ? where : "");
    part->facts->sync_where_share =
        dr_share(copies->place[best], part->facts->step * part->facts->step_count);
}

void dr_facts_gpu(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    const struct {
        double *to;
        uint32_t signal;
    } means[] = {{&facts->gpu_busy, DR_GPU_BUSY},       {&facts->gpu_sm, DR_GPU_SM},
                 {&facts->gpu_tensor, DR_GPU_TENSOR},   {&facts->gpu_dram, DR_GPU_DRAM},
                 {&facts->gpu_pcie_in, DR_GPU_PCIE_IN}, {&facts->gpu_clock, DR_GPU_CLOCK},
                 {&facts->gpu_limited, DR_GPU_LIMITED}, {&facts->gpu_watts, DR_GPU_WATTS}};
    for (size_t k = 0; k < sizeof means / sizeof *means; k++)
        *means[k].to = dr_column_mean(&part->run->machine, part->rows, means[k].signal);
    facts->gpu_memory_peak_share = dr_share(dr_said_number(part->trainer, "cuda.memory_peak"),
                                            dr_said_number(part->trainer, "cuda.memory_total"));
    facts->amp = dr_said_number(part->trainer, "amp");
    facts->tf32 = dr_said_number(part->trainer, "tf32");
    facts->gpu_capability = dr_said_number(part->trainer, "cuda.capability");
    struct copies copies = {.fastest = NAN};
    for (uint64_t k = 0; k < part->trainer->event_count; k++) {
        const struct dr_event *event = &part->trainer->events[k];
        if (event->kind == DR_COPY)
            fastest_copy(&copies, event);
        if (event->start_ns < part->from_ns || event->start_ns > part->to_ns)
            continue;
        if (event->kind == DR_COPY)
            copy_event(&copies, event);
        else if (event->kind == DR_SYNC && event->a < PLACES)
            copies.place[event->a] += (double)event->dur_ns / 1e9;
    }
    dearest_place(part, &copies);
    if (!copies.count)
        return;
    const double weights = copies.bytes + (double)copies.count;
    facts->copy_bytes = copies.bytes / facts->step_count;
    facts->copy_alone = facts->copy_bytes * copies.fastest;
    facts->copies_pageable_share = copies.pageable / weights;
    facts->copies_blocking_share = copies.blocking / weights;
}
