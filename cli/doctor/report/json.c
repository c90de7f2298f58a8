/* json.c - run.json: every number of a run and of its verdict
 *
 * Series are thinned to a bound by means over equal parts of the run, so that the file stays small
 * however long the run was.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/report/json.h"

#include "cli/doctor/report.h"
#include "cli/doctor/report/numbers.h"
#include "cli/doctor/report/words.h"

#include <string.h>

enum { POINTS_MOST = 600, STEPS_MOST = 4000, BATCHES_MOST = 4000, PROCESSES_MOST = 256 };

/* Seconds since the run began. */
static double since(const struct dr_run *run, uint64_t ns)
{
    return ns >= run->start_ns ? (double)(ns - run->start_ns) / 1e9
                               : -(double)(run->start_ns - ns) / 1e9;
}

static void write_run(struct dr_json *json, const struct dr_run *run)
{
    dr_json_open(json, "run", '{');
    dr_json_text(json, "directory", run->directory);
    dr_json_open(json, "command", '[');
    for (char *const *argument = run->argv; argument && *argument; argument++)
        dr_json_text(json, NULL, *argument);
    dr_json_close(json, ']');
    dr_json_text(json, "cwd", run->cwd);
    dr_json_number(json, "started", (double)run->started);
    dr_json_number(json, "seconds", since(run, run->end_ns));
    dr_json_bool(json, "finished", run->finished);
    if (run->finished)
        dr_json_number(json, "exit_code", run->exit_code);
    else
        dr_json_null(json, "exit_code");
    dr_json_close(json, '}');
}

static void write_plan(struct dr_json *json, const struct dr_plan *plan)
{
    if (plan->workers == UINT32_MAX) {
        dr_json_null(json, "plan");
        return;
    }
    dr_json_open(json, "plan", '{');
    dr_json_number(json, "workers", plan->workers);
    dr_json_number(json, "prefetch", plan->prefetch);
    dr_json_bool(json, "in_order", plan->in_order);
    dr_json_bool(json, "persistent", plan->persistent);
    dr_json_bool(json, "shared_samples", plan->shared_samples);
    dr_json_number(json, "cpus", plan->cpus);
    dr_json_number(json, "wall_scale", plan->wall_scale);
    dr_json_number(json, "cpu_scale", plan->cpu_scale);
    dr_json_number(json, "step_scale", plan->step_scale);
    dr_json_close(json, '}');
}

static void write_findings(struct dr_json *json, const struct dr_verdict *verdict)
{
    dr_json_open(json, "findings", '[');
    for (uint32_t i = 0; i < verdict->findings; i++) {
        const struct dr_finding *f = &verdict->finding[i];
        dr_json_open(json, NULL, '{');
        dr_json_text(json, "code", f->rule->code);
        dr_json_text(json, "name", f->rule->name);
        dr_json_text(json, "title", f->rule->title);
        dr_json_text(json, "sentence", f->sentence);
        dr_json_text(json, "advice", f->advice);
        dr_json_text(json, "advice_stoker", f->advice_stoker);
        dr_json_number(json, "weight", f->weight);
        dr_json_bool(json, "blocks", f->blocks);
        dr_json_range(json, "gain", &f->gain);
        dr_json_text(json, "basis", f->basis);
        dr_json_text(json, "next", f->next);
        write_plan(json, &f->plan);
        dr_json_close(json, '}');
    }
    dr_json_close(json, ']');
}

static void write_rules(struct dr_json *json, const char *key, const struct dr_rule *const *rules,
                        uint32_t count)
{
    dr_json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        dr_json_open(json, NULL, '{');
        dr_json_text(json, "code", rules[i]->code);
        dr_json_text(json, "name", rules[i]->name);
        dr_json_text(json, "title", rules[i]->title);
        dr_json_text(json, "needs", rules[i]->needs);
        dr_json_close(json, '}');
    }
    dr_json_close(json, ']');
}

static void write_verdict(struct dr_json *json, const struct dr_verdict *verdict)
{
    dr_json_open(json, "verdict", '{');
    dr_json_text(json, "kind", dr_kind_name(verdict->kind));
    dr_json_text(json, "code", dr_verdict_code(verdict));
    dr_json_text(json, "sentence", verdict->sentence);
    dr_json_text(json, "confidence", verdict->confidence);
    dr_json_text(json, "limiter", verdict->limiter);
    dr_json_number(json, "ceiling", verdict->ceiling);
    dr_json_range(json, "all", &verdict->all);
    dr_json_text(json, "limit_after", verdict->limit_after);
    dr_json_close(json, '}');
    write_findings(json, verdict);
    write_rules(json, "cleared", verdict->cleared, verdict->cleared_count);
    write_rules(json, "unjudged", verdict->unjudged, verdict->unjudged_count);
}

