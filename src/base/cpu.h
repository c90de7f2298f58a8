/* cpu.h - which instructions this CPU has, and how many CPUs are ours
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_BASE_CPU_H
#define ST_BASE_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum st_cpu_level {
    ST_CPU_C,      /* plain C: the specification of every kernel */
    ST_CPU_NEON,   /* aarch64, always there */
    ST_CPU_SSE2,   /* x86-64, always there */
    ST_CPU_AVX2,   /* x86-64 with AVX2, FMA, BMI2 and F16C */
    ST_CPU_AVX512, /* and AVX-512 F, BW, DQ, VL, VBMI, VNNI (Ice Lake and newer, Zen 4 and newer) */
};

/* The best level of this CPU, or a lower one named by the environment variable STOKER_CPU
 * (c, neon, sse2, avx2, avx512). Asks anew each time: keep the answer. */
enum st_cpu_level st_cpu_level(void);
const char *st_cpu_level_name(enum st_cpu_level level);

/* min(CPUs in the affinity mask, cgroup v1 or v2 quota rounded up), at least 1. */
uint32_t st_cpu_count(void);
/* CPUs in the affinity mask of a process, 0 for this one; 0 where another is gone. */
uint32_t st_affinity_cpus(int process);
/* Processes of this host that a launcher (torchrun) has started, by LOCAL_WORLD_SIZE; 1: nobody says. */
uint32_t st_local_processes(void);
/* The share of each of them: of st_cpu_count, rounded down, at least 1. */
uint32_t st_cpu_share(void);
/* Bytes of physical memory. */
uint64_t st_memory_all(void);
/* min(physical memory, cgroup limit) in bytes. */
uint64_t st_memory_limit(void);

/* The quota in CPUs, not rounded: the least of this process's cgroup and those above; infinity: none. `root` is "" but
 * for tests, here and below. */
double st_cgroup_quota(const char *root);
/* The folder of this process's cgroup, or the one so many levels above, without the root in front; `controller`: NULL for
 * version 2, "cpu" or "memory" for version 1. False: there is none. */
bool st_cgroup_folder(const char *root, const char *controller, uint32_t up_by, char *out, size_t room);
/* The parts of st_cpu_count and st_memory_limit that come from the cgroup. */
uint32_t st_cgroup_cpus(const char *root);
uint64_t st_cgroup_memory(const char *root);

#endif
