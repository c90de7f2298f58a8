/* facts.c - reduces a run to facts: which training process, which loader, its settings
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include "base/err.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const dr_stage_names[DR_STAGES] = {"read",      "network", "decompress", "decode",
                                               "transform", "collate", "put",        "other"};

/* All numbers start as unknown. */
#define FORGET(out, first, last)                                                                        \
    dr_forget((char *)(out) + offsetof(struct dr_facts, first),                                         \
              offsetof(struct dr_facts, last) + sizeof(double) - offsetof(struct dr_facts, first))
static void forget_all(struct dr_facts *out)
{
    memset(out, 0, sizeof *out);
    FORGET(out, loader.batch_size, loader.objects);
    FORGET(out, steps_seen, steps_lost);
    FORGET(out, confidence_steps, confidence_steps);
    FORGET(out, step, wait_period);
    FORGET(out, batch_mean, worker_rss);
    FORGET(out, cpus_used, gpu_capability);
    FORGET(out, sync_where_share, outlier_eval);
    FORGET(out, rank_skew, rank_skew);
    FORGET(out, sample_seconds, sample_seconds);
    FORGET(out, tried.workers, tried.share_high);
    FORGET(out, overhead_share, overhead_share);
}

static uint64_t count_of(const struct dr_process *process, uint16_t kind)
{
    uint64_t count = 0;
    for (uint64_t k = 0; k < process->event_count; k++)
        count += process->events[k].kind == kind;
    return count;
}

static uint64_t time_of(const struct dr_process *process, uint16_t kind)
{
    uint64_t sum = 0;
    for (uint64_t k = 0; k < process->event_count; k++)
        sum += process->events[k].kind == kind ? process->events[k].dur_ns : 0;
    return sum;
}

/* Ranks take the same steps: the one that waits for data the longest sets the pace of all. */
static int latest_rank(const struct dr_run *run, int first)
{
    int best = first;
    const uint64_t steps = count_of(&run->process[first], DR_STEP);
    uint64_t most = time_of(&run->process[first], DR_NEXT);
    for (uint32_t k = 0; k < run->processes; k++) {
        const struct dr_process *process = &run->process[k];
        if (process->role != DR_TRAINER || process->rank < 0 ||
            count_of(process, DR_STEP) < steps - steps / 20)
            continue;
        const uint64_t waits = time_of(process, DR_NEXT);
        if (waits > most)
            best = (int)k, most = waits;
    }
    return best;
}

/* The training process with this rank; -1: the one with the most steps, or the most requested batches,
 * and of several ranks the one that waits the longest. */
static int pick_trainer(const struct dr_run *run, int rank)
{
    int best = -1;
    uint64_t best_steps = 0, best_calls = 0;
    for (uint32_t k = 0; k < run->processes; k++) {
        const struct dr_process *process = &run->process[k];
        if (process->role != DR_TRAINER || (rank >= 0 && process->rank != rank))
            continue;
        const uint64_t steps = count_of(process, DR_STEP), calls = count_of(process, DR_NEXT);
        if (best < 0 || steps > best_steps || (steps == best_steps && calls > best_calls))
            best = (int)k, best_steps = steps, best_calls = calls;
    }
    return rank < 0 && best >= 0 && run->process[best].rank >= 0 ? latest_rank(run, best) : best;
}

static const char *said_of_loader(const struct dr_part *part, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "loader.%u.%s", part->intervals.loader, key);
    return dr_said(part->trainer, name);
}

static double number_of_loader(const struct dr_part *part, const char *key)
{
    char name[64];
    snprintf(name, sizeof name, "loader.%u.%s", part->intervals.loader, key);
    return dr_said_number(part->trainer, name);
}

static bool flag_of_loader(const struct dr_part *part, const char *key, bool otherwise)
{
    const char *text = said_of_loader(part, key);
    return !text ? otherwise : !strcmp(text, "1") || !strcmp(text, "True") || !strcmp(text, "true");
}

static uint32_t count_of_loader(const struct dr_part *part, const char *key)
{
    const double value = number_of_loader(part, key);
    return value >= 0 && value <= 1e6 ? (uint32_t)value : 0;
}

static void facts_settings(struct dr_part *part)
{
    struct dr_settings *loader = &part->facts->loader;
    const struct {
        const char *key;
        char *to;
        size_t room;
    } texts[] = {{"class", loader->class_name, sizeof loader->class_name},
                 {"dataset", loader->dataset, sizeof loader->dataset},
                 {"start_method", loader->start_method, sizeof loader->start_method},
                 {"file", loader->file, sizeof loader->file},
                 {"source", loader->source, sizeof loader->source},
                 {"transform", loader->transform, sizeof loader->transform},
                 {"handles", loader->handles, sizeof loader->handles},
                 {"failure", loader->failure, sizeof loader->failure}};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        const char *text = said_of_loader(part, texts[k].key);
        snprintf(texts[k].to, texts[k].room, "%s", text ? text : "");
    }
    loader->line = (int)count_of_loader(part, "line");
    loader->feeder = dr_said(part->trainer, "feeder") != NULL;
    part->facts->watch_error = dr_said(part->trainer, "watch.error");
    loader->native = flag_of_loader(part, "native", false);
    loader->stoker = loader->native || strstr(loader->class_name, "stoker") != NULL;
    loader->iterable = flag_of_loader(part, "iterable", false);
    loader->pin_memory = flag_of_loader(part, "pin_memory", false);
    loader->persistent = flag_of_loader(part, "persistent", false);
    loader->in_order = flag_of_loader(part, "in_order", true);
    loader->shuffle = flag_of_loader(part, "shuffle", false);
    loader->workers = count_of_loader(part, "workers");
    loader->prefetch = count_of_loader(part, "prefetch");
    loader->batch_size = number_of_loader(part, "batch_size");
    loader->batches = number_of_loader(part, "batches");
    loader->samples = number_of_loader(part, "samples");
    loader->batch_bytes = number_of_loader(part, "batch_bytes");
    loader->tensors = number_of_loader(part, "tensors");
    loader->objects = number_of_loader(part, "objects");
}

