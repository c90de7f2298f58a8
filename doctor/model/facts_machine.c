/* facts_machine.c - CPUs, storage, network and memory while steps were measured
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

static const double LITTLE_READ = 65536; /* bytes/s: below this a hit ratio means nothing */

static double machine_mean(const struct dr_part *part, uint32_t signal)
{
    return dr_column_mean(&part->run->machine, part->rows, signal);
}

static double process_mean(const struct dr_part *part, const struct dr_process *process, uint32_t signal)
{
    return dr_column_mean(&process->table, dr_rows_of(process, part->rows), signal);
}

static void cpus(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    const struct dr_table *machine = &part->run->machine;
    const bool all = !dr_below(facts->limits.cpus_affinity, facts->limits.cpus_machine);
    struct dr_sum others = {0}, elsewhere = {0};
    for (uint32_t row = part->rows.from; row < part->rows.to; row++) {
        const double busy = dr_at(machine, row, DR_CPU_BUSY);
        const double allowed = all ? busy : dr_at(machine, row, DR_CPU_ALLOWED);
        dr_sum_add(&others, allowed - dr_at(machine, row, DR_CPU_OURS));
        dr_sum_add(&elsewhere, busy - allowed);
    }
    facts->cpus_used = machine_mean(part, DR_CPU_OURS);
    facts->cpus_busy_others = others.count ? fmax(dr_sum_mean(&others), 0) : NAN;
    facts->cpus_busy_elsewhere = elsewhere.count ? fmax(dr_sum_mean(&elsewhere), 0) : NAN;
    facts->cpus_stolen = machine_mean(part, DR_CPU_STOLEN);
    facts->throttled_share = machine_mean(part, DR_CPU_THROTTLED);
    facts->trainer_on_cpu = process_mean(part, part->trainer, DR_P_MAIN_ON_CPU);
    facts->trainer_run_queue = process_mean(part, part->trainer, DR_P_MAIN_RUN_QUEUE);
    facts->trainer_cpus = process_mean(part, part->trainer, DR_P_ON_CPU);
    facts->system_share = dr_share(machine_mean(part, DR_CPU_SYSTEM), facts->cpus_used);
    facts->psi_cpu = machine_mean(part, DR_PSI_CPU);
    facts->psi_io = machine_mean(part, DR_PSI_IO);
    facts->psi_memory = machine_mean(part, DR_PSI_MEMORY);
}

/* All makers together: the sum per tick, averaged over the ticks in which any was seen. */
static double makers_sum(const struct dr_part *part, uint32_t signal)
{
    struct dr_sum ticks = {0};
    for (uint32_t tick = part->rows.from; tick < part->rows.to; tick++) {
        struct dr_sum sum = {0};
        for (uint32_t k = 0; k < part->run->processes; k++) {
            const struct dr_process *process = &part->run->process[k];
            if (process->table.values && tick >= process->first_tick &&
                tick - process->first_tick < process->table.ticks && dr_is_maker(part, process))
                dr_sum_add(&sum, dr_at(&process->table, tick - process->first_tick, signal));
        }
        if (sum.count)
            dr_sum_add(&ticks, sum.sum);
    }
    return dr_sum_mean(&ticks);
}

static void storage(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    facts->read_asked = makers_sum(part, DR_P_READ_ASKED);
    facts->read_storage = makers_sum(part, DR_P_READ_STORAGE);
    if (dr_above(facts->read_asked, LITTLE_READ) && dr_known(facts->read_storage))
        facts->hit_ratio = fmax(1 - facts->read_storage / facts->read_asked, 0);
    facts->disk_read = machine_mean(part, DR_DISK_READ);
    facts->disk_reads = machine_mean(part, DR_DISK_READS);
    facts->disk_await = machine_mean(part, DR_DISK_AWAIT);
    facts->disk_busy = machine_mean(part, DR_DISK_BUSY);
    facts->disk_request = dr_share(facts->disk_read, facts->disk_reads);
    facts->refaults = machine_mean(part, DR_REFAULTS);
    facts->major_faults = makers_sum(part, DR_P_MAJOR_FAULTS);
    facts->net_received = machine_mean(part, DR_NET_RECEIVED);
    facts->net_loopback = machine_mean(part, DR_NET_LOOPBACK);
    facts->nfs_read = machine_mean(part, DR_NFS_READ);
    facts->nfs_reads = machine_mean(part, DR_NFS_READS);
    facts->nfs_rtt = machine_mean(part, DR_NFS_RTT);
    facts->nfs_time = machine_mean(part, DR_NFS_TIME);
    /* Per sample: the size of the files opened for it if known, otherwise all bytes read. */
    double of_sample = facts->opens_per_sample * facts->bytes_per_open;
    if (!dr_known(of_sample))
        of_sample = dr_share(fmax(facts->read_asked, facts->read_storage), facts->samples_per_second);
    facts->data_bytes = facts->loader.samples * of_sample;
}

static void memory(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    const struct dr_run *run = part->run;
    const struct dr_rows all = {0, run->machine.ticks};
    const struct dr_sum shm = dr_column(&run->machine, all, DR_SHM_USED);
    const struct dr_sum available = dr_column(&run->machine, all, DR_MEMORY_AVAILABLE);
    facts->shm_size = facts->limits.shm;
    facts->shm_used_most = shm.count ? shm.most : NAN;
    facts->memory_available_least = available.count ? available.least : NAN;
    const struct dr_settings *loader = &facts->loader;
    const double batches = loader->native ? 0 : (double)loader->workers * (loader->prefetch + 1.0);
    facts->shm_needed = batches * loader->batch_bytes;
    struct dr_sum rss = {0}, swapped = {0};
    for (uint32_t tick = part->rows.from; tick < part->rows.to; tick++) {
        struct dr_sum sum = {0}, out = {0};
        for (uint32_t k = 0; k < run->processes; k++) {
            const struct dr_process *process = &run->process[k];
            if (!process->table.values || tick < process->first_tick ||
                tick - process->first_tick >= process->table.ticks)
                continue;
            dr_sum_add(&sum, dr_at(&process->table, tick - process->first_tick, DR_P_RSS));
            dr_sum_add(&out, dr_at(&process->table, tick - process->first_tick, DR_P_SWAPPED));
        }
        if (sum.count)
            dr_sum_add(&rss, sum.sum);
        if (out.count)
            dr_sum_add(&swapped, out.sum);
    }
    facts->swapped = dr_sum_mean(&swapped);
    facts->rss_all = rss.count ? rss.most : NAN;
}

void dr_facts_machine(struct dr_part *part)
{
    cpus(part);
    storage(part);
    memory(part);
}
