/* test_facts_workers.c - workers and ranks of runs made in memory, whose facts are known beforehand
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "made_run.h"
#include "doctor/model/simulate.h"

static void make_table(struct dr_process *process, uint32_t first, uint32_t ticks)
{
    double *values = made.values[process - made.process];
    for (uint32_t k = 0; k < ticks * DR_PROCESS_COUNT; k++)
        values[k] = NAN;
    process->first_tick = first;
    process->table = (struct dr_table){ticks, DR_PROCESS_COUNT, values};
}

static void set(struct dr_process *process, uint32_t signal, double early, double late)
{
    double *values = made.values[process - made.process];
    for (uint32_t k = 0; k < process->table.ticks; k++)
        values[k * DR_PROCESS_COUNT + signal] = k < process->table.ticks / 2 ? early : late;
}

/* Two workers that make a batch in 150 ms, and the machine around them. */
static void make_workers(struct dr_process *trainer)
{
    say(trainer, "loader.0.workers", "2");
    say(trainer, "loader.0.prefetch", "2");
    say(trainer, "loader.0.batch_size", "10");
    say(trainer, "loader.0.samples", "1000");
    say(trainer, "loader.0.batch_bytes", "1000000");
    for (int worker = 0; worker < 2; worker++) {
        struct dr_process *process = new_process(DR_WORKER, -1, worker);
        say(process, "worker.loader", "0");
        for (uint32_t k = 0; k < 100; k++) {
            const uint64_t start = 1000 * MS + (k * 200 + (uint64_t)worker * 100) * MS;
            const uint32_t batch = 2 * k + (uint32_t)worker;
            event(process, DR_FETCH, start, 150 * MS, batch, 0, 10, 90000);
            event(process, DR_READ, start, 30 * MS, batch, 0, 10, 1000);
            event(process, DR_DECODE, start, 90 * MS, batch, 0, 10, 80000);
            event(process, DR_DISCARDED, start, 60 * MS, batch, 0, DR_DECODE, 0);
            event(process, DR_DISCARDED, start, 60 * MS, batch, 0, DR_KINDS, 0); /* no stage */
            event(process, DR_TRANSFORM, start, 10 * MS, batch, 0, 10, 0);
            event(process, DR_REDUCED, start, 4 * MS, batch, 0, 0, 0);
            event(process, DR_OPENED, start, 0, batch, 0, 10, 1000);
            event(process, DR_SLOWEST, start, 75 * MS, batch, 0, 3, 0);
            event(process, DR_SHARED, start, 3 * MS, batch, 0, 2, 2000);
            event(process, DR_PUT, start + 150 * MS, 2 * MS, batch, 0, 0, 1000);
            event(process, DR_FETCH, start, 900 * MS, batch, 5, 10, 90000); /* another loader's */
        }
        make_table(process, 5, TICKS - 100);
        set(process, DR_P_MAIN_ON_CPU, 0.5, 0.5);
        set(process, DR_P_MAIN_RUN_QUEUE, 0.15, 0.15);
        set(process, DR_P_READ_ASKED, 1e6, 1e6);
        set(process, DR_P_READ_STORAGE, 25e4, 25e4);
        set(process, DR_P_ON_CPU, 1.5, 1.5);
        set(process, DR_P_SYSTEM, 0.3, 0.3);
        set(process, DR_P_RSS, 1e9, 1e9);
        for (uint32_t k = 0; k < process->table.ticks; k++) /* 10 MB/s; one worker is sampled, every second */
            made.values[process - made.process][k * DR_PROCESS_COUNT + DR_P_PRIVATE] =
                k % 10 || worker ? NAN : 1e8 + 1e6 * k;
    }
}

