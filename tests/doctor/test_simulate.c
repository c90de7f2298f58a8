/* test_simulate.c - the simulator: cases that can be worked out by hand, and the effect of variance
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/clock.h"
#include "doctor/model/random.h"
#include "doctor/model/simulate.h"
#include "tap.h"

#include <math.h>
#include <string.h>

enum { MOST = 2000 };
static double wall[MOST], cpu[MOST], step[MOST];

static const struct dr_plan plain = {.workers = 4,
                                     .prefetch = 2,
                                     .in_order = true,
                                     .persistent = true,
                                     .cpus = 64,
                                     .wall_scale = 1,
                                     .cpu_scale = 1,
                                     .step_scale = 1};

static struct dr_trace constant(double batch, double on_cpu, double between)
{
    for (int k = 0; k < MOST; k++)
        wall[k] = batch, cpu[k] = on_cpu, step[k] = between;
    return (struct dr_trace){.wall = wall, .cpu = cpu, .batches = MOST, .step = step, .steps = MOST};
}

static double uniform(struct dr_random *random)
{
    return (double)(dr_random_next(random) >> 11) * 0x1p-53;
}

/* Lognormal with this mean and coefficient of variation. */
static struct dr_trace varied(double mean, double cv, double between)
{
    struct dr_random random = {.state = 7};
    const double sigma = sqrt(log(1 + cv * cv)), mu = log(mean) - sigma * sigma / 2;
    for (int k = 0; k < MOST; k++) {
        const double r = sqrt(-2 * log(1 - uniform(&random))), angle = 2 * M_PI * uniform(&random);
        wall[k] = exp(mu + sigma * r * cos(angle));
        cpu[k] = 0;
        step[k] = between;
    }
    return (struct dr_trace){.wall = wall, .cpu = cpu, .batches = MOST, .step = step, .steps = MOST};
}

static double seconds(const struct dr_trace *trace, struct dr_plan plan)
{
    struct dr_outcome outcome;
    dr_simulate(&outcome, trace, &plan);
    return outcome.step.mid;
}

static bool near(double value, double expected, double tolerance)
{
    const bool holds = fabs(value - expected) <= tolerance * expected;
    if (!holds)
        note("%g where %g was expected", value, expected);
    return holds;
}

static void test_constant_times(void)
{
    struct dr_trace trace = constant(0.080, 0, 0.010);
    for (uint32_t workers = 1; workers <= 16; workers *= 2) {
        struct dr_plan plan = plain;
        plan.workers = workers;
        ok(near(seconds(&trace, plan), fmax(0.080 / workers, 0.010), 0.003),
           "constant times, %u workers: max(batch / workers, step)", workers);
    }
    struct dr_plan plan = plain;
    plan.workers = 0;
    ok(near(seconds(&trace, plan), 0.090, 1e-9), "without workers a step is batch + step");
    struct dr_outcome outcome;
    dr_simulate(&outcome, &trace, &plan);
    ok(near(outcome.wait_share, 8.0 / 9, 1e-9) && outcome.readiness == 0, "... of which 8/9 is waiting");
    trace.pin = 0.003;
    ok(near(seconds(&trace, plan), 0.093, 1e-9), "... and pinning comes on top");
    plan = plain;
    plan.workers = 16;
    trace.pin = 0.014;
    ok(near(seconds(&trace, plan), 0.014, 0.003), "a slow pinning thread is the limit");
    trace.pin = 0.001;
    trace.hand_over = 0.005;
    ok(near(seconds(&trace, plan), 0.015, 0.003), "the hand-over adds to each step");
    dr_simulate(&outcome, &trace, &plan);
    ok(near(outcome.wait_share, 1.0 / 3, 0.01) && outcome.readiness > 0.98,
       "... though batches are ready");
    ok(outcome.step.low <= outcome.step.mid && outcome.step.mid <= outcome.step.high &&
           outcome.step.high - outcome.step.low < 1e-3 * outcome.step.mid,
       "constant times have a narrow interval");
}

static void test_scales(void)
{
    struct dr_trace trace = constant(0.080, 0.060, 0.010);
    struct dr_plan plan = plain;
    plan.workers = 2;
    plan.wall_scale = 0;
    ok(near(seconds(&trace, plan), 0.030, 0.003), "without the waiting part the CPU part is left");
    plan.wall_scale = 1, plan.cpu_scale = 0.5;
    ok(near(seconds(&trace, plan), 0.025, 0.003), "half the CPU part");
    plan.cpu_scale = 0, plan.wall_scale = 0, plan.step_scale = 0.5;
    ok(near(seconds(&trace, plan), 0.005, 0.003), "a faster GPU halves the step");
    trace.queued_share = 0.125;
    plan = plain;
    plan.workers = 2;
    ok(near(seconds(&trace, plan), 0.035, 0.003), "time in the run queue is taken out");
}

