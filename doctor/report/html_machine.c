/* html_machine.c - report.html: CPUs, memory, disk, network and GPU over time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/text.h"
#include "doctor/report/html.h"
#include "doctor/report/numbers.h"

#include "cli/out.h"

#include <stdlib.h>

enum { PROCESSES_SHOWN = 24 };

static struct dr_chart *over_time(const struct dr_run *run, const char *title, const char *unit)
{
    const uint32_t ticks = run->machine.ticks;
    const double end = ticks && run->tick_ns[ticks - 1] > run->start_ns
                           ? (double)(run->tick_ns[ticks - 1] - run->start_ns) / 1e9
                           : 0;
    return dr_chart_new(title, unit, 0, end, dr_parts(ticks, DR_CHART_POINTS));
}

/* A line with the means of a machine signal over parts of the run. */
static void add_signal(struct dr_chart *chart, const struct dr_run *run, const char *name,
                       const char *color, enum dr_machine_signal signal, double factor)
{
    if (!chart)
        return;
    struct dr_line *line = dr_chart_line(chart, name, color);
    const uint32_t ticks = run->machine.ticks;
    for (uint32_t p = 0; p < chart->points; p++)
        line->values[p] =
            factor * dr_mean_between(&run->machine, signal, dr_part_begin(ticks, chart->points, p),
                                     dr_part_begin(ticks, chart->points, p + 1));
}

/* The sum of a signal over the processes of a role. */
static void add_role(struct dr_chart *chart, const struct dr_run *run, const char *name,
                     const char *color, enum dr_role role, enum dr_process_signal signal)
{
    if (!chart)
        return;
    struct dr_line *line = dr_chart_line(chart, name, color);
    for (uint32_t p = 0; p < chart->points; p++) {
        const uint64_t begin = dr_part_begin(run->machine.ticks, chart->points, p);
        const uint64_t end = dr_part_begin(run->machine.ticks, chart->points, p + 1);
        double sum = 0, known = 0;
        for (uint32_t i = 0; i < run->processes; i++) {
            const double value = run->process[i].role == role
                                     ? dr_process_mean(&run->process[i], signal, begin, end)
                                     : NAN;
            if (isfinite(value)) {
                sum += value;
                known++;
            }
        }
        line->values[p] = known > 0 ? sum : NAN;
    }
}

/* The private memory of the workers, of which only some are counted, and only at times: a value holds
 * until the next one, and workers without one count as the mean of the others. */
static void add_private(struct dr_chart *chart, const struct dr_run *run)
{
    double *last = chart ? calloc((size_t)run->processes + 1, sizeof *last) : NULL;
    if (!last)
        return;
    struct dr_line *line = dr_chart_line(chart, "workers' own", "b");
    for (uint32_t p = 0; p < chart->points; p++) {
        const uint64_t begin = dr_part_begin(run->machine.ticks, chart->points, p);
        const uint64_t end = dr_part_begin(run->machine.ticks, chart->points, p + 1);
        double sum = 0, known = 0, alive = 0;
        for (uint32_t i = 0; i < run->processes; i++) {
            const struct dr_process *process = &run->process[i];
            if (process->role != DR_WORKER || process->first_tick >= end ||
                (uint64_t)process->first_tick + process->table.ticks <= begin)
                continue;
            const double value = dr_process_mean(process, DR_P_PRIVATE, begin, end);
            last[i] = isfinite(value) ? value : last[i];
            alive++;
            sum += last[i];
            known += last[i] > 0;
        }
        line->values[p] = known > 0 ? sum * alive / known : NAN;
    }
    free(last);
}

/* A chart of one signal. */
static void put_signal(const struct dr_page *page, const char *title, enum dr_machine_signal signal,
                       const char *color)
{
    const struct dr_run *run = page->facts->run;
    const struct dr_signal *about = &dr_machine_signals[signal];
    struct dr_chart *chart = over_time(run, title, about->unit);
    add_signal(chart, run, about->name, color, signal, 1);
    dr_chart_put(page, chart, dr_why_missing(run, about->name, "it could not be read on this machine"));
}

