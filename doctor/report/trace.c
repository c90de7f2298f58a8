/* trace.c - trace.json: the end of a run for Perfetto and Chrome, batches as arrows from maker to step
 *
 * Only the most recent steps: no viewer opens a trace of hours. "otherData" tells what it covers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/out.h"
#include "doctor/report/report.h"
#include "doctor/report/timeline.h"
#include "doctor/rule/words.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MOST = 500, BATCHES_MOST = 6000, EVENTS_MOST = 20000 };
/* Track numbers within a process; each kind of track may need several. */
enum { TRACK_LOOP = 1, TRACK_PIN = 101, TRACK_STALL = 201, TRACK_MAKER = 301 };

struct trace {
    FILE *to;
    const struct dr_run *run;
    uint64_t from, until;
    uint64_t written, left_out;
    uint32_t flow;
};

/* ---- one event --------------------------------------------------------------------------------- */

static void put_time(struct trace *t, const char *key, uint64_t ns)
{
    fprintf(t->to, ",\"%s\":%llu.%03llu", key, (unsigned long long)(ns / 1000),
            (unsigned long long)(ns % 1000));
}

/* Without the closing bracket. */
static void begin(struct trace *t, const char *phase, int pid, int track, const char *name, uint64_t ns)
{
    fprintf(t->to, "%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,\"name\":", t->written++ ? "," : "", phase,
            pid, track);
    json_text(t->to, name);
    put_time(t, "ts", ns - t->run->start_ns);
}

static void put_slice(struct trace *t, int pid, int track, const char *name, uint64_t start,
                      uint64_t end)
{
    begin(t, "X", pid, track, name, start);
    put_time(t, "dur", end - start);
}

static void put_name(struct trace *t, const char *what, int pid, int track, const char *name, int order)
{
    fprintf(t->to, "%s\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s_name\",\"args\":{\"name\":",
            t->written++ ? "," : "", pid, track, what);
    json_text(t->to, name);
    fprintf(t->to,
            "}},\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"%s_sort_index\",\"args\":{"
            "\"sort_index\":%d}}",
            pid, track, what, order);
}

static void put_counter(struct trace *t, int pid, const char *name, uint64_t ns, const char *unit,
                        double value)
{
    if (!isfinite(value))
        return;
    begin(t, "C", pid, 0, name, ns);
    fprintf(t->to, ",\"args\":{\"%s\":%.6g}}", unit, value);
}

/* ---- the training process ---------------------------------------------------------------------- */

static int track_of(uint16_t kind)
{
    switch (kind) {
    case DR_NEXT:
    case DR_STEP:
    case DR_ITER:
    case DR_COPY:
    case DR_SYNC:
    case DR_SAVE:
    case DR_GC:
    case DR_LOG:
    case DR_SAMPLE:
        return TRACK_LOOP;
    case DR_PIN:
        return TRACK_PIN;
    case DR_STALL:
        return TRACK_STALL;
    default:
        return 0;
    }
}

static const char *name_of(uint16_t kind)
{
    switch (kind) {
    case DR_NEXT:
        return "next";
    case DR_STEP:
        return "optimizer step";
    case DR_ITER:
        return "iter";
    case DR_COPY:
        return "copy to device";
    case DR_SYNC:
        return "wait for device";
    case DR_SAVE:
        return "save";
    case DR_GC:
        return "garbage collection";
    case DR_LOG:
        return "logging";
    case DR_SAMPLE:
        return "sampler";
    case DR_PIN:
        return "pin";
    default:
        return "waiting for data";
    }
}

/* The batch that this call of next() returned: the last one with its number that was finished
 * by then. */
static const struct dr_made *batch_for(const struct dr_event *next, const struct dr_made *made,
                                       uint64_t count, const struct dr_run *run, int trainer)
{
    const struct dr_made *best = NULL;
    for (uint64_t i = 0; i < count; i++)
        if (made[i].batch == next->batch && made[i].loader == next->loader &&
            made[i].end_ns <= next->start_ns + next->dur_ns &&
            ((int)made[i].process == trainer || run->process[made[i].process].trainer == trainer) &&
            (!best || made[i].end_ns > best->end_ns))
            best = &made[i];
    return best;
}

static void put_flow(struct trace *t, const struct dr_event *next, int pid, int track,
                     const struct dr_made *made)
{
    const uint64_t end = next->start_ns + next->dur_ns;
    if (!next->dur_ns || made->end_ns <= made->start_ns)
        return; /* an arrow needs a slice of nonzero length */
    t->flow++;
    begin(t, "s", t->run->process[made->process].pid, TRACK_MAKER + made->lane, "batch",
          made->end_ns - 1);
    fprintf(t->to, ",\"cat\":\"batch\",\"id\":%u}", t->flow);
    begin(t, "f", pid, track, "batch", end - 1);
    fprintf(t->to, ",\"bp\":\"e\",\"cat\":\"batch\",\"id\":%u}", t->flow);
}

