/* How work is divided between JPEG hardware and CPUs, in simulated loaders: is the consumer's pace kept,
 * is full speed reached, and does the hardware get only what it should?
 *
 * Time passes in steps of 20 us, in which every thread that has something to do gets its part of the
 * CPUs. The hardware decodes one image after the other. A consumer takes a batch, launches the kernels
 * of its step, and asks for the next one while the GPU works, at most two steps behind it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "pipe/jpeg_steer.h"
#include "tap.h"

#include <stdlib.h>

enum { STEP = 20, THREADS = 2, WORKERS_MOST = 16, BEGUN_MOST = 16, ROWS = 256, QUEUED_STEPS = 2 };

struct plant {
    uint32_t cpus, prefetch;
    double cpu_us;      /* of a CPU for an image, on average: between a fifth of it and nine fifths */
    double submit_us;   /* of a thread's CPU for an image that the hardware decodes */
    double hardware_us; /* of the hardware */
    double step_us;     /* of the GPU for a batch; 0: the consumer does nothing but take batches */
    double launch_us;   /* of the consumer's CPU for a batch */
    uint32_t known;     /* of 64 files, which the hardware may decode */
    int fixed;          /* a share to keep to; -1: the one that is decided */
};

/* A thread that drives the hardware. */
struct driver {
    struct st_steer_thread state;
    struct st_steer_times times;
    uint32_t batch, rows;    /* the chunk; no rows: it has none */
    uint32_t given, pending; /* to the hardware; of these, not decoded yet */
    double cpu_left;         /* us of CPU time until its own part is done */
    uint64_t began;
};

struct worker {
    double cpu_left; /* 0: it has no row */
    uint32_t batch;
};

struct world {
    const struct plant *plant;
    struct st_steer steer;
    struct driver driver[THREADS];
    struct worker worker[WORKERS_MOST];
    uint32_t todo[BEGUN_MOST]; /* rows of the batches in progress that are not made */
    uint64_t now;              /* us */
    uint64_t next_ticket;
    uint32_t next_batch, next_row, delivered;
    double hardware_left; /* us until it has decoded the current image */
    double launching;     /* us of CPU time that the consumer needs before it asks for a batch */
    double gpu_work;      /* us */
    bool waits;
    uint64_t waits_since;
    /* results */
    uint64_t rows, hardware_rows;
    uint32_t late; /* batches for which the GPU waited */
};

static uint64_t dice;

static double cost_of(const struct plant *plant)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return plant->cpu_us * (0.2 + 1.6 * (double)(dice >> 11) / (double)(1ull << 53));
}

static uint32_t ready(const struct world *w)
{
    uint32_t count = 0;
    for (uint32_t b = w->delivered; b < w->next_batch; b++)
        count += !w->todo[b % BEGUN_MOST];
    return count;
}

static struct st_steer_seen look(const struct world *w, uint32_t thread)
{
    const struct plant *p = w->plant;
    return (struct st_steer_seen){.now_ns = w->now * 1000, .next_ticket = w->next_ticket, .thread = thread,
                                  .cpus = p->cpus, .open = THREADS, .workers = p->cpus, .wanted = p->cpus,
                                  .worker_rate = 1e6 / p->cpu_us, .batch_size = ROWS, .prefetch = p->prefetch,
                                  .ready = ready(w), .begun = w->next_batch - w->delivered + (double)w->next_row / ROWS,
                                  .waits = w->waits};
}

/* Rows of the current batch that nobody has; 0: as many batches are in progress as there may be. */
static uint32_t rows_left(struct world *w)
{
    if (w->next_batch - w->delivered > w->plant->prefetch)
        return 0;
    if (!w->next_row)
        w->todo[w->next_batch % BEGUN_MOST] = ROWS;
    return ROWS - w->next_row;
}

static uint32_t take_rows(struct world *w, uint32_t count)
{
    const uint32_t batch = w->next_batch;
    w->next_ticket += count;
    w->next_row += count;
    if (w->next_row == ROWS) {
        w->next_row = 0;
        w->next_batch++;
    }
    return batch;
}

