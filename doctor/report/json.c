/* json.c - run.json: every number of a run and of its verdict
 *
 * Long series are reduced to means over equal parts of the run, so that the size of the file does not
 * depend on the length of the run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/report/json.h"

#include "doctor/report/numbers.h"
#include "doctor/report/operators.h"
#include "doctor/report/report.h"
#include "doctor/rule/words.h"

#include <string.h>

enum { POINTS_MOST = 600, STEPS_MOST = 4000, BATCHES_MOST = 4000, PROCESSES_MOST = 256 };

/* Seconds from the start of the run. */
static double since(const struct dr_run *run, uint64_t ns)
{
    return ns >= run->start_ns ? (double)(ns - run->start_ns) / 1e9
                               : -(double)(run->start_ns - ns) / 1e9;
}

void dr_json_range(struct json *json, const char *key, const struct dr_range *range)
{
    if (!isfinite(range->mid)) {
        json_null(json, key);
        return;
    }
    json_open(json, key, '{');
    json_number(json, "low", range->low);
    json_number(json, "mid", range->mid);
    json_number(json, "high", range->high);
    json_close(json, '}');
}

static void write_run(struct json *json, const struct dr_run *run)
{
    json_open(json, "run", '{');
    json_string(json, "directory", run->directory);
    json_open(json, "command", '[');
    for (char *const *argument = run->argv; argument && *argument; argument++)
        json_string(json, NULL, *argument);
    json_close(json, ']');
    json_string(json, "cwd", run->cwd);
    if (run->started > 0)
        json_count(json, "started", (uint64_t)run->started);
    else
        json_null(json, "started");
    json_number(json, "seconds", since(run, run->end_ns));
    json_bool(json, "finished", run->finished);
    if (run->finished)
        json_number(json, "exit_code", run->exit_code);
    else
        json_null(json, "exit_code");
    json_close(json, '}');
}

static void write_plan(struct json *json, const struct dr_plan *plan)
{
    if (plan->workers == UINT32_MAX) {
        json_null(json, "plan");
        return;
    }
    json_open(json, "plan", '{');
    json_number(json, "workers", plan->workers);
    json_number(json, "prefetch", plan->prefetch);
    json_bool(json, "in_order", plan->in_order);
    json_bool(json, "persistent", plan->persistent);
    json_bool(json, "shared_samples", plan->shared_samples);
    json_number(json, "cpus", plan->cpus);
    json_number(json, "wall_scale", plan->wall_scale);
    json_number(json, "cpu_scale", plan->cpu_scale);
    json_number(json, "step_scale", plan->step_scale);
    json_close(json, '}');
}