/* The part of a process's time for watching that belongs to the events that are still there. */
static double spent_of(const struct dr_process *process)
{
    const double kept = (double)process->event_count;
    const double share = dr_share(kept, kept + (double)process->events_lost);
    return dr_known(share) ? (double)process->watch_spent_ns / 1e9 * share : 0;
}

/* The cost of watching, per step and as a share of the time: how much longer the run takes if nothing of
 * it is hidden behind other waits. The training process and its workers lose the time that they spend on
 * it (workers side by side), and the recorder takes CPU time from all. */
static void facts_overhead(struct dr_part *part)
{
    const struct dr_run *run = part->run;
    const struct dr_process *trainer = part->trainer;
    double calls = 0, from = INFINITY, to = 0, workers = 0;
    for (uint64_t k = 0; k < trainer->event_count; k++) {
        calls += trainer->events[k].kind == DR_NEXT;
        from = fmin(from, (double)trainer->events[k].start_ns / 1e9);
        to = fmax(to, (double)(trainer->events[k].start_ns + trainer->events[k].dur_ns) / 1e9);
    }
    part->facts->watch_step = dr_share(spent_of(trainer), calls);
    for (uint32_t k = 0; k < run->processes; k++)
        if (&run->process[k] != trainer && dr_is_maker(part, &run->process[k]))
            workers += spent_of(&run->process[k]);
    const uint32_t side_by_side = part->facts->loader.workers > 1 ? part->facts->loader.workers : 1;
    const double cpus = run->limits.cpus > 0 ? run->limits.cpus : 1;
    const double recorder =
        dr_share(run->own_cpu_seconds, cpus * ((double)run->end_ns - (double)run->start_ns) / 1e9);
    part->facts->overhead_share =
        dr_share(spent_of(trainer) + workers / side_by_side, to - from) + recorder;
}

static int all_facts(struct dr_part *part)
{
    int rc = dr_intervals_of(&part->intervals, part->trainer, part->blocks, part->err);
    if (rc)
        return rc;
    facts_settings(part);
    dr_facts_tried(part);
    rc = dr_facts_operators(part);
    if (rc)
        return rc;
    rc = dr_facts_steps(part);
    if (!rc && !part->facts->step_count) {
        dr_facts_machine(part);
        facts_overhead(part);
        return STOKER_OK;
    }
    if (!rc)
        rc = dr_facts_batches(part);
    if (rc)
        return rc;
    dr_facts_makers(part);
    dr_facts_alike(part);
    dr_facts_machine(part);
    dr_facts_epochs(part);
    dr_facts_gpu(part);
    facts_overhead(part);
    rc = dr_facts_outliers(part);
    return rc ? rc : dr_facts_ranks(part);
}

int dr_facts_of(struct dr_facts *out, const struct dr_run *run, int rank, struct stoker_error *err)
{
    forget_all(out);
    out->run = run;
    out->limits = run->limits;
    const int trainer = pick_trainer(run, rank);
    if (trainer < 0 && rank >= 0)
        return st_fail(err, STOKER_ENOTFOUND, "%s: no training process with rank %d was seen",
                       run->directory, rank);
    if (trainer < 0)
        return st_fail(
            err, STOKER_ENOTFOUND,
            "%s: no training process was seen. The command must start a Python program that uses a "
            "DataLoader, without python -I, -S or -E",
            run->directory);
    struct dr_blocks *blocks = st_calloc(1, sizeof *blocks);
    if (!blocks)
        return st_fail(err, STOKER_ENOMEM, "%s: out of memory", run->directory);
    out->memory = blocks;
    out->trainer = &run->process[trainer];
    struct dr_part part = {.facts = out,
                           .run = run,
                           .trainer = out->trainer,
                           .trainer_index = trainer,
                           .blocks = blocks,
                           .err = err};
    const int rc = all_facts(&part);
    if (rc)
        dr_facts_free(out);
    return rc;
}

void dr_facts_free(struct dr_facts *facts)
{
    if (!facts || !facts->memory)
        return;
    dr_blocks_free(facts->memory);
    free(facts->memory);
    facts->memory = NULL;
    facts->steps = NULL;
    facts->batch_seconds = facts->batch_cpu = NULL;
    facts->ranks = NULL;
    facts->operators = NULL;
    facts->step_count = facts->batch_count = facts->rank_count = facts->operator_count = 0;
}