/* ---- facts ------------------------------------------------------------------------------------- */

static void write_numbers(struct dr_json *json, const struct dr_number *number, const void *of)
{
    for (; number->name; number++)
        dr_json_number(json, number->name, dr_number_of(number, of));
}

static void write_stages(struct dr_json *json, const char *key, const double *stages)
{
    dr_json_open(json, key, '{');
    for (int i = 0; i < DR_STAGES; i++)
        dr_json_number(json, dr_stage_names[i], stages[i]);
    dr_json_close(json, '}');
}

static void write_facts(struct dr_json *json, const struct dr_facts *facts)
{
    dr_json_open(json, "facts", '{');
    dr_json_bool(json, "has_gpu", facts->has_gpu);
    dr_json_number(json, "steps", facts->step_count);
    dr_json_number(json, "warm_up_steps", facts->warm_up_steps);
    dr_json_number(json, "batches", facts->batch_count);
    write_numbers(json, dr_fact_numbers, facts);
    write_stages(json, "stage", facts->stage);
    write_stages(json, "stage_cpu", facts->stage_cpu);
    write_stages(json, "stage_share", facts->stage_share);
    dr_json_text(json, "storm_names", facts->storm_names);
    dr_json_text(json, "sync_where", facts->sync_where);
    dr_json_close(json, '}');
}

static void write_loader(struct dr_json *json, const struct dr_settings *loader)
{
    dr_json_open(json, "loader", '{');
    dr_json_text(json, "class", loader->class_name);
    dr_json_text(json, "dataset", loader->dataset);
    dr_json_text(json, "start_method", loader->start_method);
    dr_json_text(json, "file", loader->file);
    dr_json_number(json, "line", loader->line ? loader->line : NAN);
    dr_json_text(json, "source", loader->source);
    dr_json_text(json, "transform", loader->transform);
    dr_json_text(json, "handles", loader->handles);
    dr_json_bool(json, "native", loader->native);
    dr_json_bool(json, "stoker", loader->stoker);
    dr_json_bool(json, "iterable", loader->iterable);
    dr_json_bool(json, "pin_memory", loader->pin_memory);
    dr_json_bool(json, "persistent", loader->persistent);
    dr_json_bool(json, "in_order", loader->in_order);
    dr_json_bool(json, "shuffle", loader->shuffle);
    dr_json_number(json, "workers", loader->workers);
    dr_json_number(json, "prefetch", loader->prefetch);
    dr_json_number(json, "batch_size", loader->batch_size);
    dr_json_number(json, "batches", loader->batches);
    dr_json_number(json, "samples", loader->samples);
    dr_json_number(json, "batch_bytes", loader->batch_bytes);
    dr_json_number(json, "tensors", loader->tensors);
    dr_json_number(json, "objects", loader->objects);
    dr_json_close(json, '}');
}

static void write_limits(struct dr_json *json, const struct dr_limits *limits)
{
    dr_json_open(json, "limits", '{');
    write_numbers(json, dr_limit_numbers, limits);
    dr_json_text(json, "gpu_name", limits->gpu_name);
    dr_json_text(json, "disk_name", limits->disk_name);
    dr_json_text(json, "file_system", limits->file_system);
    dr_json_text(json, "cpu_name", limits->cpu_name);
    dr_json_close(json, '}');
}

static void write_ranks(struct dr_json *json, const struct dr_facts *facts)
{
    dr_json_open(json, "ranks", '[');
    for (uint32_t i = 0; i < facts->rank_count; i++) {
        const struct dr_rank_facts *rank = &facts->ranks[i];
        dr_json_open(json, NULL, '{');
        dr_json_number(json, "rank", rank->rank);
        dr_json_number(json, "step", rank->step);
        dr_json_number(json, "stall_share", rank->stall_share);
        dr_json_number(json, "wait_share", rank->wait_share);
        dr_json_number(json, "wait_before_others", rank->wait_before_others);
        dr_json_close(json, '}');
    }
    dr_json_close(json, ']');
}

/* ---- series ------------------------------------------------------------------------------------ */

struct step_column {
    const char *name;
    size_t offset;
};
static const struct step_column step_columns[] = {
    {"seconds", offsetof(struct dr_step, seconds)}, {"wait", offsetof(struct dr_step, wait)},
    {"stall", offsetof(struct dr_step, stall)},     {"copy", offsetof(struct dr_step, copy)},
    {"sync", offsetof(struct dr_step, sync)},       {"save", offsetof(struct dr_step, save)},
    {"gc", offsetof(struct dr_step, gc)},           {"optimizer", offsetof(struct dr_step, optimizer)},
};

