/* frame.c - what `stoker top` shows: verdict, parts of a step, pipeline, workers, resources
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/top/top.h"

#include "base/clock.h"
#include "base/text.h"
#include "doctor/rule/case.h"
#include "doctor/rule/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RECENT_TICKS = 20, LABEL = 11 };

/* The mean over the last ticks. */
static double recent(const struct dr_table *table, uint32_t signal)
{
    double sum = 0;
    uint32_t known = 0;
    const uint32_t from = table->ticks > RECENT_TICKS ? table->ticks - RECENT_TICKS : 0;
    for (uint32_t tick = from; tick < table->ticks; tick++) {
        const double value = dr_at(table, tick, signal);
        if (!isnan(value)) {
            sum += value;
            known++;
        }
    }
    return known ? sum / known : NAN;
}

static void label(struct dr_screen *s, const char *text)
{
    dr_put(s, DR_BOLD, " %s", text);
    dr_put_to(s, LABEL);
}

/* ---- head ---------------------------------------------------------------------------------------- */

static void put_head(struct dr_screen *s, const struct dr_run *run)
{
    char command[256] = "";
    size_t size = 0;
    for (uint32_t k = 0; run->argv && run->argv[k] && size < sizeof command - 2; k++)
        size +=
            (size_t)snprintf(command + size, sizeof command - size, "%s%s", k ? " " : "", run->argv[k]);
    const double seconds = (double)((run->finished ? run->end_ns : st_now_ns()) - run->start_ns) * 1e-9;
    dr_put(s, DR_BOLD, " stoker top ");
    dr_put(s, DR_QUIET, " %.0f:%02.0f %s  ", floor(seconds / 60), floor(fmod(seconds, 60)),
           run->finished ? "finished" : "running");
    dr_put(s, DR_PLAIN, "%s", run->directory); /* it may be long */
    dr_put_line(s);
    dr_put(s, DR_QUIET, " %s", command);
    dr_put_line(s);
}

static void put_verdict(struct dr_screen *s, const struct dr_verdict *verdict, const char *why)
{
    dr_put_line(s);
    if (!verdict) {
        dr_put(s, DR_YELLOW, " %s", why);
        dr_put_line(s);
        return;
    }
    if (verdict->busy[0]) {
        dr_put(s, DR_YELLOW, " %s", verdict->busy);
        dr_put_line(s);
    }
    const enum dr_color color = verdict->kind == DR_DATA_BOUND      ? DR_RED
                                : verdict->kind == DR_COMPUTE_BOUND ? DR_GREEN
                                                                    : DR_YELLOW;
    dr_put(s, color, " %s", verdict->sentence);
    dr_put_line(s);
    if (verdict->findings) {
        dr_put(s, DR_BOLD, " %s", verdict->finding[0].rule->code);
        dr_put(s, DR_PLAIN, "  %s", verdict->finding[0].advice);
        if (dr_known(verdict->finding[0].gain.mid))
            dr_put(s, DR_GREEN, "  %.2fx", verdict->finding[0].gain.mid);
    }
    dr_put_line(s);
}

/* ---- steps --------------------------------------------------------------------------------------- */

static void put_rate(struct dr_screen *s, const struct dr_facts *f)
{
    double rate[64];
    const uint32_t wanted = s->width > LABEL + 40 ? s->width - LABEL - 40 : 8;
    const uint32_t columns = wanted > 64 ? 64 : wanted;
    const uint32_t count = f->step_count < columns ? f->step_count : columns;
    for (uint32_t k = 0; k < count; k++) { /* each column covers an equal number of steps */
        const uint32_t from = (uint32_t)((uint64_t)k * f->step_count / count);
        const uint32_t to = (uint32_t)((uint64_t)(k + 1) * f->step_count / count);
        double seconds = 0;
        for (uint32_t i = from; i < to; i++)
            seconds += f->steps[i].seconds;
        rate[k] = seconds > 0 ? (to - from) / seconds : NAN;
    }
    label(s, "rate");
    dr_put(s, DR_BOLD, "%.1f steps/s", f->step > 0 ? 1 / f->step : NAN);
    if (dr_known(f->samples_per_second))
        dr_put(s, DR_PLAIN, "  %.0f samples/s  ", f->samples_per_second);
    dr_put_sparkline(s, DR_CYAN, rate, count);
    dr_put_line(s);
}

