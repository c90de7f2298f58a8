/* machine.c - CPUs, memory, limits, kernel and environment
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/machine/machine.h"

#include "cli/cli.h"
#include "doctor/probe/probes.h"
#include "doctor/rule/words.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define GIB (1024.0 * 1024 * 1024)
#define MIB (1024.0 * 1024)

const char *const dr_grade_names[DR_GRADES] = {"good", "improve", "broken", "n/a"};

void dr_check_add(struct dr_checks *checks, enum dr_grade grade, const char *topic, const char *remedy,
                  const char *format, ...)
{
    if (checks->count == DR_CHECKS_MOST)
        return;
    struct dr_check *check = &checks->check[checks->count++];
    va_list args;
    check->grade = grade;
    snprintf(check->topic, sizeof check->topic, "%s", topic);
    snprintf(check->remedy, sizeof check->remedy, "%s", remedy);
    va_start(args, format);
    vsnprintf(check->text, sizeof check->text, format, args);
    va_end(args);
}

/* What the probes find out when they are opened. */
static struct dr_limits ask_probes(void)
{
    struct dr_limits limits = {0};
    struct dr_absent absent = {0};
    static const struct dr_probe *const asked[] = {&dr_probe_cpu, &dr_probe_memory, &dr_probe_shm};
    for (size_t at = 0; at < offsetof(struct dr_limits, gpu_name); at += sizeof(double))
        memcpy((char *)&limits + at, &(double){NAN}, sizeof(double));
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        void *state = calloc(1, asked[k]->state_size);
        if (state) {
            asked[k]->open(state, "", &limits, &absent);
            asked[k]->close(state);
        }
        free(state);
    }
    dr_absent_free(&absent);
    return limits;
}

/* The first line where it is bad: whatever is measured meanwhile is of a busy machine. */
static void check_others(struct dr_checks *checks)
{
    char text[128];
    const struct others others = cpus_of_others();
    if (others_text(text, sizeof text, &others))
        dr_check_add(checks, DR_IMPROVE, "others", "stop the other programs, or measure later", "%s",
                     text);
    else if (isnan(others.used))
        dr_check_add(checks, DR_NOT_HERE, "others", "", "/proc/stat does not tell how busy CPUs are");
    else
        dr_check_add(checks, DR_GOOD, "others", "", "other programs use %.1f of %.0f CPUs",
                     others.used, others.allowed);
}

static void check_cpus(struct dr_checks *checks, const struct dr_limits *limits)
{
    char quota[64] = "no quota", remedy[200] = "";
    if (!isnan(limits->cpus_quota))
        snprintf(quota, sizeof quota, "quota %.2f", limits->cpus_quota);
    const bool less = limits->cpus < limits->cpus_machine;
    if (less)
        snprintf(remedy, sizeof remedy,
                 "size num_workers and thread pools for %.4g CPU%s, not for the %.0f of os.cpu_count()",
                 limits->cpus, dr_s(limits->cpus), limits->cpus_machine);
    dr_check_add(
        checks, limits->cpus < 2 || less ? DR_IMPROVE : DR_GOOD, "CPUs",
        limits->cpus < 2 && !less ? "workers and training share one CPU: use another machine"
                                  : remedy,
        "%.4g usable (machine %.0f, affinity %.0f, %s)%s%s", limits->cpus, limits->cpus_machine,
        limits->cpus_affinity, quota, limits->cpu_name[0] ? ", " : "", limits->cpu_name);
    if (isnan(limits->nodes))
        dr_check_add(checks, DR_NOT_HERE, "NUMA", "", "the kernel does not list NUMA nodes");
    else
        dr_check_add(checks, limits->nodes > 1 ? DR_IMPROVE : DR_GOOD, "NUMA",
                     limits->nodes > 1
                         ? "bind each rank to the node of its GPU: torchrun --numa-binding=node"
                         : "",
                     "%.0f node%s", limits->nodes, limits->nodes > 1 ? "s" : "");
}