static void put_arguments(struct trace *t, const struct dr_process *process,
                          const struct dr_event *event)
{
    fprintf(t->to, ",\"args\":{\"batch\":%u", event->batch);
    if (event->kind == DR_NEXT && event->a != DR_UNKNOWN)
        fprintf(t->to, ",\"ready\":%u,\"found\":%s,\"head_of_line\":%s", event->a,
                event->b & DR_NEXT_READY ? "true" : "false",
                event->b & DR_NEXT_BEHIND ? "true" : "false");
    if (event->kind == DR_COPY)
        fprintf(t->to, ",\"KiB\":%u,\"pinned\":%s,\"non_blocking\":%s", event->a,
                event->b & DR_COPY_PINNED ? "true" : "false",
                event->b & DR_COPY_NON_BLOCKING ? "true" : "false");
    if (event->kind == DR_SYNC) {
        if (event->b) /* a sum */
            fprintf(t->to, ",\"waits\":%u", event->b);
        char key[48];
        snprintf(key, sizeof key, "sync.%u.where", event->a);
        const char *where = dr_said(process, key);
        if (where) {
            fputs(",\"where\":", t->to);
            json_text(t->to, where);
        }
    }
    fputs("}}", t->to);
}

static int by_track_and_start(const void *left, const void *right)
{
    const struct dr_event *a = left, *b = right;
    const int track_a = track_of(a->kind), track_b = track_of(b->kind);
    if (track_a != track_b)
        return track_a < track_b ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return (a->dur_ns < b->dur_ns) - (a->dur_ns > b->dur_ns);
}

/* The batches within the window that have a track; the caller frees them. */
static struct dr_event *events_of(struct trace *t, const struct dr_process *process, uint64_t *count)
{
    uint64_t wanted = 0;
    *count = 0;
    for (uint64_t i = 0; i < process->event_count; i++)
        wanted += track_of(process->events[i].kind) && process->events[i].start_ns >= t->from;
    const uint64_t room = wanted < EVENTS_MOST ? wanted : EVENTS_MOST;
    struct dr_event *list = room ? malloc(room * sizeof *list) : NULL;
    for (uint64_t i = process->event_count; list && i && *count < room; i--) {
        const struct dr_event *event = &process->events[i - 1];
        if (track_of(event->kind) && event->start_ns >= t->from && dr_event_sane(t->run, event))
            list[(*count)++] = *event;
    }
    t->left_out += wanted - *count;
    if (list)
        qsort(list, *count, sizeof *list, by_track_and_start);
    return list;
}

static void put_trainer(struct trace *t, uint32_t number, const struct dr_made *made,
                        uint64_t made_count)
{
    static const char *const names[] = {"training loop", "pinning", "GPU idle, waiting for data"};
    const struct dr_process *process = &t->run->process[number];
    uint64_t count;
    struct dr_event *list = events_of(t, process, &count);
    struct dr_lanes lanes = {0};
    for (uint64_t i = 0; i < count; i++) {
        const struct dr_event *event = &list[i];
        const int track = track_of(event->kind);
        const bool fresh = !i || track_of(list[i - 1].kind) != track;
        const uint64_t end = event->start_ns + event->dur_ns;
        if (fresh) {
            memset(&lanes, 0, sizeof lanes);
            put_name(t, "thread", process->pid, track, names[track / 100], track);
        }
        const int lane = dr_lane_for(&lanes, event->start_ns, end);
        if (lane < 0) {
            t->left_out++;
            continue;
        }
        put_slice(t, process->pid, track + lane, name_of(event->kind), event->start_ns, end);
        put_arguments(t, process, event);
        if (event->kind != DR_NEXT)
            continue;
        if (event->a != DR_UNKNOWN)
            put_counter(t, process->pid, "ready batches", event->start_ns, "batches", event->a);
        const struct dr_made *from = batch_for(event, made, made_count, t->run, (int)number);
        if (from)
            put_flow(t, event, process->pid, track + lane, from);
    }
    free(list);
}

/* ---- makers ------------------------------------------------------------------------------------ */

/* The stages of a batch are sums: drawn end to end inside the batch, in pipeline order. */
static void put_made(struct trace *t, const struct dr_made *made)
{
    const int pid = t->run->process[made->process].pid, track = TRACK_MAKER + made->lane;
    uint64_t at = made->start_ns;
    put_slice(t, pid, track, "batch", made->start_ns, made->end_ns);
    fprintf(t->to, ",\"args\":{\"batch\":%u,\"samples\":%u", made->batch, made->samples);
    if (isfinite(made->slowest))
        fprintf(t->to, ",\"slowest_sample_ms\":%.3f", 1e3 * made->slowest);
    if (made->slowest_index != DR_UNKNOWN)
        fprintf(t->to, ",\"slowest_sample\":%u", made->slowest_index);
    fputs("}}", t->to);
    for (int stage = 0; stage < DR_STAGES; stage++) {
        const uint64_t left = made->end_ns - at, wanted = (uint64_t)(1e9 * made->stage[stage]);
        const uint64_t size = wanted < left ? wanted : left;
        if (!size || stage == DR_STAGE_PUT)
            continue;
        put_slice(t, pid, track, dr_stage_names[stage], at, at + size);
        fprintf(t->to, ",\"args\":{\"batch\":%u,\"sum_over_batch_ms\":%.3f}}", made->batch,
                1e3 * made->stage[stage]);
        at += size;
    }
}

