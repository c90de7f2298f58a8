/* cpu.h - the instruction sets of this CPU, and how many CPUs this process may use
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
    ST_CPU_NEON,   /* any aarch64 */
    ST_CPU_SSE2,   /* any x86-64 */
    ST_CPU_AVX2,   /* x86-64 with AVX2, FMA, BMI2 and F16C */
    ST_CPU_AVX512, /* also AVX-512 F, BW, DQ, VL, VBMI, VNNI (Ice Lake and newer, Zen 4 and newer) */
};

/* The best level of this CPU, or a lower one set by the environment variable STOKER_CPU (c, neon, sse2,
 * avx2, avx512). Detected on every call: keep the result. */
enum st_cpu_level st_cpu_level(void);
const char *st_cpu_level_name(enum st_cpu_level level);

/* min(CPUs in the affinity mask, cgroup v1 or v2 quota rounded up), at least 1. */
uint32_t st_cpu_count(void);
/* CPUs in the affinity mask of a process (0: this one); 0 if that process does not exist. */
uint32_t st_affinity_cpus(int process);
/* The same, and sets allowed[k] for each of them whose number is k < room; leaves the others as they
 * are. */
uint32_t st_affinity_add(int process, bool *allowed, uint32_t room);
/* Number of processes that a launcher (torchrun) has started on this host, from LOCAL_WORLD_SIZE; 1 if
 * not set. */
uint32_t st_local_processes(void);
/* Each such process's share of st_cpu_count, rounded down, at least 1. */
uint32_t st_cpu_share(void);
/* Bytes of physical memory. */
uint64_t st_memory_all(void);
/* min(physical memory, cgroup limit, st_process_memory) in bytes. */
uint64_t st_memory_limit(void);

/* Bytes that this process may still map: what its limits (ulimit -v and -d) leave; UINT64_MAX: no
 * limit. */
uint64_t st_process_memory(void);

/* The quota in CPUs, not rounded: the minimum over this process's cgroup and its ancestors; infinity:
 * none. `root` is "" except in tests, here and below. */
double st_cgroup_quota(const char *root);
/* The folder of this process's cgroup, or of the ancestor `up_by` levels above, without `root`;
 * `controller`: NULL for version 2, "cpu" or "memory" for version 1. False if there is none. */
bool st_cgroup_folder(const char *root, const char *controller, uint32_t up_by, char *out, size_t room);
/* The cgroup's contribution to st_cpu_count and st_memory_limit. */
uint32_t st_cgroup_cpus(const char *root);
uint64_t st_cgroup_memory(const char *root);

#endif
