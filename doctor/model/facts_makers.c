/* facts_makers.c - the processes that make batches, observed from outside
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 4096, NAMES = 4, MANY_THREADS = 2, LONG_ROWS = 600 /* ticks: a minute */ };

/* Seconds spent on making batches, and the time that was available for it. */
static void add_busy(const struct dr_part *part, const struct dr_process *process, double *busy,
                     double *time)
{
    uint64_t from = 0, to = 0, made = 0;
    for (uint64_t k = 0; k < process->event_count; k++) {
        const struct dr_event *event = &process->events[k];
        if (event->kind != DR_FETCH || !dr_is_measured(part, event))
            continue;
        from = from ? from : event->start_ns;
        to = event->start_ns + event->dur_ns;
        made += event->dur_ns;
    }
    /* A worker that is still alive counts until the end; a worker of a past epoch until its
     * last batch. */
    const struct dr_rows rows = dr_rows_of(process, part->rows);
    const bool lives =
        process->table.values && rows.to > rows.from && process->first_tick + rows.to == part->rows.to;
    to = lives && to < part->to_ns ? part->to_ns : to;
    if (to > from) {
        *busy += (double)made / 1e9;
        *time += (double)(to - from) / 1e9;
    }
}

/* Bytes per second, by a straight line through the samples of this process: through the second half if
 * it is long enough, since caches may fill in the first. Counting takes time, so only some ticks have a
 * sample. */
static double growth(const struct dr_part *part, const struct dr_process *process)
{
    struct dr_rows rows = dr_rows_of(process, part->rows);
    if (rows.to - rows.from >= LONG_ROWS)
        rows.from += (rows.to - rows.from) / 2;
    double n = 0, sum_t = 0, sum_v = 0, sum_tt = 0, sum_tv = 0;
    for (uint32_t row = rows.from; row < rows.to; row++) {
        const double value = dr_at(&process->table, row, DR_P_PRIVATE);
        if (!dr_known(value))
            continue;
        const double t = (double)(part->run->tick_ns[process->first_tick + row] - part->from_ns) / 1e9;
        n++, sum_t += t, sum_v += value, sum_tt += t * t, sum_tv += t * value;
    }
    const double spread = n * sum_tt - sum_t * sum_t;
    return n >= 3 && spread > 0 ? (n * sum_tv - sum_t * sum_v) / spread : NAN;
}

static int compare_threads(const void *a, const void *b)
{
    const struct dr_threads *const *one = a, *const *other = b;
    return ((*one)->most < (*other)->most) - ((*one)->most > (*other)->most);
}

/* The most frequent thread names of the worker with the most threads. */
static void storm_names(struct dr_facts *facts, const struct dr_process *process)
{
    const struct dr_threads *sorted[64];
    uint32_t count = process->thread_names < 64 ? process->thread_names : 64;
    for (uint32_t k = 0; k < count; k++)
        sorted[k] = &process->threads[k];
    qsort(sorted, count, sizeof *sorted, compare_threads);
    size_t used = 0;
    for (uint32_t k = 0; k < count && k < NAMES && sorted[k]->most >= MANY_THREADS; k++) {
        const int length =
            snprintf(facts->storm_names + used, sizeof facts->storm_names - used, "%s%.*s x %u",
                     used ? ", " : "", (int)sizeof sorted[k]->name, sorted[k]->name, sorted[k]->most);
        if (length < 0 || (size_t)length >= sizeof facts->storm_names - used)
            return;
        used += (size_t)length;
    }
}

struct outside {
    struct dr_sum lock, socket;
    struct dr_sum on_cpu, run_queue, disk, threads, busy_threads, cpus, system, private, rss, growth;
    double busy, time, alive; /* alive: makers that are there at the end */
    const struct dr_process *most;
    uint32_t most_threads;
};

static void add_sum(struct dr_sum *to, const struct dr_process *process, struct dr_rows rows,
                    uint32_t signal)
{
    for (uint32_t row = rows.from; row < rows.to; row++)
        dr_sum_add(to, dr_at(&process->table, row, signal));
}

static void look_at(struct outside *seen, const struct dr_part *part, const struct dr_process *process)
{
    const struct dr_rows rows = dr_rows_of(process, part->rows);
    add_busy(part, process, &seen->busy, &seen->time);
    add_sum(&seen->on_cpu, process, rows, DR_P_MAIN_ON_CPU);
    add_sum(&seen->run_queue, process, rows, DR_P_MAIN_RUN_QUEUE);
    add_sum(&seen->disk, process, rows, DR_P_MAIN_DISK);
    add_sum(&seen->lock, process, rows, DR_P_MAIN_LOCK);
    add_sum(&seen->socket, process, rows, DR_P_MAIN_SOCKET);
    add_sum(&seen->threads, process, rows, DR_P_THREADS);
    add_sum(&seen->busy_threads, process, rows, DR_P_BUSY_THREADS);
    add_sum(&seen->cpus, process, rows, DR_P_ON_CPU);
    add_sum(&seen->system, process, rows, DR_P_SYSTEM);
    add_sum(&seen->private, process, rows, DR_P_PRIVATE);
    add_sum(&seen->rss, process, rows, DR_P_RSS);
    if (rows.to > rows.from && process->first_tick + rows.to == part->rows.to) {
        seen->alive++;
        dr_sum_add(&seen->growth, growth(part, process));
    }
    uint32_t threads = 0;
    for (uint32_t k = 0; k < process->thread_names; k++)
        threads += process->threads[k].most < UINT32_MAX - threads ? process->threads[k].most : 0;
    if (threads > seen->most_threads)
        seen->most = process, seen->most_threads = threads;
}