static void write_findings(struct json *json, const struct dr_verdict *verdict)
{
    json_open(json, "findings", '[');
    for (uint32_t i = 0; i < verdict->findings; i++) {
        const struct dr_finding *f = &verdict->finding[i];
        json_open(json, NULL, '{');
        json_string(json, "code", f->rule->code);
        json_string(json, "name", f->rule->name);
        json_string(json, "title", f->rule->title);
        json_string(json, "sentence", f->sentence);
        json_string(json, "advice", f->advice);
        json_string(json, "advice_stoker", f->advice_stoker);
        json_number(json, "weight", f->weight);
        json_bool(json, "blocks", f->blocks);
        dr_json_range(json, "gain", &f->gain);
        json_string(json, "basis", f->basis);
        json_string(json, "next", f->next);
        write_plan(json, &f->plan);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_rules(struct json *json, const char *key, const struct dr_rule *const *rules,
                        uint32_t count)
{
    json_open(json, key, '[');
    for (uint32_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        json_string(json, "code", rules[i]->code);
        json_string(json, "name", rules[i]->name);
        json_string(json, "title", rules[i]->title);
        json_string(json, "needs", rules[i]->needs);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_offer(struct json *json, const struct dr_offer *offer)
{
    if (offer->kind == DR_OFFER_NONE) {
        json_null(json, "with_stoker");
        return;
    }
    json_open(json, "with_stoker", '{');
    json_string(json, "command", offer->command);
    json_string(json, "sentence", offer->sentence);
    dr_json_range(json, "gain", &offer->gain);
    json_bool(json, "nothing_to_gain", offer->kind == DR_OFFER_NOTHING);
    json_close(json, '}');
}

void dr_json_verdict(struct json *json, const struct dr_verdict *verdict)
{
    json_open(json, "verdict", '{');
    json_string(json, "kind", dr_kind_name(verdict->kind));
    json_string(json, "code", dr_verdict_code(verdict));
    json_string(json, "sentence", verdict->sentence);
    json_string(json, "busy", verdict->busy[0] ? verdict->busy : NULL);
    json_string(json, "confidence", verdict->confidence);
    json_string(json, "limiter", verdict->limiter);
    json_number(json, "ceiling", verdict->ceiling);
    json_number(json, "most", verdict->most);
    dr_json_range(json, "all", &verdict->all);
    json_string(json, "limit_after", verdict->limit_after);
    write_offer(json, &verdict->offer);
    json_close(json, '}');
    write_findings(json, verdict);
    write_rules(json, "cleared", verdict->cleared, verdict->cleared_count);
    write_rules(json, "unjudged", verdict->unjudged, verdict->unjudged_count);
}

/* ---- facts ------------------------------------------------------------------------------------- */

static void write_numbers(struct json *json, const struct dr_number *number, const void *of)
{
    for (; number->name; number++)
        json_number(json, number->name, dr_number_of(number, of));
}

static void write_stages(struct json *json, const char *key, const double *stages)
{
    json_open(json, key, '{');
    for (int i = 0; i < DR_STAGES; i++)
        json_number(json, dr_stage_names[i], stages[i]);
    json_close(json, '}');
}

static void write_facts(struct json *json, const struct dr_facts *facts)
{
    json_open(json, "facts", '{');
    json_bool(json, "has_gpu", facts->has_gpu);
    json_number(json, "steps", facts->step_count);
    json_number(json, "warm_up_steps", facts->warm_up_steps);
    json_number(json, "batches", facts->batch_count);
    write_numbers(json, dr_fact_numbers, facts);
    write_stages(json, "stage", facts->stage);
    write_stages(json, "stage_cpu", facts->stage_cpu);
    write_stages(json, "stage_share", facts->stage_share);
    write_stages(json, "discarded", facts->discarded);
    json_string(json, "storm_names", facts->storm_names);
    json_string(json, "sync_where", facts->sync_where);
    json_close(json, '}');
}

static void write_loader(struct json *json, const struct dr_settings *loader)
{
    json_open(json, "loader", '{');
    json_string(json, "class", loader->class_name);
    json_string(json, "dataset", loader->dataset);
    json_string(json, "start_method", loader->start_method);
    json_string(json, "file", loader->file);
    json_number(json, "line", loader->line ? loader->line : NAN);
    json_string(json, "source", loader->source);
    json_string(json, "transform", loader->transform);
    json_string(json, "handles", loader->handles);
    json_bool(json, "native", loader->native);
    json_bool(json, "stoker", loader->stoker);
    json_bool(json, "iterable", loader->iterable);
    json_bool(json, "pin_memory", loader->pin_memory);
    json_bool(json, "persistent", loader->persistent);
    json_bool(json, "in_order", loader->in_order);
    json_bool(json, "shuffle", loader->shuffle);
    json_number(json, "workers", loader->workers);
    json_number(json, "prefetch", loader->prefetch);
    json_number(json, "batch_size", loader->batch_size);
    json_number(json, "batches", loader->batches);
    json_number(json, "samples", loader->samples);
    json_number(json, "batch_bytes", loader->batch_bytes);
    json_number(json, "tensors", loader->tensors);
    json_number(json, "objects", loader->objects);
    json_close(json, '}');
}

static void write_tried(struct json *json, const struct dr_tried *tried)
{
    if (!tried->plan && !tried->error) {
        json_null(json, "tried");
        return;
    }
    json_open(json, "tried", '{');
    json_string(json, "plan", tried->plan);
    json_string(json, "why", tried->why);
    json_string(json, "error", tried->error);
    json_number(json, "workers", tried->workers);
    json_number(json, "samples", tried->samples);
    json_number(json, "torch_cpu", tried->torch_cpu);
    json_number(json, "stoker_cpu", tried->stoker_cpu);
    json_number(json, "share", tried->share);
    json_number(json, "share_low", tried->share_low);
    json_number(json, "share_high", tried->share_high);
    json_close(json, '}');
}

static void write_limits(struct json *json, const struct dr_limits *limits)
{
    json_open(json, "limits", '{');
    write_numbers(json, dr_limit_numbers, limits);
    json_string(json, "gpu_name", limits->gpu_name);
    json_string(json, "disk_name", limits->disk_name);
    json_string(json, "file_system", limits->file_system);
    json_string(json, "cpu_name", limits->cpu_name);
    json_close(json, '}');
}

static void write_ranks(struct json *json, const struct dr_facts *facts)
{
    json_open(json, "ranks", '[');
    for (uint32_t i = 0; i < facts->rank_count; i++) {
        const struct dr_rank_facts *rank = &facts->ranks[i];
        json_open(json, NULL, '{');
        json_number(json, "rank", rank->rank);
        json_number(json, "step", rank->step);
        json_number(json, "stall_share", rank->stall_share);
        json_number(json, "wait_share", rank->wait_share);
        json_number(json, "wait_before_others", rank->wait_before_others);
        json_number(json, "pace", rank->pace);
        json_close(json, '}');
    }
    json_close(json, ']');
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

static void write_step_column(struct json *json, const struct dr_facts *facts, uint32_t parts,
                              const struct step_column *column)
{
    json_open(json, column->name, '[');
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
        json_number(json, NULL, known ? sum / known : NAN);
    }
    json_close(json, ']');
}

static void write_steps(struct json *json, const struct dr_facts *facts)
{
    const uint32_t parts = dr_parts(facts->step_count, STEPS_MOST);
    json_open(json, "steps", '{');
    json_number(json, "count", facts->step_count);
    json_number(json, "steps_per_row", parts ? (double)facts->step_count / parts : NAN);
    json_open(json, "start", '[');
    for (uint32_t p = 0; p < parts; p++)
        json_number(
            json, NULL,
            since(facts->run, facts->steps[dr_part_begin(facts->step_count, parts, p)].start_ns));
    json_close(json, ']');
    for (size_t i = 0; i < sizeof step_columns / sizeof *step_columns; i++)
        write_step_column(json, facts, parts, &step_columns[i]);
    json_open(json, "ready", '[');
    for (uint32_t p = 0; p < parts; p++)
        json_number(json, NULL,
                       dr_steps_ready(facts, dr_part_begin(facts->step_count, parts, p),
                                      dr_part_begin(facts->step_count, parts, p + 1)));
    json_close(json, ']');
    json_close(json, '}');
}

static void write_batches(struct json *json, const struct dr_facts *facts)
{
    const double *const columns[] = {facts->batch_seconds, facts->batch_cpu};
    static const char *const names[] = {"seconds", "cpu"};
    const uint32_t parts = dr_parts(facts->batch_count, BATCHES_MOST);
    json_open(json, "batches", '{');
    json_number(json, "count", facts->batch_count);
    json_number(json, "batches_per_row", parts ? (double)facts->batch_count / parts : NAN);
    for (int c = 0; c < 2; c++) {
        json_open(json, names[c], '[');
        for (uint32_t p = 0; p < parts && columns[c]; p++)
            json_number(json, NULL,
                           dr_mean_of(columns[c], dr_part_begin(facts->batch_count, parts, p),
                                      dr_part_begin(facts->batch_count, parts, p + 1)));
        json_close(json, ']');
    }
    json_close(json, '}');
}

/* The values of a signal; null where none of them is known. */
static void write_signal(struct json *json, const struct dr_signal *signal, uint32_t number,
                         const struct dr_run *run, const struct dr_process *process, uint32_t parts)
{
    const struct dr_table *table = process ? &process->table : &run->machine;
    if (!isfinite(dr_mean_between(table, number, 0, table->ticks))) {
        json_null(json, signal->name);
        return;
    }
    json_open(json, signal->name, '{');
    json_string(json, "unit", signal->unit);
    json_open(json, "values", '[');
    for (uint32_t p = 0; p < parts; p++) {
        const uint64_t begin = dr_part_begin(run->machine.ticks, parts, p);
        const uint64_t end = dr_part_begin(run->machine.ticks, parts, p + 1);
        json_number(json, NULL,
                       process ? dr_process_mean(process, number, begin, end)
                               : dr_mean_between(table, number, begin, end));
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void write_process(struct json *json, const struct dr_run *run,
                          const struct dr_process *process, uint32_t parts)
{
    json_open(json, NULL, '{');
    json_number(json, "pid", process->pid);
    json_number(json, "parent", process->parent);
    json_string(json, "role", dr_role_name(process->role));
    json_number(json, "rank", process->rank < 0 ? NAN : process->rank);
    json_number(json, "worker", process->worker < 0 ? NAN : process->worker);
    json_string(json, "name", process->name);
    json_number(json, "events", (double)process->event_count);
    json_number(json, "events_lost", (double)process->events_lost);
    json_number(json, "watch_seconds", (double)process->watch_spent_ns / 1e9);
    json_open(json, "said", '{');
    for (uint32_t i = 0; i < process->said_count; i++)
        json_string(json, process->said[i].key, process->said[i].value);
    json_close(json, '}');
    json_open(json, "threads", '[');
    for (uint32_t i = 0; i < process->thread_names; i++) {
        json_open(json, NULL, '{');
        json_string(json, "name", process->threads[i].name);
        json_number(json, "most", process->threads[i].most);
        json_number(json, "cpu_seconds", process->threads[i].cpu_seconds);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open(json, "signals", '{');
    for (uint32_t i = 0; i < DR_PROCESS_COUNT && i < process->table.signals; i++)
        write_signal(json, &dr_process_signals[i], i, run, process, parts);
    json_close(json, '}');
    json_close(json, '}');
}

static void write_signals(struct json *json, const struct dr_run *run)
{
    const uint32_t parts = dr_parts(run->machine.ticks, POINTS_MOST);
    const uint32_t processes = run->processes < PROCESSES_MOST ? run->processes : PROCESSES_MOST;
    json_open(json, "signals", '{');
    json_number(json, "ticks", run->machine.ticks);
    json_open(json, "time", '[');
    for (uint32_t p = 0; p < parts; p++)
        json_number(json, NULL,
                       since(run, run->tick_ns[dr_part_begin(run->machine.ticks, parts, p)]));
    json_close(json, ']');
    json_open(json, "machine", '{');
    for (uint32_t i = 0; i < DR_MACHINE_COUNT && i < run->machine.signals; i++)
        write_signal(json, &dr_machine_signals[i], i, run, NULL, parts);
    json_close(json, '}');
    json_open(json, "processes", '[');
    for (uint32_t i = 0; i < processes; i++)
        write_process(json, run, &run->process[i], parts);
    json_close(json, ']');
    json_number(json, "processes_left_out", run->processes - processes);
    json_close(json, '}');
}

/* ---- the watch --------------------------------------------------------------------------------- */

static void write_watch(struct json *json, const struct dr_facts *facts)
{
    const struct dr_run *run = facts->run;
    double inside = 0;
    json_open(json, "missing", '[');
    for (uint32_t i = 0; i < run->missing_count; i++) {
        json_open(json, NULL, '{');
        json_string(json, "signal", run->missing[i].signal);
        json_string(json, "why", run->missing[i].why);
        json_string(json, "remedy", run->missing[i].remedy);
        json_close(json, '}');
    }
    json_close(json, ']');
    for (uint32_t i = 0; i < run->processes; i++)
        inside += (double)run->process[i].watch_spent_ns / 1e9;
    json_open(json, "overhead", '{');
    json_number(json, "share", facts->overhead_share);
    json_number(json, "watcher_cpu_seconds", run->own_cpu_seconds);
    json_number(json, "watched_seconds", inside);
    json_close(json, '}');
    json_open(json, "versions", '{');
    json_string(json, "stoker", stoker_version_string());
    json_string(json, "python", dr_said_by(facts->trainer, "python"));
    json_string(json, "torch", dr_said_by(facts->trainer, "torch"));
    json_close(json, '}');
}

int dr_write_json(FILE *to, const struct dr_verdict *verdict, const struct dr_facts *facts)
{
    struct json json = {.to = to};
    json_open(&json, NULL, '{');
    json_number(&json, "format", 1);
    dr_json_verdict(&json, verdict);
    write_run(&json, facts->run);
    write_facts(&json, facts);
    write_loader(&json, &facts->loader);
    dr_json_operators(&json, facts);
    write_tried(&json, &facts->tried);
    write_limits(&json, &facts->limits);
    write_ranks(&json, facts);
    write_watch(&json, facts);
    write_steps(&json, facts);
    write_batches(&json, facts);
    write_signals(&json, facts->run);
    json_close(&json, '}');
    return ferror(to) ? STOKER_EIO : STOKER_OK;
}
