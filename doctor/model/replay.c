/* replay.c - torch's and Stoker's loader as a queueing system, event by event
 *
 * Actors are the workers, the pinning thread and the training thread. Each does one job at a time; a job
 * consists of alternating slices of waiting and of CPU time. CPU slices share the CPUs: when they need
 * more than there is, all of them slow down equally. This is modelled by one clock ("service") that runs
 * at min(1, CPUs / needed). A CPU slice ends at a fixed time on that clock, and an event costs the
 * logarithm of the number of actors.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/replay.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLICES = 4, /* per job, if CPUs may be short: real work alternates between waiting and computing */
    MOST_QUEUED = 1 << 20,
};

struct job {
    double wait, cpu, weight; /* of one slice; weight: CPUs it uses while running */
    uint8_t waits, cpus;      /* slices left */
    bool on_cpu;
};

/* A heap with the actor whose slice ends first at the root; `key` is time or service. */
struct heap {
    double *key;
    uint32_t *actor;
    uint32_t count;
};

enum trainer_state { TRAINER_STARTS, TRAINER_WAITS, TRAINER_TAKES, TRAINER_STEPS };

struct sim {
    const struct dr_replay *in;
    struct dr_plan plan;
    uint32_t workers; /* with a queue of batches each: one with shared samples */
    uint32_t depth;   /* most batches requested by the trainer */
    uint32_t room;    /* most in the queue of one worker */
    bool contended;   /* there may be too few CPUs */
    double now, service, wanted;
    struct heap waiting, on_cpu;
    struct job *job;

    uint32_t *queue, *first, *queued; /* ring buffer of batches, per worker */
    uint32_t *tasks;                  /* requested and not yet taken, per worker */
    bool *busy;
    uint32_t turn; /* the worker that gets the next batch */
    /* With in_order, batch n is at index n % depth. Otherwise the numbers may be further apart, and only
     * the worker of a batch matters: it is identified by its worker. */
    uint8_t *made;                             /* it is finished */
    uint32_t *maker;                           /* its worker */
    /* workers, in the order in which their batches were finished: */
    uint32_t *ready, ready_first, ready_count;
    uint32_t *pins, pins_first, pins_count;
    bool pinning;

    enum trainer_state state;
    uint32_t sent, taken, done, epoch_end;
    double asked_at, epoch_at;
    struct dr_replayed *out;
    void *memory;
};

