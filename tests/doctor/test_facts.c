/* test_facts.c - steps, waits and epochs of runs made in memory, whose facts are known beforehand
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "made_run.h"
#include "doctor/model/simulate.h"

static void test_plain(void)
{
    struct dr_process *trainer = begin();
    say(trainer, "loader.0.workers", "2");
    say(trainer, "loader.0.prefetch", "2");
    say(trainer, "loader.0.batch_size", "32");
    say(trainer, "loader.0.batches", "200");
    for (uint32_t k = 0; k < 200; k++)
        step(trainer, k, k < 10 ? 90 * MS : 30 * MS, 70 * MS);
    end_epoch(trainer);
    ok(!judge(-1), "200 steps");
    ok(facts.step_count == 190 && facts.warm_up_steps == 10,
       "5 %% of them, and the first, are warm-up (%u, %u)", facts.step_count, facts.warm_up_steps);
    ok(near(facts.step, 0.1) && near(facts.step_p50, 0.1) && near(facts.step_p99, 0.1), "the step");
    ok(near(facts.wait_share, 0.3) && near(facts.stall_share, 0.3) && !facts.has_gpu,
       "the wait is the stall");
    ok(near(facts.stall_share_low, 0.3) && near(facts.stall_share_high, 0.3), "its interval");
    ok(near(facts.compute, 0.07) && near(facts.optimizer, 0.0175), "the floor, the optimizer");
    ok(near(facts.samples_per_second, 320) && near(facts.accumulation, 1), "samples a second");
    ok(facts.warm_up_stall_share > 0.5, "the warm-up waits more (%.2f)", facts.warm_up_stall_share);
    ok(facts.readiness == 0 && facts.behind_share == 0 && facts.ready_mean == 0, "no batch was ready");
    ok(near(facts.main_cpu_in_next, 500e-6), "CPU time of next()");
    ok(facts.epochs == 1 && isnan(facts.epoch_start) && isnan(facts.later_epochs_stall_share),
       "one epoch");
    ok(facts.outlier_share == 0 && isnan(facts.outlier_period) && isnan(facts.wait_period),
       "nothing odd");
    ok(isnan(facts.batch_mean) && isnan(facts.gpu_busy) && isnan(facts.cpus_used) &&
           isnan(facts.hit_ratio) && isnan(facts.worker_on_cpu) && isnan(facts.overhead_share) &&
           isnan(facts.shm_needed),
       "what was not seen is unknown");
    ok(facts.loader.workers == 2 && facts.loader.batches == 200 && facts.loader.in_order,
       "the settings");
    struct dr_trace trace;
    struct dr_plan plan;
    ok(!dr_trace_of(&trace, &plan, &facts), "without batches nothing can be simulated");
}

/* 3 ms of each step to receive a batch that is ready, and `late` waits of 400 ms. */
static void receive_batches(uint32_t late)
{
    struct dr_process *trainer = begin();
    for (uint32_t k = 0; k < 200; k++)
        step(trainer, k, late && k >= 20 && k % (160 / late) == 0 ? 400 * MS : 3 * MS, 47 * MS);
    end_epoch(trainer);
}

static void test_late(void)
{
    receive_batches(0);
    ok(!judge(-1) && near(facts.stall_share, 0.06) && facts.late_share == 0 && facts.late_share_low == 0,
       "the transfer of ready batches is a stall, but not a late batch");
    receive_batches(1);
    ok(!judge(-1) && facts.late_share > 0.03 && facts.late_share < facts.stall_share &&
           facts.late_share_low == 0 && facts.stall_share_low > 0.05,
       "a single late batch may be none in another run (%.3f, at least %.3f)", facts.late_share,
       facts.late_share_low);
    receive_batches(16);
    ok(!judge(-1) && facts.late_share > 0.4 && facts.late_share_low > 0.3,
       "many are no accident (%.3f, at least %.3f)", facts.late_share, facts.late_share_low);
}