static void put_steps(struct dr_screen *s, const struct dr_facts *f)
{
    const double copy = dr_known(f->copy) ? f->copy : 0, sync = dr_known(f->sync) ? f->sync : 0;
    const double rest = fmax(0, f->step - f->stall - copy);
    const uint32_t width = s->width > LABEL + 34 ? s->width - LABEL - 34 : 10;
    struct dr_text a, b;
    put_rate(s, f);
    label(s, "step");
    dr_put(s, DR_BOLD, "%.1f ms", 1e3 * f->step);
    dr_put(s, DR_QUIET, "  p50 %.1f  p99 %.1f  %u step%s", 1e3 * f->step_p50, 1e3 * f->step_p99,
           f->step_count, st_s(f->step_count));
    dr_put_line(s);
    label(s, f->has_gpu ? "GPU waits" : "waits");
    dr_put_bar(s, DR_RED, width, f->stall_share);
    dr_put(s, DR_PLAIN, " %s of a step, %.1f ms", dr_share_text(&a, f->stall_share), 1e3 * f->stall);
    dr_put_line(s);
    label(s, "computes");
    dr_put_bar(s, DR_GREEN, width, rest / f->step);
    dr_put(s, DR_PLAIN, " %s, %.1f ms", dr_share_text(&a, rest / f->step), 1e3 * rest);
    dr_put_line(s);
    if (copy > 0 || sync > 0) {
        label(s, "copies");
        dr_put_bar(s, DR_YELLOW, width, copy / f->step);
        dr_put(s, DR_PLAIN, " %s; host waits for the GPU %s", dr_share_text(&a, copy / f->step),
               dr_share_text(&b, sync / f->step));
        dr_put_line(s);
    }
}

/* ---- pipeline ------------------------------------------------------------------------------------- */

static void put_pipeline(struct dr_screen *s, const struct dr_facts *f)
{
    struct dr_text a;
    int widest = -1;
    for (int stage = 0; stage < DR_STAGES; stage++)
        if (dr_known(f->stage_share[stage]) &&
            (widest < 0 || f->stage_share[stage] > f->stage_share[widest]))
            widest = stage;
    label(s, "pipeline");
    for (int stage = 0; stage < DR_STAGES; stage++)
        if (dr_above(f->stage_share[stage], 0.005)) {
            dr_put(s, stage == widest && f->stall_share > 0.05 ? DR_RED : DR_PLAIN, "%s %s",
                   dr_stage_names[stage], dr_share_text(&a, f->stage_share[stage]));
            dr_put(s, DR_QUIET, " %s ", s->ascii ? ">" : "▸");
        }
    dr_put(s, DR_PLAIN, "%.1f ms per batch", 1e3 * f->batch_mean);
    dr_put_line(s);
    const uint32_t room = f->loader.workers * f->loader.prefetch;
    label(s, "queue");
    if (dr_known(f->ready_mean) && room) {
        dr_put_bar(s, DR_BLUE, 10, f->ready_mean / room);
        dr_put(s, DR_PLAIN, " %.1f of %u batch%s; ", f->ready_mean, room, st_es(room));
    }
    dr_put(s, DR_PLAIN, "ready in %s of the calls", dr_share_text(&a, f->readiness));
    if (dr_above(f->behind_share, 0.01))
        dr_put(s, DR_YELLOW, ", later ones ready in %s", dr_share_text(&a, f->behind_share));
    dr_put_line(s);
}

/* ---- workers ---------------------------------------------------------------------------------------
 */

static void put_worker(struct dr_screen *s, const struct dr_process *p)
{
    const double on = recent(&p->table, DR_P_MAIN_ON_CPU),
                 queue = recent(&p->table, DR_P_MAIN_RUN_QUEUE);
    const double disk = recent(&p->table, DR_P_MAIN_DISK);
    struct dr_text a, b, c, d;
    const uint32_t bar = 10;
    if (p->worker >= 0)
        dr_put(s, DR_PLAIN, " worker %-3d", p->worker);
    else
        dr_put(s, DR_PLAIN, " %-10s", p->role == DR_TRAINER ? "training" : p->name);
    dr_put_bar(s, DR_GREEN, bar, on);
    dr_put(s, DR_PLAIN, " CPU %-7s", dr_share_text(&a, on));
    dr_put(s, dr_above(queue, 0.1) ? DR_RED : DR_PLAIN, "queue %-7s", dr_share_text(&b, queue));
    dr_put(s, dr_above(disk, 0.2) ? DR_YELLOW : DR_PLAIN, "disk %-7s", dr_share_text(&c, disk));
    dr_put(s, DR_QUIET, "%3.0f threads  %s", recent(&p->table, DR_P_THREADS),
           dr_bytes_text(&d, recent(&p->table, DR_P_RSS)));
    dr_put_line(s);
}

static void put_workers(struct dr_screen *s, const struct dr_run *run, uint32_t most)
{
    uint32_t shown = 0, workers = 0;
    for (uint32_t k = 0; k < run->processes; k++)
        workers += run->process[k].role != DR_OTHER;
    for (uint32_t k = 0; k < run->processes && shown < most; k++)
        if (run->process[k].role == DR_TRAINER) {
            put_worker(s, &run->process[k]);
            shown++;
        }
    for (uint32_t k = 0; k < run->processes && shown < most; k++)
        if (run->process[k].role == DR_WORKER && run->process[k].table.ticks &&
            !isnan(dr_at(&run->process[k].table, run->process[k].table.ticks - 1, DR_P_THREADS))) {
            put_worker(s, &run->process[k]);
            shown++;
        }
    if (workers > shown && shown == most) {
        dr_put(s, DR_QUIET, " more: press 4");
        dr_put_line(s);
    }
}