static void heap_push(struct heap *heap, double key, uint32_t actor)
{
    uint32_t at = heap->count++;
    while (at && heap->key[(at - 1) / 2] > key) {
        heap->key[at] = heap->key[(at - 1) / 2];
        heap->actor[at] = heap->actor[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->key[at] = key;
    heap->actor[at] = actor;
}

static uint32_t heap_pop(struct heap *heap)
{
    const uint32_t popped = heap->actor[0];
    const double key = heap->key[--heap->count];
    const uint32_t actor = heap->actor[heap->count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        child += child + 1 < heap->count && heap->key[child + 1] < heap->key[child];
        if (heap->key[child] >= key)
            break;
        heap->key[at] = heap->key[child];
        heap->actor[at] = heap->actor[child];
        at = child;
    }
    heap->key[at] = key;
    heap->actor[at] = actor;
    return popped;
}

static uint32_t pinner(const struct sim *sim) { return sim->workers; }
static uint32_t trainer(const struct sim *sim) { return sim->workers + 1; }

static void begin_slice(struct sim *sim, uint32_t actor)
{
    struct job *job = &sim->job[actor];
    if (job->on_cpu) {
        sim->wanted += job->weight;
        heap_push(&sim->on_cpu, sim->service + job->cpu, actor);
    } else {
        heap_push(&sim->waiting, sim->now + job->wait, actor);
    }
}

/* A job of `wall` seconds with `cpu` seconds of CPU time, which may be more if several threads do it.
 * `fluid`: both overlap (many threads do it) instead of alternating. */
static void begin_job(struct sim *sim, uint32_t actor, double wall, double cpu, bool fluid)
{
    struct job *job = &sim->job[actor];
    sim->out->cpu += cpu;
    if (!sim->contended || cpu <= 0) {
        *job = (struct job){.wait = wall, .waits = 1};
    } else if (cpu >= wall || fluid) {
        const double length = wall > 0 ? wall : cpu;
        *job = (struct job){.cpu = length, .weight = cpu / length, .cpus = 1, .on_cpu = true};
    } else {
        *job = (struct job){.wait = (wall - cpu) / SLICES, .cpu = cpu / SLICES, .weight = 1};
        job->waits = job->cpus = SLICES;
        /* so that workers that start together do not need the CPU at the same time */
        job->on_cpu = actor & 1;
    }
    begin_slice(sim, actor);
}

static void begin_batch(struct sim *sim, uint32_t worker, uint32_t batch)
{
    const uint32_t at = batch % sim->in->count;
    const double wall = sim->in->wall[at], cpu = sim->in->cpu[at], put = sim->in->put;
    if (sim->plan.shared_samples) /* `workers` threads work on it at a time */
        begin_job(sim, worker, wall / sim->plan.workers, cpu, true);
    else
        begin_job(sim, worker, wall + put, cpu + put, false);
}

static void look_for_work(struct sim *sim, uint32_t worker)
{
    if (sim->busy[worker] || !sim->queued[worker])
        return;
    sim->busy[worker] = true;
    begin_batch(sim, worker, sim->queue[(size_t)worker * sim->room + sim->first[worker]]);
}

/* As torch's _try_put_index: the next worker in turn; without in_order, one that has room. */
static void ask(struct sim *sim)
{
    if (sim->sent - sim->taken >= sim->depth || sim->sent >= sim->epoch_end)
        return;
    uint32_t tries = 0;
    while (sim->tasks[sim->turn] >= sim->room && tries++ < sim->workers)
        sim->turn = (sim->turn + 1) % sim->workers;
    const uint32_t worker = sim->turn;
    sim->turn = (sim->turn + 1) % sim->workers;
    if (sim->tasks[worker] >= sim->room)
        return;
    const uint32_t place = (sim->first[worker] + sim->queued[worker]++) % sim->room;
    sim->queue[(size_t)worker * sim->room + place] = sim->sent;
    if (sim->plan.in_order)
        sim->maker[sim->sent % sim->depth] = worker;
    sim->tasks[worker]++;
    sim->sent++;
    look_for_work(sim, worker);
}

static void begin_epoch(struct sim *sim)
{
    const uint32_t length = sim->in->epoch_batches;
    sim->epoch_end = length && length < UINT32_MAX - sim->done ? sim->done + length : UINT32_MAX;
    sim->turn = 0;
    const bool starts = !sim->plan.persistent && length && sim->plan.workers;
    const double start = starts ? sim->in->start_worker * sim->plan.workers : 0;
    sim->state = TRAINER_STARTS;
    begin_job(sim, trainer(sim), start, start, false);
}

static bool is_ready(const struct sim *sim)
{
    return sim->plan.in_order ? sim->made[sim->taken % sim->depth] : sim->ready_count > 0;
}

/* next() gets its batch: unpickles it with workers, makes it without. */
static void take(struct sim *sim)
{
    const struct dr_replay *in = sim->in;
    sim->state = TRAINER_TAKES;
    if (!sim->plan.workers) {
        const uint32_t at = sim->done % in->count;
        begin_job(sim, trainer(sim), in->wall[at] + in->pin, in->cpu[at] + in->pin, false);
        return;
    }
    if (sim->plan.in_order) {
        const uint32_t place = sim->taken % sim->depth;
        sim->made[place] = 0;
        sim->tasks[sim->maker[place]]--;
    } else {
        sim->tasks[sim->ready[sim->ready_first]]--;
        sim->ready_first = (sim->ready_first + 1) % sim->depth;
        sim->ready_count--;
    }
    begin_job(sim, trainer(sim), in->hand_over, in->hand_over, false);
}

static void call_next(struct sim *sim)
{
    if (sim->done >= sim->epoch_end) {
        begin_epoch(sim);
        return;
    }
    sim->asked_at = sim->now;
    const bool ready = sim->plan.workers && is_ready(sim);
    sim->out->ready += ready;
    if (ready || !sim->plan.workers)
        take(sim);
    else
        sim->state = TRAINER_WAITS;
}

static void trainer_done(struct sim *sim)
{
    switch (sim->state) {
    case TRAINER_STARTS:
        for (uint32_t k = 0; k < sim->depth && sim->plan.workers; k++)
            ask(sim);
        call_next(sim);
        break;
    case TRAINER_TAKES:
        sim->out->wait += sim->now - sim->asked_at;
        sim->taken++;
        if (sim->plan.workers)
            ask(sim);
        sim->state = TRAINER_STEPS;
        begin_job(sim, trainer(sim), sim->in->step[sim->done % sim->in->count], sim->in->step_cpu,
                  false);
        break;
    case TRAINER_STEPS:
        sim->done++;
        if (sim->done == dr_replay_early(sim->in)) {
            sim->out->early_seconds = sim->now;
            sim->out->early_wait = sim->out->wait;
            sim->out->early_ready = sim->out->ready;
        }
        call_next(sim);
        break;
    case TRAINER_WAITS: /* it is idle */
        break;
    }
}

static void arrive(struct sim *sim, uint32_t batch)
{
    if (sim->plan.in_order)
        sim->made[batch % sim->depth] = 1;
    else
        sim->ready[(sim->ready_first + sim->ready_count++) % sim->depth] = batch;
    if (sim->state == TRAINER_WAITS && is_ready(sim))
        take(sim);
}

static void look_for_pin(struct sim *sim)
{
    if (sim->pinning || !sim->pins_count)
        return;
    sim->pinning = true;
    begin_job(sim, pinner(sim), sim->in->pin, sim->in->pin, false);
}

static void worker_done(struct sim *sim, uint32_t worker)
{
    const uint32_t number = sim->queue[(size_t)worker * sim->room + sim->first[worker]];
    const uint32_t batch = sim->plan.in_order ? number : worker;
    sim->first[worker] = (sim->first[worker] + 1) % sim->room;
    sim->queued[worker]--;
    sim->busy[worker] = false;
    look_for_work(sim, worker);
    if (sim->in->pin > 0) {
        sim->pins[(sim->pins_first + sim->pins_count++) % sim->depth] = batch;
        look_for_pin(sim);
    } else {
        arrive(sim, batch);
    }
}

static void pinner_done(struct sim *sim)
{
    const uint32_t batch = sim->pins[sim->pins_first];
    sim->pins_first = (sim->pins_first + 1) % sim->depth;
    sim->pins_count--;
    sim->pinning = false;
    look_for_pin(sim);
    arrive(sim, batch);
}

/* Advances to the next end of a slice. False: no actor has a job, which cannot happen by
 * torch's rules. */
static bool advance(struct sim *sim)
{
    if (!sim->waiting.count && !sim->on_cpu.count)
        return false;
    const double pace = sim->wanted > sim->plan.cpus ? sim->plan.cpus / sim->wanted : 1;
    const double wait = sim->waiting.count ? sim->waiting.key[0] - sim->now : INFINITY;
    const double cpu = sim->on_cpu.count ? (sim->on_cpu.key[0] - sim->service) / pace : INFINITY;
    const double ahead = fmax(fmin(wait, cpu), 0);
    sim->now += ahead;
    sim->service += ahead * pace;
    const uint32_t actor = heap_pop(wait <= cpu ? &sim->waiting : &sim->on_cpu);
    struct job *job = &sim->job[actor];
    if (job->on_cpu) {
        sim->wanted = sim->on_cpu.count ? sim->wanted - job->weight : 0;
        job->cpus--;
        job->on_cpu = !job->waits;
    } else {
        job->waits--;
        job->on_cpu = job->cpus > 0;
    }
    if (job->waits || job->cpus)
        begin_slice(sim, actor);
    else if (actor == trainer(sim))
        trainer_done(sim);
    else if (actor == pinner(sim))
        pinner_done(sim);
    else
        worker_done(sim, actor);
    return true;
}

/* Whether the actors together may need more CPUs than there are. */
static bool may_contend(const struct dr_replay *in, const struct dr_plan *plan)
{
    double batch = 0, trainer = in->hand_over > 0;
    for (uint32_t k = 0; k < in->count; k++) {
        if (in->cpu[k] > 0)
            batch = fmax(batch, in->wall[k] > 0 ? fmax(in->cpu[k] / in->wall[k], 1) : 1);
        if (in->step_cpu > 0)
            trainer = fmax(trainer, in->step[k] > 0 ? fmax(in->step_cpu / in->step[k], 1) : 1);
    }
    if (!plan->workers)
        return fmax(batch, trainer) > plan->cpus;
    if (in->put > 0)
        batch = fmax(batch, 1);
    return batch * plan->workers + trainer + (in->pin > 0) > plan->cpus;
}

static bool make_room(struct sim *sim)
{
    const uint64_t actors = (uint64_t)sim->workers + 2, depth = sim->depth;
    const uint64_t queued = (uint64_t)sim->workers * sim->room;
    const uint64_t doubles = 2 * actors;
    const uint64_t words = 2 * actors + queued + 3 * (uint64_t)sim->workers + 3 * depth;
    const uint64_t bytes = doubles * sizeof(double) + actors * sizeof(struct job) +
                           words * sizeof(uint32_t) + sim->workers * sizeof(bool) + depth;
    uint8_t *at = sim->memory = st_calloc(bytes, 1);
    if (!at)
        return false;
#define TAKE(field, number)                                                                             \
    (field) = (void *)at;                                                                               \
    at += (size_t)(number) * sizeof *(field)
    TAKE(sim->job, actors);
    TAKE(sim->waiting.key, actors);
    TAKE(sim->on_cpu.key, actors);
    TAKE(sim->waiting.actor, actors);
    TAKE(sim->on_cpu.actor, actors);
    TAKE(sim->queue, queued);
    TAKE(sim->first, sim->workers);
    TAKE(sim->queued, sim->workers);
    TAKE(sim->tasks, sim->workers);
    TAKE(sim->ready, depth);
    TAKE(sim->pins, depth);
    TAKE(sim->maker, depth);
    TAKE(sim->busy, sim->workers);
    TAKE(sim->made, depth);
#undef TAKE
    return true;
}

bool dr_replay(struct dr_replayed *out, const struct dr_replay *in, const struct dr_plan *plan)
{
    memset(out, 0, sizeof *out);
    struct sim sim = {.in = in, .plan = *plan, .out = out};
    const uint32_t prefetch = plan->prefetch ? plan->prefetch : 1;
    sim.workers = plan->workers && !plan->shared_samples ? plan->workers : 1;
    if (!in->count || sim.workers > MOST_QUEUED / prefetch)
        return false;
    sim.depth = sim.workers * prefetch;
    sim.room = prefetch;
    sim.plan.in_order |= plan->shared_samples;
    sim.contended = may_contend(in, plan);
    if (!make_room(&sim))
        return false;
    begin_epoch(&sim);
    while (sim.done < in->count && advance(&sim))
        ;
    out->seconds = sim.now;
    free(sim.memory);
    return sim.done == in->count;
}
