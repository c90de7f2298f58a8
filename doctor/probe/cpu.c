/* cpu.c - busy CPUs: of the machine from /proc/stat, of the run from its processes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/probe/probes.h"

#include "base/cpu.h"
#include "cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cpu {
    int stat;
    struct dr_counter busy, allowed_busy, stolen;
    struct dr_limits *limits;
    uint64_t looked_ns;
    bool allowed[STAT_CPUS]; /* CPUs that any process of the run may use; `count` in number */
    uint32_t count;
    char text[STAT_ROOM];
};

static double machine_cpus(const char *root)
{
    char text[256];
    if (!dr_file_once(root, "/sys/devices/system/cpu/online", text, sizeof text)) {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        return online > 0 ? (double)online : NAN;
    }
    double count = 0;
    for (char *at = text; *at >= '0' && *at <= '9';) { /* "0-3,8-11" */
        const unsigned long from = strtoul(at, &at, 10);
        const unsigned long to = *at == '-' ? strtoul(at + 1, &at, 10) : from;
        count += to >= from ? (double)(to - from) + 1 : 0;
        at += *at == ',';
    }
    return count;
}

static double machine_nodes(const char *root)
{
    char path[64], text[16];
    int nodes = 0;
    do
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", nodes);
    while (dr_file_once(root, path, text, sizeof text) && ++nodes < 1024);
    return nodes ? nodes : NAN;
}

static void name_cpu(const char *root, struct dr_limits *limits)
{
    char text[4096];
    if (!dr_file_once(root, "/proc/cpuinfo", text, sizeof text))
        return;
    char *name = strstr(text, "model name");
    name = name ? strchr(name, ':') : NULL;
    if (name)
        snprintf(limits->cpu_name, sizeof limits->cpu_name, "%s", dr_text_line(name + 1));
}

static void set_cpus(struct dr_limits *limits)
{
    limits->cpus = isnan(limits->cpus_quota) ? limits->cpus_affinity
                                             : fmin(limits->cpus_affinity, limits->cpus_quota);
}

static bool cpu_open(void *state, const char *root, struct dr_limits *limits, struct dr_absent *absent)
{
    struct cpu *cpu = state;
    const double quota = st_cgroup_quota(root);
    cpu->limits = limits;
    limits->cpus_quota = isinf(quota) ? NAN : quota;
    limits->cpus_affinity = st_affinity_cpus(0);
    limits->cpus_machine = machine_cpus(root);
    limits->nodes = machine_nodes(root);
    name_cpu(root, limits);
    set_cpus(limits);
    cpu->stat = dr_file_open(root, "/proc/stat");
    if (cpu->stat < 0)
        dr_absent_add(absent, dr_machine_signals[DR_CPU_BUSY].name, "cannot read /proc/stat",
                      "mount /proc as usual");
    return true;
}

/* The command may be bound to fewer CPUs than this program (taskset, numactl, Slurm), and each of its
 * ranks to others. */
static void look_at_affinity(struct cpu *cpu, const struct dr_watched *watched)
{
    bool allowed[STAT_CPUS] = {false};
    uint32_t most = 0, count = 0;
    for (uint32_t k = 0; k < watched->processes && k < 32; k++) {
        const uint32_t own = st_affinity_add(watched->process[k].pid, allowed, STAT_CPUS);
        most = own > most ? own : most;
    }
    if (!most)
        return;
    for (uint32_t k = 0; k < STAT_CPUS; k++)
        count += allowed[k];
    if (memcmp(allowed, cpu->allowed, sizeof allowed)) {
        memcpy(cpu->allowed, allowed, sizeof allowed);
        cpu->allowed_busy.known = false;
    }
    cpu->count = count > most ? count : most;
    cpu->limits->cpus_affinity = cpu->count;
    set_cpus(cpu->limits);
}

static void sample_busy(struct cpu *cpu, struct dr_tick *tick)
{
    const double seconds = dr_tick_seconds(tick);
    const bool some = cpu->count && cpu->count < cpu->limits->cpus_machine;
    /* the first line is enough if it is that of the CPUs we want */
    if (!(some ? dr_file_whole(cpu->stat, cpu->text, sizeof cpu->text)
               : dr_file_text(cpu->stat, cpu->text, 512)))
        return;
    double stolen;
    const double busy = busy_cpu_seconds(cpu->text, &stolen);
    tick->machine[DR_CPU_BUSY] = dr_counter_rate(&cpu->busy, busy, seconds);
    tick->machine[DR_CPU_STOLEN] = dr_counter_rate(&cpu->stolen, stolen, seconds);
    tick->machine[DR_CPU_ALLOWED] =
        some ? dr_counter_rate(&cpu->allowed_busy,
                               allowed_cpu_seconds(cpu->text, cpu->allowed, STAT_CPUS, cpu->count),
                               seconds)
             : tick->machine[DR_CPU_BUSY];
}

static void cpu_sample(void *state, struct dr_tick *tick, const struct dr_watched *watched)
{
    struct cpu *cpu = state;
    if (tick->now_ns - cpu->looked_ns >= UINT64_C(1000000000)) {
        cpu->looked_ns = tick->now_ns;
        look_at_affinity(cpu, watched);
    }
    sample_busy(cpu, tick);
    double ours = 0, system = 0;
    bool known = false;
    for (uint32_t k = 0; k < watched->processes; k++) {
        const double *row = watched->process[k].table.values;
        if (isnan(row[DR_P_ON_CPU]))
            continue;
        known = true;
        ours += row[DR_P_ON_CPU];
        system += isnan(row[DR_P_SYSTEM]) ? 0 : row[DR_P_SYSTEM];
    }
    if (known) {
        tick->machine[DR_CPU_OURS] = ours;
        tick->machine[DR_CPU_SYSTEM] = system;
    }
}

static void cpu_close(void *state) { dr_file_close(&((struct cpu *)state)->stat); }

const struct dr_probe dr_probe_cpu = {"cpu", sizeof(struct cpu), cpu_open, cpu_sample, cpu_close};