static void made(struct world *w, uint32_t batch, uint32_t rows)
{
    w->todo[batch % BEGUN_MOST] -= rows;
    w->rows += rows;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void begin_chunk(struct world *w, uint32_t thread)
{
    struct driver *d = &w->driver[thread];
    const struct st_steer_seen seen = look(w, thread);
    const bool passes = st_steer_passes(&w->steer, seen.next_ticket, seen.now_ns);
    const uint32_t left = passes || st_steer_is_ahead(&seen) ? 0 : rows_left(w);
    const uint32_t next = left < ST_STEER_CHUNK_MOST ? left : ST_STEER_CHUNK_MOST;
    struct st_steer_choice choice = {0};
    if (left)
        choice = st_steer_choose(&w->steer, &d->state, &seen, left, next * w->plant->known / 64);
    if (passes || left)
        st_steer_engage(&w->steer, choice.engages, seen.now_ns);
    d->rows = choice.tickets;
    if (!d->rows)
        return;
    if (w->plant->fixed >= 0)
        d->state.share = (uint32_t)w->plant->fixed;
    double cost[ST_STEER_CHUNK_MOST];
    for (uint32_t k = 0; k < d->rows; k++)
        cost[k] = cost_of(w->plant);
    qsort(cost, d->rows, sizeof *cost, compare);
    const uint32_t allowed = d->rows * w->plant->known / 64, own = d->rows - allowed + st_steer_own(&d->state, allowed);
    d->batch = take_rows(w, d->rows);
    d->given = d->pending = d->rows - own;
    d->cpu_left = d->given * w->plant->submit_us;
    d->times = (struct st_steer_times){0};
    for (uint32_t k = 0; k < own; k++) {
        d->cpu_left += cost[k];
        d->times.here += (uint64_t)(cost[k] * 1000);
    }
    d->times.all_cpu = (uint64_t)(d->cpu_left * 1000);
    d->began = w->now;
}

static void end_chunk(struct world *w, uint32_t thread)
{
    struct driver *d = &w->driver[thread];
    d->times.all = (w->now - d->began) * 1000;
    made(w, d->batch, d->rows);
    w->hardware_rows += d->given;
    st_steer_made(&w->steer, &d->state, &d->times, d->given, w->next_ticket);
    d->rows = 0;
}

static void run_hardware(struct world *w)
{
    for (double left = STEP; left > 0;) {
        struct driver *first = NULL;
        for (uint32_t k = 0; k < THREADS; k++)
            if (w->driver[k].pending && (!first || w->driver[k].began < first->began))
                first = &w->driver[k];
        if (!first)
            return;
        if (w->hardware_left <= 0)
            w->hardware_left = w->plant->hardware_us;
        const double part = left < w->hardware_left ? left : w->hardware_left;
        left -= part;
        w->hardware_left -= part;
        first->pending -= w->hardware_left <= 0;
    }
}

static void run_cpus(struct world *w)
{
    const uint32_t active = st_steer_workers(&w->steer, w->plant->cpus, w->plant->cpus, THREADS);
    uint32_t busy = w->launching > 0;
    for (uint32_t k = 0; k < THREADS; k++)
        busy += w->driver[k].rows && w->driver[k].cpu_left > 0;
    const uint32_t urgent = busy;
    for (uint32_t k = 0; k < w->plant->cpus; k++)
        busy += w->worker[k].cpu_left > 0;
    /* Workers have a lower priority. */
    const double cpus = w->plant->cpus, first = urgent > cpus ? cpus / urgent : 1;
    const double rest = cpus - urgent * first, workers = busy - urgent;
    const double part = workers > rest ? rest / workers : 1;
    w->launching -= STEP * first;
    for (uint32_t k = 0; k < THREADS; k++)
        w->driver[k].cpu_left -= STEP * first;
    for (uint32_t k = 0; k < w->plant->cpus; k++) {
        struct worker *worker = &w->worker[k];
        if (worker->cpu_left > 0 && (worker->cpu_left -= STEP * part) <= 0)
            made(w, worker->batch, 1);
        if (worker->cpu_left <= 0 && k < active && rows_left(w)) {
            worker->batch = take_rows(w, 1);
            worker->cpu_left = cost_of(w->plant);
        }
    }
}

static void run_consumer(struct world *w)
{
    const struct plant *p = w->plant;
    w->gpu_work -= w->gpu_work > 0 ? STEP : 0;
    if (w->launching > 0 || w->gpu_work > QUEUED_STEPS * p->step_us)
        return;
    if (w->delivered == w->next_batch || w->todo[w->delivered % BEGUN_MOST]) {
        if (!w->waits)
            w->waits_since = w->now;
        w->waits = true;
        return;
    }
    const bool late = w->waits && w->gpu_work <= 0;
    w->late += late;
    if (w->waits && w->now - w->waits_since > p->step_us)
        st_steer_awaited(&w->steer, w->now * 1000);
    w->waits = false;
    w->delivered++;
    w->gpu_work += p->step_us;
    w->launching = p->launch_us;
}

static void run(struct world *w, double seconds)
{
    for (const uint64_t end = w->now + (uint64_t)(seconds * 1e6); w->now < end; w->now += STEP) {
        for (uint32_t k = 0; k < THREADS; k++) {
            struct driver *d = &w->driver[k];
            if (d->rows && d->cpu_left <= 0 && !d->pending)
                end_chunk(w, k);
            if (!d->rows)
                begin_chunk(w, k);
        }
        if (st_steer_is_idle(&w->steer, w->now * 1000))
            st_steer_engage(&w->steer, false, w->now * 1000);
        run_hardware(w);
        run_cpus(w);
        run_consumer(w);
    }
}

struct result {
    double rate, hardware; /* images per second; the part of them that the hardware decoded */
    double late;           /* part of the batches */
};

/* What is reached after `before` seconds, over `seconds` more. */
static struct result simulate(const struct plant *plant, double before, double seconds)
{
    struct world w = {.plant = plant, .now = 1000000};
    dice = 7;
    run(&w, before);
    const struct world was = w;
    run(&w, seconds);
    const double rows = (double)(w.rows - was.rows);
    return (struct result){rows / seconds, rows > 0 ? (double)(w.hardware_rows - was.hardware_rows) / rows : 0,
                           w.delivered > was.delivered ? (double)(w.late - was.late) / (w.delivered - was.delivered) : 1};
}

/* The best of fixed shares: the fastest, and of those that keep its pace, the one with the least for the
 * hardware. */
static struct result best_fixed(struct plant plant)
{
    struct result all[7], best = {0};
    for (int k = 0; k < 7; k++) {
        plant.fixed = 8 * k;
        all[k] = simulate(&plant, 1, 2);
        best.rate = all[k].rate > best.rate ? all[k].rate : best.rate;
    }
    best.hardware = 1;
    for (int k = 0; k < 7; k++)
        if (all[k].rate > 0.98 * best.rate && all[k].hardware < best.hardware)
            best.hardware = all[k].hardware;
    return best;
}

static struct plant photographs(uint32_t cpus)
{
    return (struct plant){.cpus = cpus, .prefetch = 4, .cpu_us = 450, .submit_us = 60, .hardware_us = 40,
                          .launch_us = 8000, .known = 64, .fixed = -1};
}

/* The most that the hardware should do beside a training step. With two CPUs no worker works beside it,
 * and its threads decode what they have time for. */
static double hardware_most(uint32_t cpus, struct result best)
{
    return cpus > THREADS + 1 ? best.hardware + 0.1 : 0.8;
}

static void near_the_best_share(void)
{
    static const double steps[] = {0, 20000, 54000};
    for (uint32_t cpus = 2; cpus <= WORKERS_MOST; cpus *= 2)
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
            struct plant plant = photographs(cpus);
            plant.step_us = steps[k];
            plant.launch_us = steps[k] > 0 ? plant.launch_us : 0;
            const struct result best = best_fixed(plant), got = simulate(&plant, 10, 4);
            const bool pace = got.rate > (steps[k] > 0 ? 0.98 : 0.93) * best.rate;
            ok(pace && (steps[k] == 0 || (got.late < 0.02 && got.hardware < hardware_most(cpus, best))),
               "%u CPUs, steps of %.0f ms: %.0f images/s (best fixed share %.0f), %.0f %% by hardware (%.0f %%), "
               "%.1f %% of the batches late",
               cpus, steps[k] / 1000, got.rate, best.rate, 100 * got.hardware, 100 * best.hardware, 100 * got.late);
        }
}

