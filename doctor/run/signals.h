/* signals.h - everything the doctor samples from outside, by name
 *
 * One line per signal: identifier, name in run.json, unit, meaning. Every tick has a value of each
 * signal of the machine, though some are sampled only twice per second, and of each signal of a process
 * for every process of the run. A missing value is NaN, never 0, and the probe reports why (probe.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_SIGNALS_H
#define ST_DOCTOR_SIGNALS_H

#define DR_MACHINE_SIGNALS(X)                                                                           \
    X(CPU_BUSY, "cpu.busy", "cpus", "busy CPUs of this machine, used by any process, or stolen")        \
    X(CPU_ALLOWED, "cpu.allowed", "cpus", "part of cpu.busy on the CPUs that the run may use")          \
    X(CPU_OURS, "cpu.ours", "cpus", "CPUs used by the processes of the run")                            \
    X(CPU_SYSTEM, "cpu.system", "cpus", "part of cpu.ours spent in the kernel")                         \
    X(CPU_THROTTLED, "cpu.throttled", "share",                                                          \
      "share of time the quota of the cgroup throttles its processes")                                  \
    X(CPU_STOLEN, "cpu.stolen", "cpus",                                                                 \
      "part of cpu.busy that the host of this virtual machine withheld (steal)")                        \
    X(PSI_CPU, "psi.cpu", "share", "share of time in which some task waited for a CPU")                 \
    X(PSI_IO, "psi.io", "share", "share of time in which some task waited for storage")                 \
    X(PSI_MEMORY, "psi.memory", "share", "share of time in which some task waited for memory")          \
    X(MEMORY_AVAILABLE, "memory.available", "bytes",                                                    \
      "available memory, within the limit of the cgroup")                                               \
    X(MEMORY_CACHE, "memory.cache", "bytes", "page cache, of the cgroup if it has a limit")             \
    X(REFAULTS, "memory.refaults", "pages/s", "file pages read again soon after eviction")              \
    X(SHM_USED, "shm.used", "bytes", "used in /dev/shm")                                                \
    X(SHM_FREE, "shm.free", "bytes", "free in /dev/shm")                                                \
    X(DISK_READ, "disk.read", "bytes/s", "read from the disks that hold the data")                      \
    X(DISK_READS, "disk.reads", "1/s", "read requests completed by these disks")                        \
    X(DISK_AWAIT, "disk.await", "s", "mean time per read request")                                      \
    X(DISK_BUSY, "disk.busy", "share", "share of time with at least one request, of the busiest disk")  \
    X(NET_RECEIVED, "net.received", "bytes/s", "received from the network, without loopback")           \
    X(NET_LOOPBACK, "net.loopback", "bytes/s", "received on loopback")                                  \
    X(NFS_READ, "nfs.read", "bytes/s", "received from NFS servers for READ requests")                   \
    X(NFS_READS, "nfs.reads", "1/s", "READ requests answered by NFS servers")                           \
    X(NFS_RTT, "nfs.rtt", "s", "mean round trip of such a request")                                     \
    X(NFS_TIME, "nfs.time", "s", "mean time of such a request, with its wait to be sent")               \
    X(GPU_BUSY, "gpu.busy", "share",                                                                    \
      "share of time with any kernel running (NVML): one thread is enough for 1")                       \
    X(GPU_SM, "gpu.sm_active", "share", "share of the multiprocessors that are busy (GPM)")             \
    X(GPU_TENSOR, "gpu.tensor", "share", "share of the tensor cores that are busy (GPM)")               \
    X(GPU_DRAM, "gpu.dram", "share", "share of the GPU's memory bandwidth in use (GPM)")                \
    X(GPU_PCIE_IN, "gpu.pcie_in", "bytes/s", "bytes sent to the GPU")                                   \
    X(GPU_PCIE_OUT, "gpu.pcie_out", "bytes/s", "bytes sent from the GPU")                               \
    X(GPU_MEMORY, "gpu.memory", "bytes", "device memory in use by all processes")                       \
    X(GPU_CLOCK, "gpu.clock", "share", "SM clock relative to its maximum")                              \
    X(GPU_WATTS, "gpu.watts", "W", "power drawn")                                                       \
    X(GPU_LIMITED, "gpu.limited", "share", "1 while power or temperature limits the clock, else 0")

#define DR_PROCESS_SIGNALS(X)                                                                           \
    X(ON_CPU, "on_cpu", "cpus", "running, all threads together")                                        \
    X(RUN_QUEUE, "run_queue", "cpus", "ready but waiting for a CPU, all threads together")              \
    X(SYSTEM, "system", "cpus", "part of on_cpu spent in the kernel")                                   \
    X(MAIN_ON_CPU, "main.on_cpu", "share", "running, main thread only")                                 \
    X(MAIN_RUN_QUEUE, "main.run_queue", "share", "waiting for a CPU, main thread only")                 \
    X(MAIN_DISK, "main.disk", "share",                                                                  \
      "in uninterruptible sleep (state D) when sampled, main thread only")                              \
    X(MAIN_LOCK, "main.lock", "share",                                                                  \
      "waiting for a lock of a file, or one that processes share, when sampled, main thread only")      \
    X(MAIN_SOCKET, "main.socket", "share",                                                              \
      "waiting for a socket when sampled, main thread only")                                            \
    X(THREADS, "threads", "", "threads")                                                                \
    X(BUSY_THREADS, "threads.busy", "", "threads that ran in this tick")                                \
    X(RSS, "rss", "bytes", "resident memory")                                                           \
    X(PRIVATE, "private", "bytes", "private memory of this process (sampled more and more rarely)")     \
    X(SWAPPED, "swapped", "bytes", "memory that is swapped out (sampled once per second)")             \
    X(READ_STORAGE, "read.storage", "bytes/s", "read from storage (/proc/PID/io read_bytes)")           \
    X(READ_ASKED, "read.asked", "bytes/s",                                                              \
      "requested by read calls, including pipes and sockets (rchar)")                                   \
    X(READ_CALLS, "read.calls", "1/s", "read calls (syscr)")                                            \
    X(MAJOR_FAULTS, "faults.major", "1/s", "page faults that read from storage")                        \
    X(OPEN_FILES, "fds", "", "open file descriptors (sampled once per second)")

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