static void check_memory(struct dr_checks *checks, const struct dr_limits *limits)
{
    char text[4096];
    double cache = NAN, available = NAN;
    if (dr_file_once("", "/proc/meminfo", text, sizeof text)) {
        cache = 1024 * dr_text_number(text, "Cached:");
        available = 1024 * dr_text_number(text, "MemAvailable:");
    }
    const bool limited = limits->memory < limits->memory_machine;
    dr_check_add(
        checks, limits->memory < 2 * GIB ? DR_IMPROVE : DR_GOOD, "memory",
        limited
            ? "the page cache counts against the limit of the cgroup: a larger dataset is read from "
              "the disk again in every epoch"
            : "",
        "%.1f GiB%s, %.1f GiB available, %.1f GiB of it page cache", limits->memory / GIB,
        limited ? " (limit of the cgroup)" : "", available / GIB, cache / GIB);
    if (isnan(limits->shm))
        dr_check_add(checks, DR_BROKEN, "/dev/shm",
                     "mount a tmpfs there: worker processes pass batches through it", "does not exist");
    else
        dr_check_add(checks,
                     limits->shm <= 64 * MIB ? DR_BROKEN
                     : limits->shm < GIB     ? DR_IMPROVE
                                             : DR_GOOD,
                     "/dev/shm",
                     limits->shm < GIB
                         ? "docker run --shm-size=8g, or --ipc=host: workers die with a bus error when "
                           "it is full"
                         : "",
                     limits->shm < GIB ? "%.0f MiB" : "%.1f GiB",
                     limits->shm / (limits->shm < GIB ? MIB : GIB));
}

static void check_limits(struct dr_checks *checks)
{
    struct rlimit limit;
    if (!getrlimit(RLIMIT_NOFILE, &limit))
        dr_check_add(checks,
                     limit.rlim_cur < 256    ? DR_BROKEN
                     : limit.rlim_cur < 4096 ? DR_IMPROVE
                                             : DR_GOOD,
                     "open files",
                     limit.rlim_cur < 4096
                         ? "ulimit -n 65536: each tensor from a worker may need a file descriptor"
                         : "",
                     "%llu", (unsigned long long)limit.rlim_cur);
    if (!getrlimit(RLIMIT_MEMLOCK, &limit)) {
        char size[32] = "unlimited";
        if (limit.rlim_cur != RLIM_INFINITY)
            snprintf(size, sizeof size, "%.0f KiB", (double)limit.rlim_cur / 1024);
        const bool low = limit.rlim_cur < 64 * 1024;
        dr_check_add(checks, low ? DR_IMPROVE : DR_GOOD, "locked memory",
                     low ? "ulimit -l unlimited: io_uring needs it on older kernels" : "", "%s", size);
    }
}

static bool kernel_has(long number)
{
    errno = 0;
    return syscall(number, -1, 0, 0, 0, 0, 0) >= 0 || (errno != ENOSYS && errno != EPERM);
}

static void check_kernel(struct dr_checks *checks)
{
    struct utsname name;
    char text[256];
    uname(&name);
    const bool uring = kernel_has(SYS_io_uring_setup),
               pressure = dr_file_once("", "/proc/pressure/cpu", text, 64);
    const long cachestat = 451; /* the same number on all architectures; some headers lack it */
    const char *groups = access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0 ? "2"
                         : access("/sys/fs/cgroup/memory", R_OK) == 0           ? "1"
                                                                                : "unknown";
    dr_check_add(
        checks, uring ? DR_GOOD : DR_IMPROVE, "io_uring",
        uring ? "" : "allow it (sysctl kernel.io_uring_disabled=0, the container's seccomp profile)",
        "%s; Linux %.64s", uring ? "yes" : "no: a thread pool reads files instead", name.release);
    dr_check_add(checks, pressure ? DR_GOOD : DR_IMPROVE, "pressure",
                 pressure ? "" : "boot with psi=1: PSI shows what processes wait for", "PSI %s",
                 pressure ? "yes" : "no");
    dr_check_add(checks, DR_GOOD, "kernel", "", "cachestat %s, cgroup version %s",
                 kernel_has(cachestat) ? "yes" : "no", groups);
}

static void check_environment(struct dr_checks *checks, const struct dr_limits *limits)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"};
    char text[256] = "";
    bool too_many = false, any = false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const char *value = getenv(names[k]);
        any |= value != NULL;
        too_many |= value && atof(value) > limits->cpus;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s=%.16s", k ? " " : "", names[k],
                 value ? value : "(unset)");
    }
    const bool misled = !any && limits->cpus < limits->cpus_machine;
    dr_check_add(
        checks, too_many || misled ? DR_IMPROVE : DR_GOOD, "threads",
        too_many || misled
            ? "export OMP_NUM_THREADS=1 for workers: libraries start one thread for each CPU they "
              "see"
            : "",
        "%s", text);
}

void dr_check_machine(struct dr_checks *checks)
{
    const struct dr_limits limits = ask_probes();
    check_others(checks);
    check_cpus(checks, &limits);
    check_memory(checks, &limits);
    check_limits(checks);
    check_kernel(checks);
    check_environment(checks, &limits);
}