static void put_makers(struct trace *t, const struct dr_made *made, uint64_t count)
{
    uint32_t named = 0; /* one bit per lane of this process */
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t bit = 1u << made[i].lane;
        if (!i || made[i].process != made[i - 1].process)
            named = 0;
        if (!(named & bit)) {
            char name[64];
            snprintf(name, sizeof name, made[i].lane ? "makes batches (%u)" : "makes batches",
                     made[i].lane + 1u);
            put_name(t, "thread", t->run->process[made[i].process].pid, TRACK_MAKER + made[i].lane, name,
                     TRACK_MAKER + made[i].lane);
        }
        named |= bit;
        put_made(t, &made[i]);
    }
}

static void put_process_names(struct trace *t)
{
    for (uint32_t i = 0; i < t->run->processes; i++) {
        const struct dr_process *process = &t->run->process[i];
        char name[128];
        if (!process->event_count)
            continue;
        if (process->role == DR_WORKER && process->worker >= 0)
            snprintf(name, sizeof name, "worker %d (%s)", process->worker, process->name);
        else if (process->rank >= 0)
            snprintf(name, sizeof name, "training, rank %d (%s)", process->rank, process->name);
        else
            snprintf(name, sizeof name, "%s (%s)", process->role == DR_TRAINER ? "training" : "process",
                     process->name);
        put_name(t, "process", process->pid, 0, name, process->role == DR_TRAINER ? 1 : 10 + (int)i);
    }
}

/* ---- the machine ------------------------------------------------------------------------------- */

static void put_machine(struct trace *t)
{
    const struct dr_table *table = &t->run->machine;
    put_name(t, "process", 0, 0, "machine", 5);
    for (uint32_t tick = 0; tick < table->ticks; tick++) {
        const uint64_t ns = t->run->tick_ns[tick];
        double queue = 0, known = 0;
        if (ns < t->from || ns > t->until || ns < t->run->start_ns)
            continue;
        put_counter(t, 0, "CPUs, this run", ns, "CPUs", dr_at(table, tick, DR_CPU_OURS));
        put_counter(t, 0, "CPUs, all", ns, "CPUs", dr_at(table, tick, DR_CPU_BUSY));
        put_counter(t, 0, "disk read", ns, "MB/s", dr_at(table, tick, DR_DISK_READ) / 1e6);
        put_counter(t, 0, "GPU SM active", ns, "%", 100 * dr_at(table, tick, DR_GPU_SM));
        for (uint32_t i = 0; i < t->run->processes; i++) {
            const struct dr_process *process = &t->run->process[i];
            if (tick < process->first_tick || tick - process->first_tick >= process->table.ticks)
                continue;
            const double value = dr_at(&process->table, tick - process->first_tick, DR_P_RUN_QUEUE);
            if (isfinite(value)) {
                queue += value;
                known++;
            }
        }
        put_counter(t, 0, "waiting for a CPU", ns, "threads", known > 0 ? queue : NAN);
    }
}

int dr_write_trace(FILE *to, const struct dr_facts *facts)
{
    const struct dr_run *run = facts->run;
    const uint32_t steps = facts->step_count < STEPS_MOST ? facts->step_count : STEPS_MOST;
    struct trace t = {.to = to, .run = run, .from = run->start_ns, .until = run->end_ns};
    uint64_t count;
    if (steps && facts->steps[facts->step_count - steps].start_ns > t.from)
        t.from = facts->steps[facts->step_count - steps].start_ns;
    struct dr_made *made = dr_made_between(run, -1, t.from, t.until, BATCHES_MOST, &count);
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", to);
    put_process_names(&t);
    put_makers(&t, made, count);
    for (uint32_t i = 0; i < run->processes; i++)
        if (run->process[i].role != DR_WORKER)
            put_trainer(&t, i, made, count);
    put_machine(&t);
    fprintf(to,
            "\n],\"otherData\":{\"covers\":\"the last %u of %u measured steps\",\"left_out\":%llu,"
            "\"stages\":\"sums over a batch, drawn end to end\",\"stoker\":",
            steps, facts->step_count, (unsigned long long)t.left_out);
    json_text(to, stoker_version_string());
    fputs("}}\n", to);
    free(made);
    return ferror(to) ? STOKER_EIO : STOKER_OK;
}