static void test_evaluation(void)
{
    struct dr_process *trainer = begin();
    for (uint32_t k = 0; k < 400; k++) {
        step(trainer, k, 10 * MS, 90 * MS);
        if (k % 50 == 49) { /* another loader, without gradients */
            event(trainer, DR_ITER, made.now, 10 * MS, 0, 7, 2, 0);
            made.now += 10 * MS;
            for (uint32_t n = 0; n < 20; n++) {
                call(trainer, 7, n, 100 * MS, n ? 0 : DR_NEXT_FIRST);
                made.now += 50 * MS;
            }
        }
    }
    end_epoch(trainer);
    ok(!judge(-1) && near(facts.step, 0.1) && near(facts.wait_share, 0.1),
       "evaluation is not of the steps");
    ok(facts.outlier_eval > 0.9 && near(facts.outlier_period, 50),
       "but an outlier every 50 (%.2f, %.1f)", facts.outlier_eval, facts.outlier_period);
    ok(facts.outlier_share > 0.3 && facts.outlier_share < 0.5, "of 3 s in 8 (%.2f)",
       facts.outlier_share);
}

/* The same loader serves for both: only calls with gradients are of training. */
static void test_evaluation_by_the_same_loader(void)
{
    struct dr_process *trainer = begin();
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        for (uint32_t k = 0; k < 60; k++)
            step(trainer, k, 10 * MS, 90 * MS);
        end_epoch(trainer);
        for (uint32_t k = 0; k < 60; k++) {
            call(trainer, 0, k, 200 * MS, k ? 0 : DR_NEXT_FIRST);
            made.now += MS;
        }
        end_epoch(trainer);
    }
    ok(!judge(-1) && near(facts.step, 0.1) && near(facts.wait_share, 0.1),
       "evaluation by the same loader");
}

static void test_two_loaders(void)
{
    struct dr_process *trainer = begin();
    for (uint32_t k = 0; k < 100; k++) { /* the other one is called more often, but not trained from */
        call(trainer, 3, k, 500 * MS, 0);
        call(trainer, 3, k + 1000, 500 * MS, 0);
    }
    for (uint32_t k = 0; k < 100; k++)
        step(trainer, k, 20 * MS, 80 * MS);
    end_epoch(trainer);
    ok(!judge(-1) && near(facts.wait_share, 0.2),
       "the loader is the one that the optimizer steps after");
    trainer = begin();
    for (uint32_t k = 0; k < 100; k++) { /* both feed each step */
        call(trainer, 1, k, 5 * MS, DR_NEXT_TRAINING | (k ? 0 : DR_NEXT_FIRST));
        step(trainer, k, 20 * MS, 75 * MS);
    }
    end_epoch(trainer);
    ok(!judge(-1) && facts.step_count > 80 && near(facts.step_p50, 0.1),
       "two loaders that feed one step");
}

static void test_accumulation(void)
{
    struct dr_process *trainer = begin();
    for (uint32_t k = 0; k < 400; k++) {
        call(trainer, 0, k, 10 * MS, DR_NEXT_TRAINING | (k ? 0 : DR_NEXT_FIRST));
        made.now += 30 * MS;
        if (k % 4 == 3) {
            event(trainer, DR_STEP, made.now, 10 * MS, 0, 0, 0, 0);
            made.now += 10 * MS;
        }
    }
    end_epoch(trainer);
    ok(!judge(-1) && fabs(facts.step - 0.0425) < 1e-4 && fabs(facts.accumulation - 4) < 0.1,
       "gradients of 4 batches (%.4f s, %.2f)", facts.step, facts.accumulation);
    ok(facts.outlier_share == 0, "the optimizer's step is no outlier");
}

static void test_without_optimizer(void)
{
    struct dr_process *trainer = begin();
    for (uint32_t k = 0; k < 50; k++) {
        call(trainer, 2, k, 60 * MS, k ? 0 : DR_NEXT_FIRST);
        made.now += 40 * MS;
    }
    ok(!judge(-1) && near(facts.step, 0.1) && near(facts.stall_share, 0.6) && isnan(facts.accumulation),
       "without an optimizer a step is from next() to next()");
}

/* Two threads call next() at the same time: the second call begins before the first has returned. */
static void test_overlapping_calls(void)
{
    struct dr_process *trainer = begin();
    for (uint32_t k = 0; k < 100; k++) {
        event(trainer, DR_NEXT, made.now, 150 * MS, k, 0, 0, DR_NEXT_TRAINING | (k ? 0 : DR_NEXT_FIRST));
        made.now += 100 * MS;
    }
    ok(!judge(-1) && near(facts.step, 0.1) && near(facts.stall_share, 1),
       "no step waits longer than it lasts");
}

