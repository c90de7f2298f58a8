/* needs.c - whether this run has the signals that a rule needs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/judge.h"

#include <string.h>

/* A name in dr_rule.needs, and the fact that is NaN where the signal is missing. */
static const struct {
    const char *name;
    size_t offset;
} sources[] = {
#define FROM(name, field)                                                                               \
    {                                                                                                   \
        name, offsetof(struct dr_facts, field)                                                          \
    }
    FROM("step.stall", stall_share),
    FROM("step.outliers", outlier_share),
    FROM("step.costs", save_steps),
    FROM("sampler", sampler),
    FROM("main.lock", worker_lock),
    FROM("workers.at_work", workers_at_work),
    FROM("workers.samples", workers_alike),
    FROM("workers.random", workers_random),
    FROM("batch.opening", opening),
    FROM("swapped", swapped),
    FROM("batch.seconds", batch_mean),
    FROM("batch.stages", stage_share[DR_STAGE_READ]),
    FROM("batch.opens", opens_per_sample),
    FROM("queue.behind", behind_wait),
    FROM("epochs", epoch_seconds),
    FROM("epochs.start", epoch_start),
    FROM("epochs.later", later_epochs_stall_share),
    FROM("cpus", limits.cpus),
    FROM("dataset.objects", loader.objects),
    FROM("read.storage", read_storage),
    FROM("copy.pageable", copies_pageable_share),
    FROM("sync", sync),
    FROM("amp", amp),
    FROM("numa", limits.nodes),
    FROM("ranks", stall_share),
    FROM("gpu.memory_peak", gpu_memory_peak_share),
    FROM("cpu.busy", cpus_busy_others),
    FROM("cpu.throttled", throttled_share),
    FROM("memory.refaults", refaults),
    FROM("shm.used", shm_used_most),
    FROM("gpu.busy", gpu_busy),
    FROM("gpu.sm_active", gpu_sm),
    FROM("gpu.tensor", gpu_tensor),
    FROM("gpu.pcie_in", gpu_pcie_in),
    FROM("gpu.clock", gpu_clock),
    FROM("gpu.limited", gpu_limited),
    FROM("run_queue", worker_run_queue),
    FROM("threads.busy", worker_busy_threads),
    FROM("private", worker_private_growth),
    FROM("on_cpu", trainer_cpus),
    FROM("main.on_cpu", trainer_on_cpu),
#undef FROM
};

static bool is_known(const struct dr_facts *facts, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (strlen(sources[i].name) == length && !memcmp(sources[i].name, name, length)) {
            double value;
            memcpy(&value, (const char *)facts + sources[i].offset, sizeof value);
            return dr_known(value);
        }
    return false; /* a name that nothing provides: a test finds those */
}

const char *dr_lacks(const struct dr_rule *rule, const struct dr_facts *facts, char *room, size_t size)
{
    for (const char *at = rule->needs; *at;) {
        const size_t length = strcspn(at, ",");
        if (!is_known(facts, at, length)) {
            (void)snprintf(room, size, "%.*s", (int)length, at);
            return room;
        }
        at += length + (at[length] == ',');
    }
    return NULL;
}

bool dr_concerns(const struct dr_rule *rule, const struct dr_facts *facts)
{
    static const char *const for_processes[] = {"ST203", "ST204", "ST206", "ST212", "ST213", "ST214",
                                                "ST215", "ST218", "ST219", "ST220", "ST221"};
    static const char *const for_gpus[] = {"ST216", "ST217", "ST222", "ST301",
                                           "ST302", "ST303", "ST304", "ST305"};
    for (size_t i = 0; i < sizeof for_processes / sizeof *for_processes; i++)
        if (!strcmp(rule->code, for_processes[i]))
            return facts->loader.workers > 0;
    for (size_t i = 0; i < sizeof for_gpus / sizeof *for_gpus; i++)
        if (!strcmp(rule->code, for_gpus[i]))
            return facts->has_gpu;
    if (!strcmp(rule->code, "ST234"))
        return !facts->loader.iterable && facts->loader.workers > 1;
    if (!strcmp(rule->code, "ST232") || !strcmp(rule->code, "ST233"))
        return facts->loader.iterable && facts->loader.workers > 1;
    return strcmp(rule->code, "ST225") || facts->rank_count > 1;
}