static void test_workers(void)
{
    struct dr_process *trainer = begin();
    make_workers(trainer);
    for (uint32_t k = 0; k < 200; k++)
        step(trainer, k, 30 * MS, 70 * MS);
    end_epoch(trainer);
    for (uint32_t k = 0; k < TICKS; k++) {
        made.tick_ns[k] = 500 * MS + k * 100 * MS;
        for (uint32_t n = 0; n < DR_MACHINE_COUNT; n++)
            made.machine[k * DR_MACHINE_COUNT + n] = NAN;
        made.machine[k * DR_MACHINE_COUNT + DR_CPU_OURS] = k < 5 || k > 300 ? 100 : 3;
        made.machine[k * DR_MACHINE_COUNT + DR_CPU_BUSY] = 5;
        made.machine[k * DR_MACHINE_COUNT + DR_CPU_STOLEN] = 0.5;
        made.machine[k * DR_MACHINE_COUNT + DR_SHM_USED] = k;
    }
    made.run.tick_ns = made.tick_ns;
    made.run.machine = (struct dr_table){TICKS, DR_MACHINE_COUNT, made.machine};
    made.run.limits.cpus = 8;
    made.run.limits.cpus_affinity = made.run.limits.cpus_machine = 16;
    static const struct dr_threads threads[] = {{"python", 1, 1}, {"openblas", 15, 2}};
    made.process[2].threads = threads, made.process[2].thread_names = 2;
    trainer->watch_spent_ns = 20 * MS;
    made.process[1].watch_spent_ns = made.process[2].watch_spent_ns = 30 * MS;
    made.run.end_ns = 40000 * MS;
    made.run.own_cpu_seconds = 0.8;
    ok(!judge(-1) && facts.workers_seen == 2, "two workers");
    ok(near(facts.batch_mean, 0.15) && near(facts.batch_cpu_mean, 0.09) && facts.batch_cv < 1e-6 &&
           facts.batch_count >= 185 && facts.batch_count < 200,
       "their batches, of this loader and of the measured time (%u)", facts.batch_count);
    ok(near(facts.stage[DR_STAGE_READ], 0.03) && near(facts.stage_share[DR_STAGE_DECODE], 0.6) &&
           near(facts.stage[DR_STAGE_OTHER], 0.02) && near(facts.stage_cpu[DR_STAGE_OTHER], 0.009) &&
           near(facts.put, 0.002),
       "the stages");
    ok(near(facts.shared_cpu, 0.002) && near(facts.batch_cpu_fast, 0.09) &&
           near(facts.batch_cpu_least, 0.09) && near(facts.own_fast, 0.07) &&
           near(facts.own_least, 0.07),
       "shared memory, and the best times");
    ok(near(facts.discarded[DR_STAGE_DECODE], 0.06) && isnan(facts.discarded[DR_STAGE_TRANSFORM]),
       "what was decoded for nothing");
    ok(near(facts.reduced, 0.004), "and what made it smaller");
    ok(near(facts.opens_per_sample, 1) && near(facts.bytes_per_open, 102400) &&
           near(facts.slowest_share, 0.5) && near(facts.data_bytes, 102400000),
       "files and the slowest sample");
    ok(near(facts.worker_on_cpu, 0.5) && near(facts.worker_run_queue, 0.15) &&
           fabs(facts.worker_idle - 0.25) < 0.02 && fabs(facts.worker_blocked - 0.1) < 0.02,
       "on the CPU, in the run queue, idle, blocked (%.3f, %.3f)", facts.worker_idle,
       facts.worker_blocked);
    ok(near(facts.overhead_share, (0.02 + 0.03) / 20.001 + 0.8 / (8 * 40.0)) && near(facts.watch_step, 0.0001),
       "the cost of watching: of the training process, of a worker, of the recorder (%.5f)",
       facts.overhead_share);
    ok(near(facts.worker_private_growth, 2e7) && near(facts.worker_rss, 1e9) &&
           near(facts.worker_cpus, 1.5) && near(facts.worker_system_share, 0.2),
       "memory that grows by 10 MB/s in each (%g)", facts.worker_private_growth);
    ok(near(facts.read_asked, 2e6) && near(facts.hit_ratio, 0.75), "reads of both together");
    ok(near(facts.cpus_used, 3) && near(facts.cpus_busy_others, 2) && near(facts.cpus_stolen, 0.5) &&
           isnan(facts.psi_io),
       "CPUs in that time");
    ok(facts.shm_used_most == TICKS - 1 && near(facts.shm_needed, 6e6) && near(facts.rss_all, 2e9),
       "memory");
    ok(facts.operator_count == 0, "no functions, if no maker tells of any");
    ok(!strcmp(facts.storm_names, "openblas x 15"), "threads by name: %s", facts.storm_names);
    struct dr_trace trace;
    struct dr_plan plan;
    ok(dr_trace_of(&trace, &plan, &facts) && plan.workers == 2 && plan.prefetch == 2 && plan.cpus == 8 &&
           near(trace.queued_share, facts.worker_run_queue / (1 - facts.worker_idle)) &&
           near(trace.all_threads, 3),
       "all that the simulator needs");
    struct dr_outcome outcome;
    dr_simulate(&outcome, &trace, &plan);
    ok(outcome.step.mid > 0.0699 && outcome.step.mid < 0.075,
       "without the run queue the step is the training's own (%.4f)", outcome.step.mid);
    for (uint32_t k = 0; k < TICKS; k++)
        made.machine[k * DR_MACHINE_COUNT + DR_CPU_ALLOWED] = 3.5;
    made.run.limits.cpus = made.run.limits.cpus_affinity = 4;
    ok(!judge(-1) && near(facts.cpus_busy_others, 0.5) && near(facts.cpus_busy_elsewhere, 1.5),
       "bound to some CPUs: what others do on the rest of them is not theirs");
    ok(dr_trace_of(&trace, &plan, &facts) && near(plan.cpus, 3.5), "nor taken from them");
}