static void test_few(void)
{
    struct dr_process *trainer = begin();
    ok(!judge(-1) && facts.confidence_steps == 0 && isnan(facts.stall_share), "no events at all");
    step(trainer, 0, MS, MS);
    step(trainer, 1, MS, MS);
    ok(!judge(-1) && !facts.step_count && isnan(facts.step) && isnan(facts.stall_share), "two steps");
    for (uint32_t k = 2; k < 8; k++)
        step(trainer, k, MS, MS);
    ok(!judge(-1) && facts.confidence_steps >= 3 && facts.confidence_steps < 8,
       "few steps say that they are few");
    ok(isnan(facts.stall_share_low), "and have no interval");
    ok(judge(5) == STOKER_ENOTFOUND && strstr(err.message, "rank 5"), "a rank that is not there");
    trainer->role = DR_OTHER;
    ok(judge(-1) == STOKER_ENOTFOUND && strstr(err.message, "DataLoader"), "no training process");
}

static void test_lost_events(void)
{
    struct dr_process *trainer = begin();
    trainer->events_lost = 100000;
    for (uint32_t k = 500; k < 600; k++)
        step(trainer, k, 25 * MS, 75 * MS);
    ok(!judge(-1) && facts.step_count == 99 && facts.warm_up_steps == 0,
       "an overwritten beginning is warm-up enough");
    ok(near(facts.stall_share, 0.25) && isnan(facts.warm_up_stall_share) &&
           isnan(facts.first_epoch_stall_share) && near(facts.later_epochs_stall_share, 0.25),
       "and what it was is unknown");
}

static void test_epochs(void)
{
    struct dr_process *trainer = begin();
    for (uint32_t epoch = 0; epoch < 4; epoch++) {
        event(trainer, DR_ITER, made.now, 400 * MS, 0, 0, 4, 0);
        made.now += 400 * MS;
        step(trainer, 0, 600 * MS, 90 * MS);
        for (uint32_t k = 1; k < 40; k++)
            step(trainer, k, epoch ? 10 * MS : 60 * MS, 90 * MS);
        end_epoch(trainer);
        event(trainer, DR_SAVE, made.now, 2000 * MS, 0, 0, 0, 0);
        made.now += 2000 * MS;
    }
    ok(!judge(-1) && facts.epochs == 4 && near(facts.epoch_start, 1) && near(facts.respawn, 0.4),
       "the start of an epoch (%.2f s, of which %.2f s are of workers)", facts.epoch_start,
       facts.respawn);
    ok(near(facts.epoch_seconds, 4.99), "which is a part of the epochs after the first (%.2f s)",
       facts.epoch_seconds);
    ok(near(facts.first_epoch_stall_share, 0.4) && near(facts.later_epochs_stall_share, 0.1),
       "a cold first one");
    ok(facts.step < 0.13 && facts.step_p99 < 0.151, "neither starts nor ends are of the steps");
    ok(facts.outlier_save > 0.99 && near(facts.outlier_period, 40), "saving after each (%.2f, %.1f)",
       facts.outlier_save, facts.outlier_period);
    trainer = begin();
    for (uint32_t epoch = 0; epoch < 4; epoch++) {
        event(trainer, DR_ITER, made.now, 400 * MS, 0, 0, 4, 0);
        made.now += 400 * MS;
        step(trainer, 0, 600 * MS, 90 * MS);
        for (uint32_t k = 1; k < 40; k++)
            step(trainer, k, 10 * MS, 90 * MS);
    }
    ok(!judge(-1) && facts.epochs == 0 && near(facts.epoch_seconds, 4.99) && near(facts.respawn, 0.4),
       "epochs whose loop is left at their last batch (%.2f s)", facts.epoch_seconds);
}