static void put_processes(const struct dr_page *page)
{
    const struct dr_run *run = page->facts->run;
    const uint32_t shown = run->processes < PROCESSES_SHOWN ? run->processes : PROCESSES_SHOWN;
    struct dr_text text;
    static const enum dr_process_signal columns[] = {DR_P_ON_CPU, DR_P_RUN_QUEUE, DR_P_THREADS,
                                                     DR_P_RSS};
    fprintf(page->to,
            "<details><summary>%u process%s of the run, means</summary>\n<div class=scroll><table "
            "class=numbers><tr><th>process</th><th>pid</th><th>on a CPU</th><th>waits for "
            "one</th><th>threads"
            "</th><th>memory</th></tr>\n",
            run->processes, st_es(run->processes));
    for (uint32_t i = 0; i < shown; i++) {
        const struct dr_process *process = &run->process[i];
        fputs("<tr><td>", page->to);
        html_text(page->to, process->name);
        fprintf(page->to, " (%s)</td><td>%d</td>", dr_role_name(process->role), process->pid);
        for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
            fprintf(page->to, "<td>%s</td>",
                    dr_unit_text(&text,
                                 dr_mean_between(&process->table, columns[c], 0, process->table.ticks),
                                 dr_process_signals[columns[c]].unit));
        fputs("</tr>\n", page->to);
    }
    fputs("</table></div>", page->to);
    if (shown < run->processes)
        fprintf(page->to, "<p class=note>%u more are in run.json.</p>", run->processes - shown);
    fputs("</details>\n", page->to);
}

static void put_cpus(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    const struct dr_run *run = f->run;
    struct dr_chart *chart = over_time(run, "Busy CPUs", "cpus");
    add_role(chart, run, "training", "compute", DR_TRAINER, DR_P_ON_CPU);
    add_role(chart, run, "workers", "worker", DR_WORKER, DR_P_ON_CPU);
    for (uint32_t i = 0; i < run->processes; i++)
        if (run->process[i].role == DR_OTHER) {
            add_role(chart, run, "other processes of the run", "other", DR_OTHER, DR_P_ON_CPU);
            break;
        }
    if (chart) {
        chart->stacked = true;
        chart->limit = f->limits.cpus;
        chart->limit_name = isfinite(f->limits.cpus_quota) ? "quota" : "CPUs available";
    }
    dr_chart_put(page, chart, dr_why_missing(run, "on_cpu", "no process was sampled"));
    chart = over_time(run, "Throttling and CPU pressure", "share");
    add_signal(chart, run, "throttled by the quota", "stall", DR_CPU_THROTTLED, 1);
    add_signal(chart, run, "some task waits for a CPU", "sync", DR_PSI_CPU, 1);
    dr_chart_put(
        page, chart,
        dr_why_missing(run, "cpu.throttled", "neither quota nor pressure can be read on this machine"));
    chart = over_time(run, "Threads waiting for a CPU", "");
    add_role(chart, run, "training", "compute", DR_TRAINER, DR_P_RUN_QUEUE);
    add_role(chart, run, "workers", "worker", DR_WORKER, DR_P_RUN_QUEUE);
    if (chart)
        chart->stacked = true;
    dr_chart_put(page, chart, dr_why_missing(run, "run_queue", "no process was sampled"));
}

static void put_memory(const struct dr_page *page)
{
    const struct dr_run *run = page->facts->run;
    struct dr_chart *chart = over_time(run, "Memory", "bytes");
    add_signal(chart, run, "available", "ready", DR_MEMORY_AVAILABLE, 1);
    add_signal(chart, run, "page cache", "c", DR_MEMORY_CACHE, 1);
    add_private(chart, run);
    dr_chart_put(page, chart,
                 dr_why_missing(run, "memory.available", "it could not be read on this machine"));
    chart = over_time(run, "/dev/shm in use", "bytes");
    add_signal(chart, run, "used", "put", DR_SHM_USED, 1);
    if (chart && isfinite(page->facts->limits.shm)) {
        chart->limit = page->facts->limits.shm;
        chart->limit_name = "size";
    }
    dr_chart_put(page, chart, dr_why_missing(run, "shm.used", "it could not be read on this machine"));
}

