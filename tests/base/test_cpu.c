/* CPUs and memory are those of the affinity mask and of the cgroup, version 1 or 2, ancestors included. */
#include "base/cpu.h"
#include "base/fake_root.h"
#include "tap.h"

#include <unistd.h>

int main(void)
{
    if (!mkdtemp(root))
        return 1;
    ok(st_cgroup_cpus(root) == UINT32_MAX, "no cgroup, no limit");

    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    ok(st_cgroup_cpus(root) == UINT32_MAX, "v2 'max' is no limit");
    put("/sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
    ok(st_cgroup_cpus(root) == 3, "v2: 2.5 CPUs round up to 3");
    put("/sys/fs/cgroup/a/cpu.max", "100000 100000\n");
    ok(st_cgroup_cpus(root) == 1, "v2: an ancestor's quota counts");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    ok(st_cgroup_memory(root) == UINT64_MAX, "v2 memory 'max' is no limit");
    put("/sys/fs/cgroup/a/memory.max", "1073741824\n");
    ok(st_cgroup_memory(root) == 1u << 30, "v2: an ancestor's memory counts");

    put("/proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/box\n");
    put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
    ok(st_cgroup_cpus(root) == UINT32_MAX, "v1 -1 is no limit");
    put("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "50000\n");
    ok(st_cgroup_cpus(root) == 1, "v1: half a CPU counts as one");
    put("/proc/self/cgroup", "9:cpuset:/other\n8:cpuacct:/other\n7:memory:/m\n4:cpuacct,cpu:/box\n");
    ok(st_cgroup_cpus(root) == 1, "v1: neither cpuset nor cpuacct is cpu");
    put("/proc/self/cgroup", "9:cpuset:/box\n8:cpuacct:/box\n5:memory:/m\n");
    ok(st_cgroup_cpus(root) == UINT32_MAX, "v1: no cpu controller, no limit");
    put("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "4096\n");
    ok(st_cgroup_memory(root) == 4096, "v1 memory");

    ok(st_cpu_count() >= 1 && st_memory_limit() > 1 << 20, "this machine has CPUs and memory");
    unsetenv("LOCAL_WORLD_SIZE");
    const uint32_t cpus = st_cpu_count();
    ok(st_cpu_share() == cpus, "alone on this machine, all %u CPUs", cpus);
    static const char *const odd[] = {"", "0", "-2", "two", "2x", " 2", "18446744073709551617"};
    for (int i = 0; i < 7; i++) {
        setenv("LOCAL_WORLD_SIZE", odd[i], 1);
        ok(st_cpu_share() == cpus, "LOCAL_WORLD_SIZE='%s' divides nothing", odd[i]);
    }
    setenv("LOCAL_WORLD_SIZE", "2", 1);
    ok(st_cpu_share() == (cpus > 1 ? cpus / 2 : 1), "half of them for two ranks");
    setenv("LOCAL_WORLD_SIZE", "1024", 1);
    ok(st_cpu_share() == (cpus > 1024 ? cpus / 1024 : 1), "one for each of many ranks");
    unsetenv("LOCAL_WORLD_SIZE");
    const enum st_cpu_level best = st_cpu_level();
    setenv("STOKER_CPU", "c", 1);
    ok(st_cpu_level() == ST_CPU_C, "STOKER_CPU=c asks for plain C");
#if defined(__x86_64__)
    setenv("STOKER_CPU", "sse2", 1);
    ok(st_cpu_level() == ST_CPU_SSE2 && best >= ST_CPU_SSE2, "every x86-64 has at least SSE2");
#endif
    setenv("STOKER_CPU", "no such thing", 1);
    ok(st_cpu_level() == best, "an unknown level leaves the best (%s)", st_cpu_level_name(best));

    return done_testing() | remove_root();
}