static void test_outliers(void)
{
    struct dr_process *trainer = begin();
    for (uint32_t k = 0; k < 300; k++) {
        step(trainer, k, 10 * MS, 90 * MS);
        if (k % 25 == 24) {
            event(trainer, DR_SAVE, made.now, 800 * MS, 0, 0, 0, 0);
            made.now += 800 * MS;
        }
    }
    end_epoch(trainer);
    ok(!judge(-1) && near(facts.outlier_period, 25) && facts.outlier_save > 0.99 &&
           facts.outlier_eval == 0,
       "checkpoints every 25 steps");
    ok(fabs(facts.outlier_share - 0.8 / 3.3) < 0.02, "their share (%.3f)", facts.outlier_share);
    trainer = begin();
    for (uint32_t k = 0; k < 300; k++) { /* the host runs ahead, and waits for the GPU every 10 steps */
        step(trainer, k, MS, 5 * MS);
        if (k % 10 == 9) {
            event(trainer, DR_SYNC, made.now, 500 * MS, 0, 0, 3, 0);
            made.now += 500 * MS;
        }
    }
    end_epoch(trainer);
    say(trainer, "sync.3.where", "train.py:12 item()");
    ok(!judge(-1) && facts.outlier_share == 0, "waiting for the GPU is no outlier");
    ok(!strcmp(facts.sync_where, "train.py:12 item()") && facts.sync_where_share > 0.8,
       "but a place that costs");
    trainer = begin();
    for (uint32_t k = 0; k < 300; k++)
        step(trainer, k, k % 8 ? MS : 80 * MS, 20 * MS);
    ok(!judge(-1) && facts.wait_period == 8 && facts.outlier_share == 0,
       "waits that come every 8 steps");
    ok(fabs(facts.readiness - 0.875) < 0.01, "readiness (%.3f)", facts.readiness);
}

/* Costs of every step, and a sampler in next(). */
static void test_costs(void)
{
    struct dr_process *trainer = begin();
    for (uint32_t k = 0; k < 200; k++) {
        event(trainer, DR_SAMPLE, made.now + MS, 8 * MS, DR_UNKNOWN, 0, 0, 0);
        event(trainer, DR_GC, made.now + 2 * MS, 2 * MS, DR_UNKNOWN, 0, 2, 0); /* in next() */
        step(trainer, k, 10 * MS, 90 * MS);
        event(trainer, DR_GC, made.now - 80 * MS, 20 * MS, DR_UNKNOWN, 0, 2, 0);
        if (k % 2)
            event(trainer, DR_SAVE, made.now - 60 * MS, 30 * MS, DR_UNKNOWN, 0, 0, 0);
        if (k % 20 == 0)
            event(trainer, DR_LOG, made.now - 30 * MS, 10 * MS, DR_UNKNOWN, 0, 0, 0);
    }
    end_epoch(trainer);
    ok(!judge(-1) && near(facts.gc, 0.02) && near(facts.gc_steps, 1), "a collection in each step");
    ok(fabs(facts.save - 0.015) < 2e-4 && fabs(facts.save_steps - 0.5) < 0.01, "a save in every other one");
    ok(facts.logging_steps < 0.06 && facts.logging > 0 && facts.logging < 0.001, "a log in one of 20");
    ok(near(facts.sampler, 0.008) && facts.eval == 0 && facts.eval_steps == 0, "the sampler in next()");
    trainer = begin();
    for (uint32_t k = 0; k < 100; k++) {
        step(trainer, k, 10 * MS, 40 * MS);
        event(trainer, DR_ITER, made.now, MS, 0, 3, 0, 0);
        for (uint32_t n = 0; n < 5; n++) {
            call(trainer, 3, n, 6 * MS, n ? 0 : DR_NEXT_FIRST);
            made.now += 4 * MS;
        }
    }
    end_epoch(trainer);
    ok(!judge(-1) && fabs(facts.eval - 0.046) < 1e-6 && facts.eval_steps == 1 && near(facts.step, 0.1),
       "a validation in each step (%.4f s)", facts.eval);
    trainer = begin();
    for (uint32_t k = 0; k < 100; k++) {
        step(trainer, k, 10 * MS, 40 * MS);
        event(trainer, DR_ITER, made.now, MS, 0, 3, 0, 0);
        call(trainer, 3, 0, 6 * MS, DR_NEXT_FIRST);
        made.now += 43 * MS;
        event(trainer, DR_EPOCH, made.now, MS, 1, 3, 0, 0);
        made.now += MS;
    }
    end_epoch(trainer);
    ok(!judge(-1) && fabs(facts.eval - 0.05) < 1e-6, "with what it does to its last batch (%.4f s)", facts.eval);
}