static void test_cpus(void)
{
    struct dr_trace trace = constant(0.080, 0.080, 0.001);
    struct dr_plan plan = plain;
    plan.workers = 8;
    plan.cpus = 4;
    ok(near(seconds(&trace, plan), 0.020, 0.01), "8 workers on 4 CPUs are worth 4");
    struct dr_outcome outcome;
    dr_simulate(&outcome, &trace, &plan);
    ok(near(outcome.cpus, 4, 0.03), "... and use 4 CPUs (%.2f)", outcome.cpus);
    plan.cpus = 2.5;
    ok(near(seconds(&trace, plan), 0.032, 0.01), "a quota of 2.5 CPUs");
    trace = constant(0.080, 0.020, 0.001);
    plan.workers = 8;
    plan.cpus = 4;
    ok(near(seconds(&trace, plan), 0.010, 0.05), "workers that mostly wait do not compete");
    trace = constant(0.080, 0.320, 0.001);
    plan.workers = 4;
    plan.cpus = 8;
    ok(near(seconds(&trace, plan), 0.040, 0.01), "a worker of 4 threads uses 4 CPUs");
    trace = constant(0.080, 0.080, 0.001);
    trace.all_threads = 4;
    ok(near(seconds(&trace, plan), 0.040, 0.01), "... also where only one of them is timed");
    trace = constant(0.010, 0.010, 0.040);
    trace.step_cpu = 0.160;
    plan.workers = 1;
    plan.cpus = 4;
    ok(near(seconds(&trace, plan), 0.0425, 0.02), "training on all CPUs is slowed down by its worker");
    trace = constant(0.010, 0.010, 0.040);
    trace.step_watch = 0.010;
    ok(near(seconds(&trace, plan), 0.030, 0.02), "the cost of watching is not part of a step");
    trace.step_watch = 1;
    ok(near(seconds(&trace, plan), 0.010, 0.02), "... and never more than the step");
}

static void test_epochs(void)
{
    struct dr_trace trace = constant(0.010, 0, 0.010);
    trace.epoch_batches = 50;
    trace.start_worker = 0.100;
    struct dr_plan plan = plain;
    plan.persistent = false;
    ok(near(seconds(&trace, plan), 0.010 + (0.400 + 0.010) / 50, 1e-3),
       "workers that start every epoch");
    plan.persistent = true;
    ok(near(seconds(&trace, plan), 0.010 + 0.010 / 50, 1e-3),
       "workers that stay: the first batch alone");
    trace.epoch_batches = 100000;
    plan.persistent = false;
    ok(near(seconds(&trace, plan), 0.010 + 0.410 / 100000, 1e-5), "an epoch longer than the trace");
    struct dr_plan stay = plan;
    stay.persistent = true;
    trace.epoch_batches = 50;
    const struct dr_range gain = dr_gain(&trace, &plan, &stay, NAN);
    ok(near(gain.mid, 0.0182 / 0.0102, 0.01) && gain.low <= gain.mid && gain.mid <= gain.high,
       "the gain of persistent workers (%.3f)", gain.mid);
}

/* How much slower than max(batch / workers, step), in percent; what another simulation of the same rules
 * gave. */