void dr_html_resources(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    const struct dr_run *run = f->run;
    dr_section_begin(page, "machine", "Machine",
                     "CPUs, memory, disk and network during the run.");
    fputs("<dl class=tiles>\n", page->to);
    dr_tile_put(page, "CPUs available to the run", f->limits.cpus, "");
    dr_tile_put(page, "CPUs of the machine", f->limits.cpus_machine, "");
    dr_tile_put(page, "throttled by the quota", f->throttled_share, "share");
    dr_tile_put(page, "reads from the page cache", f->hit_ratio, "share");
    dr_tile_put(page, "disk", f->disk_read, "bytes/s");
    dr_tile_put(page, "/dev/shm", f->limits.shm, "bytes");
    fputs("</dl>\n", page->to);
    if (!run->machine.ticks) {
        dr_html_none(
            page,
            "Nothing was sampled: the run was too short, or its samples are missing.");
        dr_section_end(page);
        return;
    }
    fputs("<div class=charts>\n", page->to);
    put_cpus(page);
    put_signal(page, "Waiting for storage", DR_PSI_IO, "read");
    put_signal(page, "Disk, read", DR_DISK_READ, "read");
    put_signal(page, "Disk: read requests", DR_DISK_READS, "read");
    put_signal(page, "Disk: time per request", DR_DISK_AWAIT, "read");
    put_signal(page, "Disk: busy", DR_DISK_BUSY, "read");
    put_signal(page, "Pages read again after eviction", DR_REFAULTS, "stall");
    put_memory(page);
    put_signal(page, "Network, received", DR_NET_RECEIVED, "network");
    if (isfinite(f->nfs_reads)) {
        put_signal(page, "NFS: READ requests", DR_NFS_READS, "network");
        put_signal(page, "NFS: round trip of a READ", DR_NFS_RTT, "network");
    }
    fputs("</div>\n", page->to);
    put_processes(page);
    dr_section_end(page);
}

/* ---- GPU --------------------------------------------------------------------------------------- */

void dr_html_gpu(const struct dr_page *page)
{
    const struct dr_facts *f = page->facts;
    const struct dr_run *run = f->run;
    const bool sampled = run->machine.ticks &&
                         (isfinite(dr_mean_between(&run->machine, DR_GPU_BUSY, 0, run->machine.ticks)) ||
                          isfinite(dr_mean_between(&run->machine, DR_GPU_SM, 0, run->machine.ticks)));
    dr_section_begin(page, "gpu", "GPU",
                     "NVML utilization is the time with any kernel running; SM active is how much of "
                     "the GPU worked.");
    if (!sampled) {
        dr_html_none(page, "n/a: %s", dr_why_missing(run, "gpu.busy", "no GPU was sampled in this run"));
        dr_section_end(page);
        return;
    }
    struct dr_chart *chart = over_time(run, "Utilization", "share");
    add_signal(chart, run, "SM active", "compute", DR_GPU_SM, 1);
    add_signal(chart, run, "NVML utilisation", "other", DR_GPU_BUSY, 1);
    add_signal(chart, run, "tensor cores", "b", DR_GPU_TENSOR, 1);
    add_signal(chart, run, "memory bandwidth", "c", DR_GPU_DRAM, 1);
    if (chart)
        chart->top = 1;
    fputs("<div class=charts>\n", page->to);
    dr_chart_put(page, chart, "");
    put_signal(page, "To the GPU over PCIe", DR_GPU_PCIE_IN, "copy");
    put_signal(page, "Power", DR_GPU_WATTS, "ready");
    put_signal(page, "Clock, relative to its maximum", DR_GPU_CLOCK, "ready");
    fputs("</div>\n", page->to);
    if (f->gpu_busy - f->gpu_sm > 0.25) {
        struct dr_text busy, sm;
        fprintf(page->to,
                "<p class=note>NVML says %s where %s of the multiprocessors were at work: do not judge "
                "by the "
                "first.</p>\n",
                dr_share_text(&busy, f->gpu_busy), dr_share_text(&sm, f->gpu_sm));
    }
    dr_section_end(page);
}