static void write_step_column(struct dr_json *json, const struct dr_facts *facts, uint32_t parts,
                              const struct step_column *column)
{
    dr_json_open(json, column->name, '[');
    for (uint32_t p = 0; p < parts; p++) {
        double sum = 0, known = 0;
        const uint64_t end = dr_part_begin(facts->step_count, parts, p + 1);
        for (uint64_t i = dr_part_begin(facts->step_count, parts, p); i < end; i++) {
            double value;
            memcpy(&value, (const char *)&facts->steps[i] + column->offset, sizeof value);
            if (isfinite(value)) {
                sum += value;
                known++;
            }
        }
        dr_json_number(json, NULL, known ? sum / known : NAN);
    }
    dr_json_close(json, ']');
}

static void write_steps(struct dr_json *json, const struct dr_facts *facts)
{
    const uint32_t parts = dr_parts(facts->step_count, STEPS_MOST);
    dr_json_open(json, "steps", '{');
    dr_json_number(json, "count", facts->step_count);
    dr_json_number(json, "steps_a_row", parts ? (double)facts->step_count / parts : NAN);
    dr_json_open(json, "start", '[');
    for (uint32_t p = 0; p < parts; p++)
        dr_json_number(
            json, NULL,
            since(facts->run, facts->steps[dr_part_begin(facts->step_count, parts, p)].start_ns));
    dr_json_close(json, ']');
    for (size_t i = 0; i < sizeof step_columns / sizeof *step_columns; i++)
        write_step_column(json, facts, parts, &step_columns[i]);
    dr_json_open(json, "ready", '[');
    for (uint32_t p = 0; p < parts; p++)
        dr_json_number(json, NULL,
                       dr_steps_ready(facts, dr_part_begin(facts->step_count, parts, p),
                                      dr_part_begin(facts->step_count, parts, p + 1)));
    dr_json_close(json, ']');
    dr_json_close(json, '}');
}

static void write_batches(struct dr_json *json, const struct dr_facts *facts)
{
    const double *const columns[] = {facts->batch_seconds, facts->batch_cpu};
    static const char *const names[] = {"seconds", "cpu"};
    const uint32_t parts = dr_parts(facts->batch_count, BATCHES_MOST);
    dr_json_open(json, "batches", '{');
    dr_json_number(json, "count", facts->batch_count);
    dr_json_number(json, "batches_a_row", parts ? (double)facts->batch_count / parts : NAN);
    for (int c = 0; c < 2; c++) {
        dr_json_open(json, names[c], '[');
        for (uint32_t p = 0; p < parts && columns[c]; p++)
            dr_json_number(json, NULL,
                           dr_mean_of(columns[c], dr_part_begin(facts->batch_count, parts, p),
                                      dr_part_begin(facts->batch_count, parts, p + 1)));
        dr_json_close(json, ']');
    }
    dr_json_close(json, '}');
}

/* A signal's values; one that is unknown throughout is null. */
static void write_signal(struct dr_json *json, const struct dr_signal *signal, uint32_t number,
                         const struct dr_run *run, const struct dr_process *process, uint32_t parts)
{
    const struct dr_table *table = process ? &process->table : &run->machine;
    if (!isfinite(dr_mean_between(table, number, 0, table->ticks))) {
        dr_json_null(json, signal->name);
        return;
    }
    dr_json_open(json, signal->name, '{');
    dr_json_text(json, "unit", signal->unit);
    dr_json_open(json, "values", '[');
    for (uint32_t p = 0; p < parts; p++) {
        const uint64_t begin = dr_part_begin(run->machine.ticks, parts, p);
        const uint64_t end = dr_part_begin(run->machine.ticks, parts, p + 1);
        dr_json_number(json, NULL,
                       process ? dr_process_mean(process, number, begin, end)
                               : dr_mean_between(table, number, begin, end));
    }
    dr_json_close(json, ']');
    dr_json_close(json, '}');
}

