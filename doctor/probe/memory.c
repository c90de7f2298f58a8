/* memory.c - available memory, the page cache and its refaults, within the limit of the cgroup if there
 * is one
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

#include "base/cpu.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

struct memory {
    int meminfo, vmstat;
    int group_stat, group_used; /* of the cgroup that sets the limit; -1: there is none */
    double limit;
    bool first_version;
    struct dr_counter refaults;
};

/* The nearest parent group whose limit applies. */
static bool open_group(struct memory *memory, const char *root, const char *controller, double limit)
{
    char folder[PATH_MAX], path[PATH_MAX + 32];
    for (uint32_t k = 0; st_cgroup_folder(root, controller, k, folder, sizeof folder); k++) {
        snprintf(path, sizeof path, "%s/%s", folder,
                 controller ? "memory.limit_in_bytes" : "memory.max");
        if (dr_file_number(root, path) != limit)
            continue;
        snprintf(path, sizeof path, "%s/memory.stat", folder);
        memory->group_stat = dr_file_open(root, path);
        snprintf(path, sizeof path, "%s/%s", folder,
                 controller ? "memory.usage_in_bytes" : "memory.current");
        memory->group_used = dr_file_open(root, path);
        memory->first_version = controller != NULL;
        return true;
    }
    return false;
}

static bool memory_open(void *state, const char *root, struct dr_limits *limits,
                        struct dr_absent *absent)
{
    struct memory *memory = state;
    char text[8192];
    memory->group_stat = memory->group_used = -1;
    memory->meminfo = dr_file_open(root, "/proc/meminfo");
    memory->vmstat = dr_file_open(root, "/proc/vmstat");
    if (dr_file_text(memory->meminfo, text, sizeof text))
        limits->memory_machine = 1024 * dr_text_number(text, "MemTotal:");
    const uint64_t group = st_cgroup_memory(root);
    limits->memory = limits->memory_machine;
    /* Version 1 expresses "no limit" as a number larger than the memory. */
    if (group != UINT64_MAX && !((double)group >= limits->memory_machine)) {
        limits->memory = memory->limit = (double)group;
        if (!open_group(memory, root, NULL, memory->limit))
            open_group(memory, root, "memory", memory->limit);
    }
    if (memory->meminfo < 0 && memory->group_stat < 0)
        dr_absent_all(absent, DR_MEMORY_AVAILABLE, DR_MEMORY_CACHE, "cannot read /proc/meminfo",
                      "mount /proc as usual");
    if (memory->vmstat < 0 && memory->group_stat < 0)
        dr_absent_add(absent, dr_machine_signals[DR_REFAULTS].name, "cannot read /proc/vmstat",
                      "mount /proc as usual");
    return true;
}

/* Of the group: page cache can be reclaimed, so it counts as available. */
static void sample_group(struct memory *memory, const char *text, double *available, double *cache)
{
    char number[64];
    const char *prefix = memory->first_version ? "total_" : "";
    char word[64];
    snprintf(word, sizeof word, "%s ", memory->first_version ? "total_cache" : "file");
    *cache = dr_text_number(text, word);
    snprintf(word, sizeof word, "%sinactive_file ", prefix);
    const double inactive = dr_text_number(text, word);
    snprintf(word, sizeof word, "%sactive_file ", prefix);
    const double active = dr_text_number(text, word);
    if (!dr_file_text(memory->group_used, number, sizeof number))
        return;
    double used = NAN;
    if (sscanf(number, "%lf", &used) == 1)
        *available = fmin(*available, fmax(0, memory->limit - used + inactive + active));
}

static double refaults_of(const char *text, bool first_version)
{
    static const char *const words[] = {"workingset_refault_file ", "workingset_refault "};
    double value = first_version ? dr_text_number(text, "total_workingset_refault_file ") : NAN;
    for (int k = 0; k < 2 && isnan(value); k++)
        value = dr_text_number(text, words[k]);
    return value;
}

static void memory_sample(void *state, struct dr_tick *tick, const struct dr_watched *watched)
{
    struct memory *memory = state;
    char text[16384];
    double available = INFINITY, cache = NAN, refaults = NAN;
    (void)watched;
    if (dr_file_text(memory->meminfo, text, sizeof text)) {
        available = 1024 * dr_text_number(text, "MemAvailable:");
        cache = 1024 * dr_text_number(text, "Cached:");
    }
    if (dr_file_text(memory->group_stat, text, sizeof text)) {
        sample_group(memory, text, &available, &cache);
        refaults = refaults_of(text, memory->first_version);
    }
    if (isnan(refaults) && dr_file_text(memory->vmstat, text, sizeof text))
        refaults = refaults_of(text, false);
    tick->machine[DR_MEMORY_AVAILABLE] = isinf(available) ? NAN : available;
    tick->machine[DR_MEMORY_CACHE] = cache;
    tick->machine[DR_REFAULTS] = dr_counter_rate(&memory->refaults, refaults, dr_tick_seconds(tick));
}

static void memory_close(void *state)
{
    struct memory *memory = state;
    dr_file_close(&memory->meminfo);
    dr_file_close(&memory->vmstat);
    dr_file_close(&memory->group_stat);
    dr_file_close(&memory->group_used);
}

const struct dr_probe dr_probe_memory = {"memory",      sizeof(struct memory), memory_open,
                                         memory_sample, memory_close,          .pause_ms = DR_SLOW_MS};