static void test_variance(void)
{
    static const struct {
        uint32_t prefetch;
        double load, cv, slower, tolerance;
        bool in_order;
    } cases[] = {
        {2, 0.80, 0.1, 0, 2, true},   {2, 0.80, 0.5, 8, 5, true},   {2, 0.80, 1.0, 45, 12, true},
        {2, 0.80, 1.0, 0, 4, false},  {2, 0.95, 0.1, 0, 2, true},   {2, 0.95, 0.5, 22, 6, true},
        {2, 0.95, 1.0, 67, 13, true}, {2, 0.95, 1.0, 2, 8, false},  {2, 1.50, 0.1, 1, 2, true},
        {2, 1.50, 0.5, 25, 6, true},  {2, 1.50, 1.0, 70, 13, true}, {2, 1.50, 1.0, 0, 8, false},
        {8, 0.95, 0.1, 0, 2, true},   {8, 0.95, 0.5, 1, 3, true},   {8, 0.95, 1.0, 12, 6, true},
        {8, 0.95, 1.0, 0, 4, false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct dr_trace trace = varied(8 * cases[k].load, cases[k].cv, 1);
        double mean = 0;
        for (int n = 0; n < MOST; n++)
            mean += wall[n] / MOST;
        struct dr_plan plan = plain;
        plan.workers = 8;
        plan.prefetch = cases[k].prefetch;
        plan.in_order = cases[k].in_order;
        const double slower = (seconds(&trace, plan) / fmax(mean / 8, 1) - 1) * 100;
        ok(fabs(slower - cases[k].slower) <= cases[k].tolerance,
           "prefetch %u, load %.2f, CV %.1f%s: %.1f %% slower than the mean says (%.0f %%)",
           cases[k].prefetch, cases[k].load, cases[k].cv, cases[k].in_order ? "" : ", as they come",
           slower, cases[k].slower);
    }
}

static void test_shared(void)
{
    struct dr_trace trace = varied(8 * 0.80, 1, 1);
    struct dr_plan plan = plain;
    plan.workers = 8;
    plan.shared_samples = true;
    const struct dr_plan torch = {.workers = 8,
                                  .prefetch = 2,
                                  .in_order = true,
                                  .persistent = true,
                                  .cpus = 64,
                                  .wall_scale = 1,
                                  .cpu_scale = 1,
                                  .step_scale = 1};
    const struct dr_range gain = dr_gain(&trace, &torch, &plan, NAN);
    ok(gain.low > 1.1 && gain.high < 1.6, "shared samples do not block behind a slow batch (%.2f)",
       gain.mid);
    const struct dr_range bounded = dr_gain(&trace, &torch, &plan, 1.05);
    ok(bounded.mid == 1.05 && bounded.high == 1.05 && bounded.low <= 1.05, "no gain beyond the ceiling");
    const struct dr_range same = dr_gain(&trace, &torch, &torch, NAN);
    ok(same.low == 1 && same.mid == 1 && same.high == 1, "the same settings gain nothing, exactly");
    trace = constant(0.080, 0.080, 0.001);
    plan.cpus = 4;
    ok(near(seconds(&trace, plan), 0.020, 0.01), "8 shared workers on 4 CPUs");
    trace = constant(0.080, 0.040, 0.001);
    ok(near(seconds(&trace, plan), 0.010, 0.05), "... that wait half of the time");
}

static void test_best_plan(void)
{
    struct dr_trace trace = constant(0.080, 0.080, 0.010);
    struct dr_plan now = plain;
    now.workers = 2;
    struct dr_plan best = dr_best_plan(&trace, &now, 32, 1000);
    ok(best.workers == 8 && best.prefetch == 2, "8 workers are enough for 80 ms in steps of 10 ms");
    best = dr_best_plan(&trace, &now, 4, 1000);
    ok(best.workers == 4, "no more workers than are allowed");
    best = dr_best_plan(&trace, &now, 32, 12);
    ok(best.workers * (best.prefetch + 1) <= 12 && best.workers >= 5,
       "no more batches than are allowed");
    now.cpus = 4;
    best = dr_best_plan(&trace, &now, 32, 1000);
    ok(best.workers >= 4 && best.workers <= 5, "as many workers as there are CPUs (%u)", best.workers);
    trace = constant(0.0001, 0.0001, 0.100);
    best = dr_best_plan(&trace, &now, 32, 1000);
    ok(best.workers == 0, "no workers for batches that take nothing");
    trace = varied(8 * 0.80, 1, 1);
    now.cpus = 64, now.workers = 8;
    best = dr_best_plan(&trace, &now, 8, 1000);
    ok(best.workers <= 8 && best.prefetch >= 8, "variance is met by prefetching (%u)", best.prefetch);
}

static void test_odd_input(void)
{
    struct dr_outcome outcome;
    struct dr_trace trace = {0};
    dr_simulate(&outcome, &trace, &plain);
    ok(isnan(outcome.step.mid) && isnan(outcome.wait_share), "an empty trace gives nothing");
    ok(isnan(dr_gain(&trace, &plain, &plain, NAN).mid), "... and no gain");
    ok(dr_best_plan(&trace, &plain, 8, 100).workers == plain.workers, "... and no better settings");
    trace = constant(NAN, -1, INFINITY);
    dr_simulate(&outcome, &trace, &plain);
    ok(isfinite(outcome.step.mid), "times that are none");
    trace = constant(0, 0, 0);
    dr_simulate(&outcome, &trace, &plain);
    ok(outcome.step.mid == 0, "times of 0");
    ok(isnan(dr_gain(&trace, &plain, &plain, NAN).mid), "... have no ratio");
    trace = constant(0.010, 0.010, 0.010);
    struct dr_plan plan = plain;
    plan.workers = UINT32_MAX, plan.prefetch = UINT32_MAX;
    dr_simulate(&outcome, &trace, &plan);
    ok(isnan(outcome.step.mid), "settings that need too much memory");
    plan = plain, plan.prefetch = 0, plan.cpus = NAN;
    ok(near(seconds(&trace, plan), 0.010, 0.01), "prefetch 0 counts as 1, unknown CPUs as enough");
    trace.batches = 1, trace.steps = 1;
    ok(near(seconds(&trace, plain), 0.010, 0.01), "a single batch");
}

static void test_speed(void)
{
    struct dr_trace trace = varied(0.080, 0.5, 0.010);
    for (int k = 0; k < MOST; k++)
        cpu[k] = wall[k] / 2;
    struct dr_plan plan = plain;
    plan.workers = 16;
    plan.cpus = 8;
    const uint64_t start = st_now_ns();
    struct dr_outcome first, again;
    dr_simulate(&first, &trace, &plan);
    note("2,000 batches and 20 replays of 400: %.1f ms", (double)(st_now_ns() - start) / 1e6);
    dr_simulate(&again, &trace, &plan);
    ok(!memcmp(&first, &again, sizeof first), "the same trace gives the same numbers");
}

int main(void)
{
    test_constant_times();
    test_scales();
    test_cpus();
    test_epochs();
    test_variance();
    test_shared();
    test_best_plan();
    test_odd_input();
    test_speed();
    return done_testing();
}
