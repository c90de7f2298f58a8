/* cpu.c - the instruction sets of this CPU, and how many CPUs this process may use
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/cpu.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const level_names[] = {
    [ST_CPU_C] = "c", [ST_CPU_NEON] = "neon", [ST_CPU_SSE2] = "sse2", [ST_CPU_AVX2] = "avx2",
    [ST_CPU_AVX512] = "avx512"};

#if defined(__x86_64__)
/* Not every compiler's __builtin_cpu_supports knows this one. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static enum st_cpu_level detect(void)
{
#if defined(__aarch64__)
    return ST_CPU_NEON;
#elif defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi2") || !has_f16c())
        return ST_CPU_SSE2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni"))
        return ST_CPU_AVX512;
    return ST_CPU_AVX2;
#else
    return ST_CPU_C;
#endif
}

enum st_cpu_level st_cpu_level(void)
{
    const enum st_cpu_level best = detect();
    const char *asked = getenv("STOKER_CPU");
    if (!asked)
        return best;
    if (!strcmp(asked, "c"))
        return ST_CPU_C;
    for (int level = ST_CPU_NEON; level <= (int)best; level++)
        if (!strcmp(asked, level_names[level]) && (best == ST_CPU_NEON || level != ST_CPU_NEON))
            return (enum st_cpu_level)level;
    return best; /* an unknown or unsupported level: use the best one */
}

const char *st_cpu_level_name(enum st_cpu_level level) { return level_names[level]; }

/* The first two words of a small file; false if it cannot be read. */
static bool read_words(const char *root, const char *path, char a[32], char b[32])
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s%s", root, path) >= (int)sizeof name)
        return false;
    FILE *f = fopen(name, "re");
    if (!f)
        return false;
    a[0] = b[0] = '\0';
    const int found = fscanf(f, "%31s %31s", a, b);
    fclose(f);
    return found >= 1;
}

/* Whether a list of controllers ("cpu,cpuacct") contains this one; "cpuset" does not match "cpu". */
static bool names(const char *list, const char *controller)
{
    const size_t length = strlen(controller);
    for (; *list; list += *list == ',') {
        const size_t size = strcspn(list, ",");
        if (size == length && !memcmp(list, controller, length))
            return true;
        list += size;
    }
    return false;
}

/* The path of this process's cgroup. Callers walk from there up to the root, since each ancestor's limit
 * applies. */
static bool cgroup_path(const char *root, const char *controller, char path[PATH_MAX])
{
    char name[PATH_MAX], line[PATH_MAX];
    if (snprintf(name, sizeof name, "%s/proc/self/cgroup", root) >= (int)sizeof name)
        return false;
    FILE *f = fopen(name, "re");
    if (!f)
        return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) {
        char *list = strchr(line, ':');
        char *where = list ? strchr(list + 1, ':') : NULL;
        if (!where)
            continue;
        *where++ = '\0';
        where[strcspn(where, "\n")] = '\0';
        const bool v2 = list[1] == '\0';
        if (controller ? names(list + 1, controller) : v2) {
            strcpy(path, where);
            found = true;
        }
    }
    fclose(f);
    return found;
}

static void up(char *path)
{
    char *slash = strrchr(path, '/');
    *(slash ? slash : path) = '\0';
}

bool st_cgroup_folder(const char *root, const char *controller, uint32_t up_by, char *out, size_t room)
{
    char path[PATH_MAX];
    if (!cgroup_path(root, controller, path))
        return false;
    if (!strcmp(path, "/"))
        path[0] = '\0';
    for (; up_by && path[0]; up_by--)
        up(path);
    return !up_by && snprintf(out, room, "/sys/fs/cgroup%s%s%s", controller ? "/" : "",
                              controller ? controller : "", path) < (int)room;
}

/* In CPUs; infinity for "max" or -1, which mean no limit. */
static double quota(const char *max, const char *period)
{
    const double q = atof(max), p = atof(period);
    return q > 0 && p > 0 ? q / p : INFINITY;
}

double st_cgroup_quota(const char *root)
{
    char path[PATH_MAX], name[PATH_MAX + 64], a[32], b[32];
    double least = INFINITY;

    for (uint32_t k = 0; st_cgroup_folder(root, NULL, k, path, sizeof path); k++) {
        snprintf(name, sizeof name, "%s/cpu.max", path);
        if (read_words(root, name, a, b))
            least = fmin(least, quota(a, b));
    }
    for (uint32_t k = 0; st_cgroup_folder(root, "cpu", k, path, sizeof path); k++) {
        char max[32], period[32];
        snprintf(name, sizeof name, "%s/cpu.cfs_quota_us", path);
        const bool has_max = read_words(root, name, max, b);
        snprintf(name, sizeof name, "%s/cpu.cfs_period_us", path);
        if (has_max && read_words(root, name, period, b))
            least = fmin(least, quota(max, period));
    }
    return least;
}