static void write_process(struct dr_json *json, const struct dr_run *run,
                          const struct dr_process *process, uint32_t parts)
{
    dr_json_open(json, NULL, '{');
    dr_json_number(json, "pid", process->pid);
    dr_json_number(json, "parent", process->parent);
    dr_json_text(json, "role", dr_role_name(process->role));
    dr_json_number(json, "rank", process->rank < 0 ? NAN : process->rank);
    dr_json_number(json, "worker", process->worker < 0 ? NAN : process->worker);
    dr_json_text(json, "name", process->name);
    dr_json_number(json, "events", (double)process->event_count);
    dr_json_number(json, "events_lost", (double)process->events_lost);
    dr_json_number(json, "watch_seconds", (double)process->watch_spent_ns / 1e9);
    dr_json_open(json, "said", '{');
    for (uint32_t i = 0; i < process->said_count; i++)
        dr_json_text(json, process->said[i].key, process->said[i].value);
    dr_json_close(json, '}');
    dr_json_open(json, "threads", '[');
    for (uint32_t i = 0; i < process->thread_names; i++) {
        dr_json_open(json, NULL, '{');
        dr_json_text(json, "name", process->threads[i].name);
        dr_json_number(json, "most", process->threads[i].most);
        dr_json_number(json, "cpu_seconds", process->threads[i].cpu_seconds);
        dr_json_close(json, '}');
    }
    dr_json_close(json, ']');
    dr_json_open(json, "signals", '{');
    for (uint32_t i = 0; i < DR_PROCESS_COUNT && i < process->table.signals; i++)
        write_signal(json, &dr_process_signals[i], i, run, process, parts);
    dr_json_close(json, '}');
    dr_json_close(json, '}');
}

static void write_signals(struct dr_json *json, const struct dr_run *run)
{
    const uint32_t parts = dr_parts(run->machine.ticks, POINTS_MOST);
    const uint32_t processes = run->processes < PROCESSES_MOST ? run->processes : PROCESSES_MOST;
    dr_json_open(json, "signals", '{');
    dr_json_number(json, "ticks", run->machine.ticks);
    dr_json_open(json, "time", '[');
    for (uint32_t p = 0; p < parts; p++)
        dr_json_number(json, NULL,
                       since(run, run->tick_ns[dr_part_begin(run->machine.ticks, parts, p)]));
    dr_json_close(json, ']');
    dr_json_open(json, "machine", '{');
    for (uint32_t i = 0; i < DR_MACHINE_COUNT && i < run->machine.signals; i++)
        write_signal(json, &dr_machine_signals[i], i, run, NULL, parts);
    dr_json_close(json, '}');
    dr_json_open(json, "processes", '[');
    for (uint32_t i = 0; i < processes; i++)
        write_process(json, run, &run->process[i], parts);
    dr_json_close(json, ']');
    dr_json_number(json, "processes_left_out", run->processes - processes);
    dr_json_close(json, '}');
}

/* ---- the watch --------------------------------------------------------------------------------- */

static void write_watch(struct dr_json *json, const struct dr_facts *facts)
{
    const struct dr_run *run = facts->run;
    double inside = 0;
    dr_json_open(json, "missing", '[');
    for (uint32_t i = 0; i < run->missing_count; i++) {
        dr_json_open(json, NULL, '{');
        dr_json_text(json, "signal", run->missing[i].signal);
        dr_json_text(json, "why", run->missing[i].why);
        dr_json_text(json, "remedy", run->missing[i].remedy);
        dr_json_close(json, '}');
    }
    dr_json_close(json, ']');
    for (uint32_t i = 0; i < run->processes; i++)
        inside += (double)run->process[i].watch_spent_ns / 1e9;
    dr_json_open(json, "overhead", '{');
    dr_json_number(json, "share", facts->overhead_share);
    dr_json_number(json, "watcher_cpu_seconds", run->own_cpu_seconds);
    dr_json_number(json, "watched_seconds", inside);
    dr_json_close(json, '}');
    dr_json_open(json, "versions", '{');
    dr_json_text(json, "stoker", stoker_version_string());
    dr_json_text(json, "python", dr_said_by(facts->trainer, "python"));
    dr_json_text(json, "torch", dr_said_by(facts->trainer, "torch"));
    dr_json_close(json, '}');
}

int dr_write_json(FILE *to, const struct dr_verdict *verdict, const struct dr_facts *facts)
{
    struct dr_json json = {.to = to};
    dr_json_open(&json, NULL, '{');
    dr_json_number(&json, "format", 1);
    write_verdict(&json, verdict);
    write_run(&json, facts->run);
    write_facts(&json, facts);
    write_loader(&json, &facts->loader);
    write_limits(&json, &facts->limits);
    write_ranks(&json, facts);
    write_watch(&json, facts);
    write_steps(&json, facts);
    write_batches(&json, facts);
    write_signals(&json, facts->run);
    dr_json_close(&json, '}');
    return ferror(to) ? STOKER_EIO : STOKER_OK;
}