/* Watching ended after 60 of 100 steps; a worker went on. */
static void test_lost_steps(void)
{
    struct dr_process *trainer = begin(), *worker = new_process(DR_WORKER, -1, 0);
    say(trainer, "loader.0.workers", "1");
    say(trainer, "loader.0.prefetch", "2");
    for (uint32_t k = 0; k < 60; k++)
        step(trainer, k, 10 * MS, 40 * MS);
    for (uint32_t k = 0; k < 100; k++)
        event(worker, DR_FETCH, 1000 * MS + k * 50 * MS, 10 * MS, k, 0, 4, 5000);
    ok(!judge(-1) && facts.steps_seen == 60 && facts.steps_lost == 0, "60 steps and some batches more");
    say(trainer, "watch.error", "Oops");
    ok(!judge(-1) && facts.steps_lost == 40 && !strcmp(facts.watch_error, "Oops"), "40 were not recorded");
}

/* Of two workers one has made its last batch after a quarter of the epoch. */
static void test_uneven(void)
{
    struct dr_process *trainer = begin(), *one = new_process(DR_WORKER, -1, 0),
                      *other = new_process(DR_WORKER, -1, 1);
    say(trainer, "loader.0.workers", "2");
    say(trainer, "loader.0.iterable", "1");
    for (uint32_t k = 0; k < 100; k++) {
        event(k % 2 && k < 25 ? one : other, DR_FETCH, made.now, 40 * MS, k, 0, 4, 5000);
        step(trainer, k, 10 * MS, 40 * MS);
    }
    end_epoch(trainer);
    ok(!judge(-1) && facts.workers_at_work > 0.55 && facts.workers_at_work < 0.65,
       "half of the workers for most of the time (%.2f)", facts.workers_at_work);
    step(trainer, 0, 10 * MS, 40 * MS);
    ok(!judge(-1) && isnan(facts.workers_at_work), "of several epochs it is not known");
}

static void test_stalls(void)
{
    struct dr_process *trainer = begin();
    say(trainer, "cuda.memory_peak", "30");
    say(trainer, "cuda.memory_total", "100");
    for (uint32_t k = 0; k < 100; k++) { /* the GPU has work queued: half of the wait is not its own */
        const uint64_t start = made.now;
        step(trainer, k, 40 * MS, 60 * MS);
        event(trainer, DR_COPY, made.now - 50 * MS, MS, 0, 0, 1024, k % 4 ? DR_COPY_PINNED : 0);
        if (k >= 3) /* it is known three steps later */
            event(trainer, DR_STALL, start - 300 * MS, 20 * MS, k - 3, 0, 0, 0);
    }
    end_epoch(trainer);
    ok(!judge(-1) && facts.has_gpu && near(facts.stall_share, 0.2) && near(facts.wait_share, 0.4) &&
           near(facts.compute, 0.08),
       "the GPU's own idle time, and for steps without it the usual part");
    ok(near(facts.copy_bytes, 1024 * 1024) && fabs(facts.copies_pageable_share - 0.25) < 0.02 &&
           facts.copies_blocking_share == 1,
       "copies");
    ok(near(facts.gpu_memory_peak_share, 0.3), "GPU memory");
    trainer = begin();
    uint64_t started[100]; /* epochs of two batches, whose stalls are known when the next has begun */
    for (uint32_t k = 0; k < 100; k++) {
        started[k] = made.now;
        step(trainer, k % 2, 40 * MS, 60 * MS);
        if (k >= 3)
            event(trainer, DR_STALL, started[k - 3], ((k - 3) % 4 < 2 ? 10 : 30) * MS, (k - 3) % 2, 0, 0,
                  0);
        if (k % 2)
            end_epoch(trainer);
    }
    bool right = !judge(-1);
    for (uint32_t k = 0; right && k + 2 < facts.step_count; k++)
        right =
            near(facts.steps[k].stall, (facts.steps[k].start_ns / MS - 1000) / 201 % 2 ? 0.03 : 0.01);
    ok(right, "stalls are of the call in which they began");
}

int main(void)
{
    test_plain();
    test_late();
    test_evaluation();
    test_evaluation_by_the_same_loader();
    test_two_loaders();
    test_accumulation();
    test_without_optimizer();
    test_overlapping_calls();
    test_few();
    test_lost_events();
    test_epochs();
    test_outliers();
    test_costs();
    test_lost_steps();
    test_uneven();
    test_stalls();
    for (int k = 0; k < DR_STAGES; k++)
        if (!dr_stage_names[k] || !*dr_stage_names[k])
            ok(false, "stage %d has no name", k);
    dr_facts_free(&facts);
    return done_testing();
}
