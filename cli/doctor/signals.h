/* signals.h - everything the doctor samples from outside, by name
 *
 * One line is one signal: identifier, name in run.json, unit, what it means. Signals of the machine are
 * sampled once a tick; signals of a process once a tick for each process of the run. A value that could
 * not be had is NaN, never 0, and the probe says why (probe.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SIGNALS_H
#define ST_DOCTOR_SIGNALS_H

#define DR_MACHINE_SIGNALS(X)                                                                           \
    X(CPU_BUSY, "cpu.busy", "cpus", "CPUs at work on this machine, whoever uses them")                  \
    X(CPU_OURS, "cpu.ours", "cpus", "CPUs used by the processes of the run")                            \
    X(CPU_SYSTEM, "cpu.system", "cpus", "of cpu.ours, time in the kernel")                              \
    X(CPU_THROTTLED, "cpu.throttled", "share",                                                          \
      "time that the cgroup's quota kept its processes off the CPUs")                                   \
    X(PSI_CPU, "psi.cpu", "share", "time in which a task waited for a CPU")                             \
    X(PSI_IO, "psi.io", "share", "time in which a task waited for storage")                             \
    X(PSI_MEMORY, "psi.memory", "share", "time in which a task waited for memory")                      \
    X(MEMORY_AVAILABLE, "memory.available", "bytes",                                                    \
      "memory that can be had, within the cgroup's limit")                                              \
    X(MEMORY_CACHE, "memory.cache", "bytes", "page cache, of the cgroup where it counts")               \
    X(REFAULTS, "memory.refaults", "pages/s", "pages of files read again soon after they were evicted") \
    X(SHM_USED, "shm.used", "bytes", "used in /dev/shm")                                                \
    X(SHM_FREE, "shm.free", "bytes", "free in /dev/shm")                                                \
    X(DISK_READ, "disk.read", "bytes/s", "read from the disks that the data lie on")                    \
    X(DISK_READS, "disk.reads", "1/s", "read requests completed by them")                               \
    X(DISK_AWAIT, "disk.await", "s", "mean time of one read request")                                   \
    X(DISK_BUSY, "disk.busy", "share", "time with at least one request, of the busiest of these disks") \
    X(NET_RECEIVED, "net.received", "bytes/s", "received, without loopback")                            \
    X(NET_LOOPBACK, "net.loopback", "bytes/s", "received on loopback")                                  \
    X(GPU_BUSY, "gpu.busy", "share", "time with any kernel at all (NVML): one thread makes it 1")       \
    X(GPU_SM, "gpu.sm_active", "share", "multiprocessors at work (GPM)")                                \
    X(GPU_TENSOR, "gpu.tensor", "share", "tensor cores at work (GPM)")                                  \
    X(GPU_DRAM, "gpu.dram", "share", "the GPU's memory bandwidth in use (GPM)")                         \
    X(GPU_PCIE_IN, "gpu.pcie_in", "bytes/s", "to the GPU")                                              \
    X(GPU_PCIE_OUT, "gpu.pcie_out", "bytes/s", "from the GPU")                                          \
    X(GPU_MEMORY, "gpu.memory", "bytes", "device memory in use, by whoever")                            \
    X(GPU_CLOCK, "gpu.clock", "share", "SM clock against the highest")                                  \
    X(GPU_WATTS, "gpu.watts", "W", "power drawn")                                                       \
    X(GPU_LIMITED, "gpu.limited", "share", "1 while power or temperature holds the clock down, else 0")

#define DR_PROCESS_SIGNALS(X)                                                                           \
    X(ON_CPU, "on_cpu", "cpus", "running, all threads together")                                        \
    X(RUN_QUEUE, "run_queue", "cpus", "ready but waiting for a CPU, all threads together")              \
    X(SYSTEM, "system", "cpus", "of on_cpu, time in the kernel")                                        \
    X(MAIN_ON_CPU, "main.on_cpu", "share", "running, the main thread alone")                            \
    X(MAIN_RUN_QUEUE, "main.run_queue", "share", "waiting for a CPU, the main thread alone")            \
    X(MAIN_DISK, "main.disk", "share",                                                                  \
      "in uninterruptible sleep (state D) when sampled, the main thread alone")                         \
    X(THREADS, "threads", "", "threads")                                                                \
    X(BUSY_THREADS, "threads.busy", "", "threads that ran at all in this tick")                         \
    X(RSS, "rss", "bytes", "resident memory")                                                           \
    X(PRIVATE, "private", "bytes", "memory that is this process's alone (sampled once a second)")       \
    X(READ_STORAGE, "read.storage", "bytes/s", "read from storage (/proc/PID/io read_bytes)")           \
    X(READ_ASKED, "read.asked", "bytes/s",                                                              \
      "asked for by read calls, pipes and sockets included (rchar)")                                    \
    X(READ_CALLS, "read.calls", "1/s", "read calls (syscr)")                                            \
    X(MAJOR_FAULTS, "faults.major", "1/s", "page faults that went to storage")                          \
    X(OPEN_FILES, "fds", "", "open descriptors (sampled once a second)")

#define DR_ENUM_MACHINE(id, name, unit, meaning) DR_##id,
enum dr_machine_signal { DR_MACHINE_SIGNALS(DR_ENUM_MACHINE) DR_MACHINE_COUNT };
#undef DR_ENUM_MACHINE

#define DR_ENUM_PROCESS(id, name, unit, meaning) DR_P_##id,
enum dr_process_signal { DR_PROCESS_SIGNALS(DR_ENUM_PROCESS) DR_PROCESS_COUNT };
#undef DR_ENUM_PROCESS

struct dr_signal {
    const char *name, *unit, *meaning;
};
extern const struct dr_signal dr_machine_signals[DR_MACHINE_COUNT];
extern const struct dr_signal dr_process_signals[DR_PROCESS_COUNT];

#endif
