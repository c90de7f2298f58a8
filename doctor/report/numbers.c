/* numbers.c - the facts and limits by name; reduction of long series
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/numbers.h"

#include "doctor/model/numbers.h"

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
    FACT(steps_seen, "", "steps recorded"),
    FACT(sample_seconds, "s", "time to make a sample, in its worker or in the training thread"),
    FACT(steps_lost, "", "steps not recorded, as far as it is known"),
    FACT(confidence_steps, "", "steps measured after the warm-up"),
    FACT(step, "s", "step time, mean"),
    FACT(step_p50, "s", "step time, median"),
    FACT(step_p99, "s", "step time, 99th percentile"),
    FACT(stall, "s", "time per step in which the GPU is idle because no batch is ready"),
    FACT(stall_share, "share", "stall, share of the step"),
    FACT(stall_share_low, "share", "stall, lower end of the 95 % interval"),
    FACT(stall_share_high, "share", "stall, upper end of the 95 % interval"),
    FACT(late_share, "share", "stall because the batch was not ready, share of the step"),
    FACT(late_share_low, "share", "the same, lower end of the 95 % interval"),
    FACT(wait, "s", "time per step of the training thread in next()"),
    FACT(wait_share, "share", "wait, share of the step"),
    FACT(warm_up_stall_share, "share", "stall during the warm-up"),
    FACT(compute, "s", "step time with a perfect loader"),
    FACT(own_fast, "s", "step time outside next(), 1st percentile"),
    FACT(own_least, "s", "step time outside next(), minimum"),
    FACT(copy, "s", "copies to the device, host time per step"),
    FACT(sync, "s", "waiting for the GPU, host time per step"),
    FACT(optimizer, "s", "optimizer.step(), host time per step"),
    FACT(save, "s", "saving, time per step"),
    FACT(gc, "s", "garbage collection outside next(), time per step"),
    FACT(logging, "s", "logging, time per step"),
    FACT(eval, "s", "validation within ordinary steps, time per step"),
    FACT(save_steps, "share", "steps that save"),
    FACT(gc_steps, "share", "steps with a garbage collection"),
    FACT(logging_steps, "share", "steps that log"),
    FACT(eval_steps, "share", "steps with a validation"),
    FACT(sampler, "s", "the sampler in next(), time per step"),
    FACT(samples_per_second, "1/s", "samples per second"),
    FACT(accumulation, "", "calls of next() per step of the optimizer"),
    FACT(readiness, "share", "calls of next() that found their batch ready"),
    FACT(ready_mean, "", "batches ready at next(), mean"),
    FACT(behind_share, "share", "calls that waited while later batches were ready"),
    FACT(behind_wait, "share", "share of the time in next() spent in such calls"),
    FACT(wait_period, "", "steps between long waits"),
    FACT(batch_mean, "s", "making one batch, mean"),
    FACT(batch_cv, "", "making one batch, coefficient of variation"),
    FACT(batch_p99, "s", "making one batch, 99th percentile"),
    FACT(batch_cpu_mean, "s", "making one batch, CPU time"),
    FACT(helpers_cpu, "s", "CPU time of other threads of the process while it makes a batch"),
    FACT(batch_cpu_fast, "s", "making one batch, CPU time, 1st percentile"),
    FACT(batch_cpu_least, "s", "making one batch, CPU time, minimum"),
    FACT(shared_cpu, "s", "of the CPU time of a batch, allocating shared memory"),
    FACT(opens_per_sample, "", "files opened per sample"),
    FACT(bytes_per_open, "bytes", "mean size of an opened file"),
    FACT(slowest_share, "share", "time of the slowest sample, share of its batch"),
    FACT(pin, "s", "pinning one batch"),
    FACT(pin_bytes, "bytes", "bytes pinned per batch"),
    FACT(put, "s", "transferring one batch"),
    FACT(main_cpu_in_next, "s", "CPU time per step of the training thread in next()"),
    FACT(workers_seen, "", "worker processes seen"),
    FACT(worker_on_cpu, "share", "share of time a worker runs"),
    FACT(worker_run_queue, "share", "share of time a worker waits for a CPU"),
    FACT(worker_blocked, "share", "share of time a worker is blocked"),
    FACT(worker_disk, "share", "share of time a worker waits for the disk"),
    FACT(worker_lock, "share", "time of a worker waiting for a lock of a file or between processes"),
    FACT(worker_socket, "share", "time of a worker waiting for a socket"),
    FACT(workers_at_work, "share", "workers that make batches, mean over the only epoch"),
    FACT(worker_children, "", "processes of the workers, on average"),
    FACT(workers_alike, "", "workers whose first samples are those of another one"),
    FACT(workers_random, "", "workers whose random numbers begin as those of another one"),
    FACT(reduced, "s", "making images smaller, part of the transforms, per batch"),
    FACT(opening, "s", "opening archives and databases, per batch"),
    FACT(opening_cpu, "s", "CPU time of that"),
    FACT(openings_per_sample, "", "archives and databases opened per sample"),
    FACT(swapped, "bytes", "memory of the run that is swapped out"),
    FACT(worker_idle, "share", "share of time a worker is idle"),
    FACT(worker_threads, "", "threads per worker"),
    FACT(worker_busy_threads, "", "busy threads per worker"),
    FACT(worker_cpus, "cpus", "CPUs used per worker"),
    FACT(worker_system_share, "share", "kernel time, share of a worker's CPU time"),
    FACT(worker_private_growth, "bytes/s", "growth of the workers' private memory"),
    FACT(worker_private, "bytes", "private memory per worker"),
    FACT(worker_rss, "bytes", "resident memory per worker"),
    FACT(cpus_used, "cpus", "CPUs used by the run"),
    FACT(cpus_busy_others, "cpus", "CPUs used by others, of those that the run may use"),
    FACT(cpus_busy_elsewhere, "cpus", "busy CPUs that the run may not use"),
    FACT(cpus_stolen, "cpus", "CPUs withheld by the host of this virtual machine"),
    FACT(throttled_share, "share", "share of time the quota throttles the run"),
    FACT(trainer_on_cpu, "share", "share of time the training thread runs"),
    FACT(trainer_run_queue, "share", "share of time the training thread waits for a CPU"),
    FACT(trainer_cpus, "cpus", "CPUs used by the training process"),
    FACT(system_share, "share", "kernel time, share of the run's CPU time"),
    FACT(psi_cpu, "share", "share of time in which some task waited for a CPU"),
    FACT(psi_io, "share", "share of time in which some task waited for storage"),
    FACT(psi_memory, "share", "share of time in which some task waited for memory"),
    FACT(read_asked, "bytes/s", "requested by read calls"),
    FACT(read_storage, "bytes/s", "read from storage"),
    FACT(hit_ratio, "share", "share of reads served by the page cache"),
    FACT(disk_read, "bytes/s", "read from the disk"),
    FACT(disk_reads, "1/s", "read requests"),
    FACT(disk_await, "s", "time per read request"),
    FACT(disk_busy, "share", "share of time the disk is busy"),
    FACT(disk_request, "bytes", "size of a read request"),
    FACT(refaults, "pages/s", "pages read again soon after eviction"),
    FACT(major_faults, "1/s", "page faults that read from storage"),
    FACT(net_received, "bytes/s", "received from the network"),
    FACT(net_loopback, "bytes/s", "received on loopback"),
    FACT(nfs_read, "bytes/s", "received from NFS servers"),
    FACT(nfs_reads, "1/s", "READ requests answered by NFS servers"),
    FACT(nfs_rtt, "s", "round trip of a READ request"),
    FACT(nfs_time, "s", "time of a READ request, with its wait to be sent"),
    FACT(data_bytes, "bytes", "size of the dataset, estimated"),
    FACT(shm_size, "bytes", "size of /dev/shm"),
    FACT(shm_used_most, "bytes", "used in /dev/shm, maximum"),
    FACT(shm_needed, "bytes", "needed in /dev/shm by these settings"),
    FACT(memory_available_least, "bytes", "memory available, minimum"),
    FACT(rss_all, "bytes", "resident memory of the run"),
    FACT(epochs, "", "completed epochs"),
    FACT(epoch_start, "s", "time from iter() to the first batch, without the first epoch"),
    FACT(respawn, "s", "of that, starting workers"),
    FACT(epoch_seconds, "s", "time of an epoch"),
    FACT(first_epoch_stall_share, "share", "stall in the first epoch"),
    FACT(later_epochs_stall_share, "share", "stall in later epochs"),
    FACT(gpu_busy, "share", "share of time with any kernel running (NVML)"),
    FACT(gpu_sm, "share", "share of the multiprocessors that are busy"),
    FACT(gpu_tensor, "share", "share of the tensor cores that are busy"),
    FACT(gpu_dram, "share", "share of the GPU's memory bandwidth in use"),
    FACT(gpu_pcie_in, "bytes/s", "bytes sent to the GPU"),
    FACT(gpu_clock, "share", "SM clock relative to its maximum"),
    FACT(gpu_limited, "share", "share of time power or temperature limits the clock"),
    FACT(gpu_watts, "W", "power drawn"),
    FACT(gpu_memory_peak_share, "share", "peak of torch's memory, share of the device"),
    FACT(copy_bytes, "bytes", "bytes copied to the device per step"),
    FACT(copy_alone, "s", "time for these bytes at the speed of the fastest copy"),
    FACT(copies_pageable_share, "share", "copies from pageable memory"),
    FACT(copies_blocking_share, "share", "copies that block the host"),
    FACT(amp, "", "1: autocast was seen"),
    FACT(tf32, "", "1: TF32 is enabled"),
    FACT(gpu_capability, "", "compute capability"),
    FACT(sync_where_share, "share", "the costliest synchronization, share of the step"),
    FACT(outlier_share, "share", "share of time lost in outlier steps"),
    FACT(outlier_period, "", "steps between outliers"),
    FACT(outlier_save, "share", "part of that caused by saving"),
    FACT(outlier_gc, "share", "part of that caused by garbage collection"),
    FACT(outlier_eval, "share", "part of that caused by evaluation"),
    FACT(rank_skew, "share", "share of time lost because one rank gets its batch later than the others"),
    FACT(watch_step, "s", "cost of watching per step, in the training process"),
    FACT(overhead_share, "share", "overhead of watching, share of the run's time"),
    {0},
};

const struct dr_number dr_limit_numbers[] = {
    LIMIT(cpus, "cpus", "CPUs available to the run"),
    LIMIT(cpus_affinity, "cpus", "CPUs by affinity"),
    LIMIT(cpus_quota, "cpus", "CPUs by cgroup quota"),
    LIMIT(cpus_machine, "cpus", "CPUs of the machine"),
    LIMIT(memory, "bytes", "memory available to the run"),
    LIMIT(memory_machine, "bytes", "memory of the machine"),
    LIMIT(shm, "bytes", "size of /dev/shm"),
    LIMIT(gpu_memory, "bytes", "memory of the GPU"),
    LIMIT(nodes, "", "NUMA nodes"),
    LIMIT(gpu_node, "", "NUMA node of the GPU"),
    LIMIT(cpu_node, "", "NUMA node that ran the workers"),
    LIMIT(pcie_limit, "bytes/s", "bandwidth of the GPU's link"),
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
