/* numbers.c - the facts and limits by name, and series that are too long to be written whole
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/report/numbers.h"

#include "cli/doctor/model/numbers.h"

#include <string.h>

#define FACT(name, unit, meaning)                                                                       \
    {                                                                                                   \
#name, unit, meaning, offsetof(struct dr_facts, name)                                           \
    }
#define LIMIT(name, unit, meaning)                                                                      \
    {                                                                                                   \
#name, unit, meaning, offsetof(struct dr_limits, name)                                          \
    }

const struct dr_number dr_fact_numbers[] = {
    FACT(confidence_steps, "", "steps measured after the warm-up"),
    FACT(step, "s", "time of a step, mean"),
    FACT(step_p50, "s", "time of a step, median"),
    FACT(step_p99, "s", "time of a step, 99th percentile"),
    FACT(stall, "s", "the GPU idle for want of a batch, a step"),
    FACT(stall_share, "share", "stall, of the step"),
    FACT(stall_share_low, "share", "stall, lower end of the 95 % interval"),
    FACT(stall_share_high, "share", "stall, upper end of the 95 % interval"),
    FACT(wait, "s", "the training thread in next(), a step"),
    FACT(wait_share, "share", "wait, of the step"),
    FACT(warm_up_stall_share, "share", "stall in the steps before the measured ones"),
    FACT(compute, "s", "the step with a perfect loader"),
    FACT(copy, "s", "copies to the device, host time a step"),
    FACT(sync, "s", "waiting for the GPU, host time a step"),
    FACT(optimizer, "s", "optimizer.step(), host time a step"),
    FACT(samples_per_second, "1/s", "samples a second"),
    FACT(accumulation, "", "calls of next() for one step of the optimizer"),
    FACT(readiness, "share", "calls of next() that found their batch ready"),
    FACT(ready_mean, "", "batches ready at next(), mean"),
    FACT(behind_share, "share", "calls that waited while later batches were ready"),
    FACT(behind_wait, "share", "of the time in next(), in such calls"),
    FACT(wait_period, "", "steps between long waits"),
    FACT(batch_mean, "s", "making one batch, mean"),
    FACT(batch_cv, "", "making one batch, deviation over mean"),
    FACT(batch_p99, "s", "making one batch, 99th percentile"),
    FACT(batch_cpu_mean, "s", "making one batch, CPU time"),
    FACT(opens_per_sample, "", "files opened a sample"),
    FACT(bytes_per_open, "bytes", "size of a file opened"),
    FACT(slowest_share, "share", "the slowest sample, of its batch's time"),
    FACT(pin, "s", "pinning one batch"),
    FACT(pin_bytes, "bytes", "pinned a batch"),
    FACT(put, "s", "handing one batch over"),
    FACT(main_cpu_in_next, "s", "CPU time of the training thread in next(), a step"),
    FACT(workers_seen, "", "worker processes seen"),
    FACT(worker_on_cpu, "share", "a worker's time on a CPU"),
    FACT(worker_run_queue, "share", "a worker's time ready but without a CPU"),
    FACT(worker_blocked, "share", "a worker's time blocked"),
    FACT(worker_disk, "share", "a worker's time waiting for the disk"),
    FACT(worker_idle, "share", "a worker's time with nothing to do"),
    FACT(worker_threads, "", "threads of a worker"),
    FACT(worker_busy_threads, "", "threads of a worker that run"),
    FACT(worker_cpus, "cpus", "CPUs used by a worker"),
    FACT(worker_system_share, "share", "kernel time of a worker's CPU time"),
    FACT(worker_private_growth, "bytes/s", "growth of the workers' own memory"),
    FACT(worker_private, "bytes", "memory of a worker's own"),
    FACT(worker_rss, "bytes", "resident memory of a worker"),
    FACT(cpus_used, "cpus", "CPUs used by the run"),
    FACT(cpus_busy_others, "cpus", "CPUs used by others"),
    FACT(throttled_share, "share", "time that the quota kept the run off the CPUs"),
    FACT(trainer_on_cpu, "share", "the training thread on a CPU"),
    FACT(trainer_run_queue, "share", "the training thread ready but without a CPU"),
    FACT(trainer_cpus, "cpus", "CPUs used by the training process"),
    FACT(system_share, "share", "kernel time of the run's CPU time"),
    FACT(psi_cpu, "share", "time in which a task waited for a CPU"),
    FACT(psi_io, "share", "time in which a task waited for storage"),
    FACT(psi_memory, "share", "time in which a task waited for memory"),
    FACT(read_asked, "bytes/s", "asked for by read calls"),
    FACT(read_storage, "bytes/s", "read from storage"),
    FACT(hit_ratio, "share", "reads answered by the page cache"),
    FACT(disk_read, "bytes/s", "read from the disk"),
    FACT(disk_reads, "1/s", "read requests"),
    FACT(disk_await, "s", "time of a read request"),
    FACT(disk_busy, "share", "disk at work"),
    FACT(disk_request, "bytes", "size of a read request"),
    FACT(refaults, "pages/s", "pages read again soon after they were evicted"),
    FACT(major_faults, "1/s", "page faults that went to storage"),
    FACT(net_received, "bytes/s", "received from the network"),
    FACT(net_loopback, "bytes/s", "received on loopback"),
    FACT(data_bytes, "bytes", "size of the data set, estimate"),
    FACT(shm_size, "bytes", "size of /dev/shm"),
    FACT(shm_used_most, "bytes", "used in /dev/shm, at most"),
    FACT(shm_needed, "bytes", "needed in /dev/shm by these settings"),
    FACT(memory_available_least, "bytes", "memory available, at least"),
    FACT(rss_all, "bytes", "resident memory of the run"),
    FACT(epochs, "", "ends of epochs seen"),
    FACT(epoch_start, "s", "from iter() to the first batch, later epochs"),
    FACT(respawn, "s", "of that, starting workers"),
    FACT(epoch_seconds, "s", "time of an epoch"),
    FACT(first_epoch_stall_share, "share", "stall in the first epoch"),
    FACT(later_epochs_stall_share, "share", "stall in later epochs"),
    FACT(gpu_busy, "share", "time with any kernel at all (NVML)"),
    FACT(gpu_sm, "share", "multiprocessors at work"),
    FACT(gpu_tensor, "share", "tensor cores at work"),
    FACT(gpu_dram, "share", "the GPU's memory bandwidth in use"),
    FACT(gpu_pcie_in, "bytes/s", "to the GPU"),
    FACT(gpu_clock, "share", "SM clock against the highest"),
    FACT(gpu_limited, "share", "time that power or temperature held the clock down"),
    FACT(gpu_watts, "W", "power drawn"),
    FACT(gpu_memory_peak_share, "share", "peak of torch's memory, of the device's"),
    FACT(copy_bytes, "bytes", "copied to the device a step"),
    FACT(copy_alone, "s", "for these at the speed of the fastest copy"),
    FACT(copies_pageable_share, "share", "copies from pageable memory"),
    FACT(copies_blocking_share, "share", "copies that block the host"),
    FACT(amp, "", "1: autocast was seen"),
    FACT(tf32, "", "1: TF32 is on"),
    FACT(gpu_capability, "", "compute capability"),
    FACT(sync_where_share, "share", "the costliest synchronisation, of the step"),
    FACT(outlier_share, "share", "time beyond ordinary steps in outliers"),
    FACT(outlier_period, "", "steps between outliers"),
    FACT(outlier_save, "share", "outliers' excess by saving"),
    FACT(outlier_gc, "share", "outliers' excess by the garbage collector"),
    FACT(outlier_eval, "share", "outliers' excess by evaluation"),
    FACT(overhead_share, "share", "cost of watching, of the run's CPU time"),
    {0},
};

const struct dr_number dr_limit_numbers[] = {
    LIMIT(cpus, "cpus", "CPUs that the run may use"),
    LIMIT(cpus_affinity, "cpus", "CPUs by affinity"),
    LIMIT(cpus_quota, "cpus", "CPUs by cgroup quota"),
    LIMIT(cpus_machine, "cpus", "CPUs of the machine"),
    LIMIT(memory, "bytes", "memory that the run may use"),
    LIMIT(memory_machine, "bytes", "memory of the machine"),
    LIMIT(shm, "bytes", "size of /dev/shm"),
    LIMIT(gpu_memory, "bytes", "memory of the GPU"),
    LIMIT(nodes, "", "NUMA nodes"),
    LIMIT(gpu_node, "", "NUMA node of the GPU"),
    LIMIT(cpu_node, "", "NUMA node that ran the workers"),
    LIMIT(pcie_limit, "bytes/s", "the GPU's link"),
    {0},
};

double dr_number_of(const struct dr_number *number, const void *of)
{
    double value;
    memcpy(&value, (const char *)of + number->offset, sizeof value);
    return value;
}

uint32_t dr_parts(uint64_t rows, uint32_t most) { return rows < most ? (uint32_t)rows : most; }

uint64_t dr_part_begin(uint64_t rows, uint32_t parts, uint32_t part)
{
    return parts ? rows / parts * part + rows % parts * part / parts : 0;
}

double dr_mean_between(const struct dr_table *table, uint32_t signal, uint64_t begin, uint64_t end)
{
    const uint64_t last = end < table->ticks ? end : table->ticks;
    if (begin >= last)
        return NAN;
    return dr_column_mean(table, (struct dr_rows){(uint32_t)begin, (uint32_t)last}, signal);
}

double dr_mean_of(const double *values, uint64_t begin, uint64_t end)
{
    struct dr_sum sum = {0};
    for (uint64_t i = begin; i < end; i++)
        dr_sum_add(&sum, values[i]);
    return dr_sum_mean(&sum);
}

double dr_process_mean(const struct dr_process *process, uint32_t signal, uint64_t begin, uint64_t end)
{
    const uint64_t first = process->first_tick;
    if (end <= first)
        return NAN;
    return dr_mean_between(&process->table, signal, begin > first ? begin - first : 0, end - first);
}