/* A worker that is restarted for every epoch counts once. */
static double count_workers(const struct dr_part *part)
{
    bool number[NUMBERS] = {false};
    double count = 0;
    for (uint32_t k = 0; k < part->run->processes; k++) {
        const struct dr_process *process = &part->run->process[k];
        if (process == part->trainer || !dr_is_maker(part, process))
            continue;
        const int worker = process->worker;
        if (worker >= 0 && worker < NUMBERS && number[worker])
            continue;
        if (worker >= 0 && worker < NUMBERS)
            number[worker] = true;
        count++;
    }
    return count;
}

/* The mean share of the workers that still make batches: an iterable dataset may end in one worker long
 * before it does in another. Of one epoch, since a worker that is started again begins again. */
static double workers_at_work(const struct dr_part *part)
{
    const double whole = (double)part->to_ns - (double)part->from_ns;
    double sum = 0, workers = 0;
    for (uint32_t k = 0; k < part->run->processes; k++) {
        const struct dr_process *process = &part->run->process[k];
        double last = 0;
        bool any = false;
        if (process == part->trainer || !dr_is_maker(part, process) || process->events_lost)
            continue;
        for (uint64_t n = 0; n < process->event_count; n++) {
            const struct dr_event *event = &process->events[n];
            if (event->kind != DR_FETCH || event->loader != part->intervals.loader)
                continue;
            any = true;
            last = fmax(last, (double)(event->start_ns + event->dur_ns) - (double)part->from_ns);
        }
        workers += any;
        sum += any ? fmin(fmax(last, 0), whole) / whole : 0;
    }
    return workers >= 2 && whole > 0 ? sum / workers : NAN;
}

/* Processes that workers started, which do work that is not seen: how many exist, on average. */
static double count_children(const struct dr_part *part)
{
    const double ticks = part->rows.to - part->rows.from;
    double seen = 0;
    for (uint32_t k = 0; k < part->run->processes; k++) {
        const struct dr_process *child = &part->run->process[k];
        const struct dr_rows rows = dr_rows_of(child, part->rows);
        for (uint32_t n = 0; n < part->run->processes && rows.to > rows.from; n++) {
            const struct dr_process *worker = &part->run->process[n];
            if (worker != part->trainer && worker->pid == child->parent && dr_is_maker(part, worker))
                seen += rows.to - rows.from;
        }
    }
    return dr_share(seen, ticks);
}

void dr_facts_makers(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    struct outside seen = {0};
    facts->workers_seen = count_workers(part);
    if (facts->loader.native) /* its threads are part of the training process */
        return;
    for (uint32_t k = 0; k < part->run->processes; k++)
        if (dr_is_maker(part, &part->run->process[k]))
            look_at(&seen, part, &part->run->process[k]);
    facts->worker_on_cpu = dr_sum_mean(&seen.on_cpu);
    facts->worker_run_queue = dr_sum_mean(&seen.run_queue);
    facts->worker_disk = dr_sum_mean(&seen.disk);
    facts->worker_lock = dr_sum_mean(&seen.lock);
    facts->worker_socket = dr_sum_mean(&seen.socket);
    facts->worker_children = count_children(part);
    if (facts->loader.iterable && facts->loader.workers > 1 && part->intervals.count &&
        part->intervals.all[part->intervals.count - 1].epoch == 0)
        facts->workers_at_work = workers_at_work(part);
    if (seen.time > 0)
        facts->worker_idle = fmax(1 - seen.busy / seen.time, 0);
    const double idle = dr_known(facts->worker_idle) ? facts->worker_idle : 0;
    facts->worker_blocked = 1 - facts->worker_on_cpu - facts->worker_run_queue - idle;
    if (dr_known(facts->worker_blocked))
        facts->worker_blocked = fmax(facts->worker_blocked, 0);
    facts->worker_threads = dr_sum_mean(&seen.threads);
    facts->worker_busy_threads = dr_sum_mean(&seen.busy_threads);
    facts->worker_cpus = dr_sum_mean(&seen.cpus);
    facts->worker_system_share = dr_share(seen.system.sum, seen.cpus.sum);
    facts->worker_private = dr_sum_mean(&seen.private);
    facts->worker_rss = dr_sum_mean(&seen.rss);
    facts->worker_private_growth = dr_sum_mean(&seen.growth) * seen.alive;
    if (seen.most)
        storm_names(facts, seen.most);
}