/* ---- resources --------------------------------------------------------------------------------------
 */

static void put_resources(struct dr_screen *s, const struct dr_run *run)
{
    const struct dr_table *m = &run->machine;
    struct dr_text a, b, c, d;
    const double ours = recent(m, DR_CPU_OURS), throttled = recent(m, DR_CPU_THROTTLED);
    label(s, "CPU");
    dr_put_bar(s, DR_GREEN, 10, ours / run->limits.cpus);
    dr_put(s, DR_PLAIN, " %.1f of %.1f, machine %.1f", ours, run->limits.cpus, recent(m, DR_CPU_BUSY));
    dr_put(s, dr_above(throttled, 0.01) ? DR_RED : DR_QUIET, "  throttled %s",
           dr_share_text(&a, throttled));
    dr_put(s, DR_QUIET, "  PSI %s", dr_share_text(&b, recent(m, DR_PSI_CPU)));
    dr_put_line(s);
    label(s, "memory");
    dr_put(s, DR_PLAIN, "%s available, cache %s, shm %s used of %s",
           dr_bytes_text(&a, recent(m, DR_MEMORY_AVAILABLE)),
           dr_bytes_text(&b, recent(m, DR_MEMORY_CACHE)), dr_bytes_text(&c, recent(m, DR_SHM_USED)),
           dr_bytes_text(&d, run->limits.shm));
    dr_put_line(s);
    label(s, "storage");
    dr_put(s, DR_PLAIN, "%s/s, %s reads/s", dr_bytes_text(&a, recent(m, DR_DISK_READ)),
           dr_plain_text(&b, round(recent(m, DR_DISK_READS))));
    if (dr_known(recent(m, DR_DISK_AWAIT)))
        dr_put(s, DR_PLAIN, " of %.1f ms", 1e3 * recent(m, DR_DISK_AWAIT));
    dr_put(s, DR_PLAIN, ", busy %s, PSI %s", dr_share_text(&b, recent(m, DR_DISK_BUSY)),
           dr_share_text(&c, recent(m, DR_PSI_IO)));
    dr_put(s, DR_QUIET, "  net %s/s", dr_bytes_text(&d, recent(m, DR_NET_RECEIVED)));
    dr_put_line(s);
    label(s, "GPU");
    if (isnan(recent(m, DR_GPU_BUSY)) && isnan(recent(m, DR_GPU_SM))) {
        dr_put(s, DR_QUIET, "n/a");
    } else {
        dr_put(s, DR_PLAIN, "SM active %s, tensor %s, DRAM %s", dr_share_text(&a, recent(m, DR_GPU_SM)),
               dr_share_text(&b, recent(m, DR_GPU_TENSOR)), dr_share_text(&c, recent(m, DR_GPU_DRAM)));
        dr_put(s, DR_QUIET, "  (any kernel %s)", dr_share_text(&d, recent(m, DR_GPU_BUSY)));
        dr_put(s, DR_PLAIN, "  %s/s in", dr_bytes_text(&a, recent(m, DR_GPU_PCIE_IN)));
        if (dr_known(recent(m, DR_GPU_WATTS)))
            dr_put(s, DR_PLAIN, ", %.0f W", recent(m, DR_GPU_WATTS));
    }
    dr_put_line(s);
}

void dr_top_frame(struct dr_screen *screen, const struct dr_run *run, const struct dr_facts *facts,
                  const struct dr_verdict *verdict, enum dr_pane pane, const char *why)
{
    put_head(screen, run);
    put_verdict(screen, verdict, why);
    dr_put_line(screen);
    if (facts && (pane == DR_PANE_ALL || pane == DR_PANE_STEPS))
        put_steps(screen, facts);
    if (facts && (pane == DR_PANE_ALL || pane == DR_PANE_PIPELINE))
        put_pipeline(screen, facts);
    if (pane == DR_PANE_ALL || pane == DR_PANE_RESOURCES)
        put_resources(screen, run);
    if (pane == DR_PANE_ALL || pane == DR_PANE_WORKERS) {
        const uint32_t left = screen->height > screen->row + 3 ? screen->height - screen->row - 3 : 1;
        put_workers(screen, run, left);
    }
    if (screen->plain)
        return;
    while (screen->row + 1 < screen->height)
        dr_put_line(screen);
    dr_put(screen, DR_QUIET, " 1 all  2 steps  3 pipeline  4 workers  5 resources  q quit");
}