static void test_ranks(void)
{
    begin();
    made.run.processes = 0;
    for (int rank = 0; rank < 3; rank++) {
        struct dr_process *trainer = new_process(DR_TRAINER, rank, -1);
        made.now = 1000 * MS;
        for (uint32_t k = 0; k < 100; k++)
            step(trainer, k, rank == 1 ? 30 * MS : 2 * MS, rank == 1 ? 70 * MS : 98 * MS);
        end_epoch(trainer);
    }
    ok(!judge(2) && facts.rank_count == 3 && facts.trainer->rank == 2 && near(facts.wait_share, 0.02),
       "the rank that is asked for");
    ok(near(facts.ranks[1].stall_share, 0.3) && near(facts.ranks[0].stall_share, 0.02) &&
           near(facts.ranks[1].step, 0.1),
       "all ranks");
    ok(facts.ranks[1].wait_before_others == 1 && facts.ranks[0].wait_before_others == 0,
       "the one that the others wait for");
    ok(near(facts.rank_skew, 0.28), "what that costs all of them (%.3f)", facts.rank_skew);
    ok(!judge(-1) && facts.trainer->rank == 1 && isnan(facts.ranks[1].pace),
       "without a choice, the one that waits the longest");
    begin();
    made.run.processes = 0;
    for (int rank = 0; rank < 2; rank++) { /* by turns, ten steps each */
        struct dr_process *trainer = new_process(DR_TRAINER, rank, -1);
        made.now = 1000 * MS;
        for (uint32_t k = 0; k < 200; k++)
            step(trainer, k, k / 10 % 2 == (uint32_t)rank ? 30 * MS : 2 * MS,
                 k / 10 % 2 == (uint32_t)rank ? 70 * MS : 98 * MS);
        end_epoch(trainer);
        say(trainer, "loader.0.workers", "2");
    }
    for (int rank = 0; rank < 2; rank++) {
        struct dr_process *worker = new_process(DR_WORKER, -1, 0);
        worker->trainer = rank;
        event(worker, DR_FETCH, 2000 * MS, rank ? 40 * MS : 80 * MS, 0, 0, 8, 0);
        event(worker, DR_FETCH, 2100 * MS, 900 * MS, 0, 1, 8, 0); /* of another loader */
    }
    ok(!judge(-1) && near(facts.ranks[0].pace, 0.04) && near(facts.ranks[1].pace, 0.02),
       "how fast the workers of each rank make batches");
    ok(near(facts.rank_skew, 0.28) &&
           fabs(facts.ranks[0].stall_share - facts.ranks[1].stall_share) < 0.02,
       "the same when they take turns (%.3f)", facts.rank_skew);
}

/* Of two workers, one of which has said something odd. */
static void test_operators(void)
{
    struct dr_process *trainer = begin();
    make_workers(trainer);
    for (uint32_t k = 0; k < 200; k++)
        step(trainer, k, 30 * MS, 70 * MS);
    say(&made.process[1], "loader.0.operators",
        "100 400000000|4 100 100000000 Crop|3 150 60000000 load JPEG|5 7 4000000 collate");
    say(&made.process[2], "loader.0.operators",
        "60 240000000|4 60 60000000 Crop|3 2 1000 load PNG|99 1 1 what|-1 1 1 less|4 nan 1 odd|4 1 inf odd|4 1|||4 1 1 ");
    ok(!judge(-1) && facts.operator_count == 4 && near(facts.sample_seconds, 0.004), "of all workers together");
    const struct dr_operator *first = facts.operators, *second = first + 1;
    ok(!strcmp(first->name, "Crop") && first->stage == DR_STAGE_TRANSFORM && near(first->calls, 1) &&
           near(first->seconds, 0.001) && near(first->share, 0.25),
       "the costliest first, per sample");
    ok(!strcmp(second->name, "load JPEG") && near(second->calls, 150.0 / 160) &&
           near(second->share, 0.06 / 0.64),
       "formats are kept apart");
    static const char *const odd[] = {"", "1", "0 0|4 1 1 x", "1 0|4 1 1 x", "-1 5|4 1 1 x", "1e308 1e308|4 1 1e308 x|4 1 1e308 x", "a b"};
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
        made.said[1][1].value = made.said[2][1].value = odd[k];
        ok(!judge(-1) && (!facts.operator_count || isfinite(facts.sample_seconds)), "'%s'", odd[k]);
    }
    char many[4096] = "10 1000";
    for (int k = 0; k < 100; k++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "|4 1 %d op%d", k, k);
    made.said[1][1].value = many;
    made.said[2][1].value = "";
    ok(!judge(-1) && facts.operator_count == DR_OPERATORS_MOST, "not more than there is room for");
}

int main(void)
{
    test_workers();
    test_operators();
    test_ranks();
    dr_facts_free(&facts);
    return done_testing();
}