static void other_machines(void)
{
    struct plant plant = photographs(4);
    plant.step_us = 54000;
    plant.prefetch = 2;
    struct result got = simulate(&plant, 10, 4);
    ok(got.rate > 4600 && got.late < 0.02, "two batches prefetched: %.0f images/s, %.1f %% late", got.rate, 100 * got.late);
    plant = photographs(16);
    plant.launch_us = 0;
    plant.known = 0;
    const struct result alone = simulate(&plant, 1, 4);
    ok(alone.rate > 0.97 * 16e6 / 450 && !alone.hardware, "unknown files are the workers': %.0f images/s", alone.rate);
    plant.known = 64;
    plant.hardware_us = 20000;
    got = simulate(&plant, 10, 20);
    ok(got.rate > 0.97 * alone.rate && got.hardware < 0.01 && got.hardware > 0,
       "hardware that others keep busy is only tried: %.0f images/s, %.2f %%", got.rate, 100 * got.hardware);
}

static void follows(void)
{
    struct plant plant = photographs(4);
    struct world w = {.plant = &plant, .now = 1000000};
    plant.step_us = 54000;
    dice = 7;
    run(&w, 20);
    plant.step_us = 20000;
    run(&w, 2);
    const uint64_t rows = w.rows;
    const uint32_t late = w.late;
    run(&w, 4);
    ok((double)(w.rows - rows) / 4 > 0.98 * ROWS * 50 && w.late - late < 4,
       "a consumer that becomes faster is followed within two seconds: %.0f images/s", (double)(w.rows - rows) / 4);
    plant.hardware_us = 20000;
    run(&w, 10);
    plant.hardware_us = 40;
    run(&w, 35);
    const uint64_t before = w.rows;
    run(&w, 4);
    ok((double)(w.rows - before) / 4 > 0.98 * ROWS * 50, "and hardware that is free again is used again: %.0f images/s",
       (double)(w.rows - before) / 4);
}

int main(void)
{
    near_the_best_share();
    other_machines();
    follows();
    return done_testing();
}