uint32_t st_cgroup_cpus(const char *root)
{
    const double cpus = st_cgroup_quota(root);
    return cpus < 1 ? 1 : cpus >= 1e6 ? UINT32_MAX : (uint32_t)(cpus + 0.999);
}

uint64_t st_cgroup_memory(const char *root)
{
    static const char *const controllers[] = {NULL, "memory"};
    char path[PATH_MAX], name[PATH_MAX + 64], a[32], b[32];
    uint64_t least = UINT64_MAX;

    for (int k = 0; k < 2; k++)
        for (uint32_t level = 0; st_cgroup_folder(root, controllers[k], level, path, sizeof path);
             level++) {
            snprintf(name, sizeof name, "%s/%s", path, k ? "memory.limit_in_bytes" : "memory.max");
            if (read_words(root, name, a, b) && a[0] != 'm') {
                const uint64_t here = strtoull(a, NULL, 10);
                least = here && here < least ? here : least;
            }
        }
    return least;
}

uint32_t st_affinity_add(int process, bool *allowed, uint32_t room)
{
    /* A machine may have more CPUs than the fixed-size cpu_set_t holds. */
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC(cpus);
        if (!set)
            break;
        const size_t bytes = CPU_ALLOC_SIZE(cpus);
        if (sched_getaffinity(process, bytes, set) == 0) {
            const int count = CPU_COUNT_S(bytes, set);
            for (uint32_t k = 0; k < room && k < (uint32_t)cpus; k++)
                allowed[k] |= CPU_ISSET_S(k, bytes, set) != 0;
            CPU_FREE(set);
            return count > 0 ? (uint32_t)count : 1;
        }
        CPU_FREE(set);
    }
    if (process)
        return 0;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    for (long k = 0; k < online && k < (long)room; k++)
        allowed[k] = true;
    return online > 0 ? (uint32_t)online : 1;
}

uint32_t st_affinity_cpus(int process) { return st_affinity_add(process, NULL, 0); }

uint32_t st_cpu_count(void)
{
    const uint32_t allowed = st_affinity_cpus(0), paid = st_cgroup_cpus("");
    return allowed < paid ? allowed : paid;
}

uint32_t st_local_processes(void)
{
    enum { MOST = 1024 };
    const char *text = getenv("LOCAL_WORLD_SIZE");
    char *end;
    if (!text || *text < '0' || *text > '9')
        return 1;
    const unsigned long count = strtoul(text, &end, 10);
    return *end || count < 1 || count > MOST ? 1 : (uint32_t)count;
}

uint32_t st_cpu_share(void)
{
    const uint32_t cpus = st_cpu_count(), processes = st_local_processes();
    return processes >= cpus ? 1 : cpus / processes;
}

uint64_t st_memory_all(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}

/* Pages mapped now: field 0 of /proc/self/statm is all, field 5 data and stack. 0 if unknown. */
static uint64_t mapped(uint32_t field)
{
    unsigned long long pages[6] = {0};
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%llu %llu %llu %llu %llu %llu", &pages[0], &pages[1], &pages[2], &pages[3],
                    &pages[4], &pages[5]) != 6)
        memset(pages, 0, sizeof pages);
    if (f)
        fclose(f);
    return pages[field] * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t st_process_memory(void)
{
    static const struct {
        int which;
        uint32_t field;
    } limits[] = {{RLIMIT_AS, 0}, {RLIMIT_DATA, 5}};
    uint64_t least = UINT64_MAX;
    for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)limits[k].which, &limit) || limit.rlim_cur == RLIM_INFINITY)
            continue;
        const uint64_t most = limit.rlim_cur, now = mapped(limits[k].field);
        const uint64_t left = most > now ? most - now : 0;
        least = left < least ? left : least;
    }
    return least;
}

uint64_t st_memory_limit(void)
{
    const uint64_t all = st_memory_all(), ours = st_cgroup_memory(""), process = st_process_memory();
    const uint64_t least = ours < all ? ours : all;
    return process < least ? process : least;
}
