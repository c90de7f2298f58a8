/* test_rules_verdict.c - what a verdict says as a whole: what it clears, promises and names first
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rule_cases.h"
#include "rule_checks.h"

/* A command that failed before a step was seen has said itself why. */
static void test_failed_at_once(void)
{
    static struct dr_verdict v[1];
    static struct dr_run run = {.finished = true, .exit_code = 2};
    struct dr_facts f;
    unknown_facts(&f);
    f.run = &run;
    dr_judge(v, &f);
    ok(v->failed && !v->findings && !v->cleared_count && !v->unjudged_count &&
           strstr(v->sentence, "status 2"),
       "no verdict: %s", v->sentence);
    print(v, &f, 80, false, true);
    ok(!strstr(screen, "DO THIS") && !strstr(screen, "NOT SEE") && strstr(screen, "status 2"), "one line");
    run.exit_code = 137;
    dr_judge(v, &f);
    ok(strstr(v->sentence, "signal 9"), "killed: %s", v->sentence);
    f.confidence_steps = 4;
    dr_judge(v, &f);
    ok(!v->failed && has(v, "ST901"), "after some steps there is a verdict");
    healthy(&f);
    f.run = &run;
    dr_judge(v, &f);
    ok(!v->failed && v->kind == DR_COMPUTE_BOUND, "and of a run that failed at its end, too");
    run = (struct dr_run){.finished = true};
    unknown_facts(&f);
    f.run = &run;
    dr_judge(v, &f);
    ok(!v->failed && has(v, "ST901"), "a program without steps that does not fail is told what is missing");
}

static bool clears(const struct dr_verdict *v, const char *code)
{
    for (uint32_t i = 0; i < v->cleared_count; i++)
        if (!strcmp(v->cleared[i]->code, code))
            return true;
    return false;
}

/* What is not checked is not cleared. */
static void test_cleared(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    f.confidence_steps = 5;
    dr_judge(v, &f);
    ok(v->cleared_count == 0 && v->unjudged_count > 25, "after five steps nothing is cleared (%u)",
       v->cleared_count);
    healthy(&f);
    f.later_epochs_stall_share = f.epoch_start = f.limits.cpus = NAN;
    dr_judge(v, &f);
    bool cleared = false;
    for (uint32_t i = 0; i < v->cleared_count; i++)
        cleared = cleared || strstr("ST203 ST204 ST206 ST211 ST214", v->cleared[i]->code);
    ok(!cleared, "nor is a warm-up after one epoch, nor the number of workers for unknown CPUs");
}

/* Others use the CPUs: said first, never cleared, and no cause is made of it that an idle machine lacks. */
static void test_busy(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    dr_judge(v, &f);
    ok(!*v->busy && clears(v, "ST223"), "an idle machine");
    f.cpus_busy_others = 5;
    dr_judge(v, &f);
    ok(*v->busy && strstr(v->busy, "5 of its 8 CPUs") && !clears(v, "ST223"), "a busy one: %s", v->busy);
    print(v, &f, 80, false, true);
    ok(strstr(screen, "BUSY") && strstr(screen, "BUSY") < strstr(screen, "VERDICT"), "is said first");
    f.limits.cpus_machine = 64;
    dr_judge(v, &f);
    ok(*v->busy && strstr(v->busy, "5 of this run's 8 CPUs"), "so it is where all have the same CPUs: %s", v->busy);
    f.limits.cpus_affinity = 64, f.limits.cpus_quota = 8;
    dr_judge(v, &f);
    ok(!*v->busy, "others do not count where a quota leaves CPUs to them");
    f.worker_run_queue = 0.2;
    dr_judge(v, &f);
    ok(*v->busy, "unless there are waits for a CPU");
    healthy(&f);
    starve(&f, 0.2);
    dr_judge(v, &f);
    ok(v->kind == DR_DATA_BOUND && !strcmp(first(v), "ST901"), "waits without a cause: %s", first(v));
    f.cpus_busy_others = 5;
    dr_judge(v, &f);
    ok(v->kind == DR_COMPUTE_BOUND && strstr(v->sentence, "on an idle machine") && !v->findings,
       "which the simulator does not see on an idle machine: %s", v->sentence);
    f.batch_count = 0;
    dr_judge(v, &f);
    ok(v->kind == DR_CANNOT_TELL && !strcmp(first(v), "ST901") && is_sound(v) &&
           strstr(v->sentence, "may be theirs"),
       "or that cannot be simulated: %s", v->sentence);
}

/* Work in each step besides model and data: the headline, the limit and what it brings. */
static void test_costs(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    run_of(&f, 4, 0.2, 0.97, 0.4);
    f.has_gpu = false, f.worker_cpus = f.worker_on_cpu;
    f.save = 0.36, f.save_steps = 1;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST308") && strstr(v->sentence, "not by the model: saving takes 360 ms") &&
           strstr(v->limiter, "saving (90 %"),
       "a save in each step: %s; %s", v->sentence, v->limiter);
    ok(v->finding[0].gain.mid > 6 && v->finding[0].gain.mid < 8.6 && v->finding[0].gain.low < 6 &&
           is_sound(v),
       "once in 50, until batches are the limit: %.2f (%.2f to %.2f)", v->finding[0].gain.mid,
       v->finding[0].gain.low, v->finding[0].gain.high);
    f.batch_count = 0;
    dr_judge(v, &f);
    ok(fabs(v->finding[0].gain.mid - 1 / (1 - 0.9 * 0.98)) < 1e-6 && is_sound(v), "without the simulator: %.2f",
       v->finding[0].gain.mid);
    print(v, &f, 100, false, true);
    ok(strstr(screen, "saves, logs, validates") != NULL, "a part of the step");
    f.outlier_share = 0.3, f.outlier_save = 1, f.outlier_gc = f.outlier_eval = 0;
    dr_judge(v, &f);
    ok(!has(v, "ST306"), "is no outlier");
    f.save_steps = 0.1;
    dr_judge(v, &f);
    ok(has(v, "ST306") && !has(v, "ST308"), "but one step in ten is");
    healthy(&f);
    fires_ST203(&f);
    f.has_gpu = false, f.gc = 0.06, f.gc_steps = 1;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST203") && has(v, "ST307") && v->all.mid > v->finding[0].gain.mid && is_sound(v),
       "with too few workers both count: %.2f, %.2f, together %.2f of at most %.2f", v->finding[0].gain.mid,
       v->finding[1].gain.mid, v->all.mid, v->most);
    healthy(&f);
    fires_ST307(&f);
    f.gpu_busy = 0.99;
    dr_judge(v, &f);
    ok(!v->findings, "a GPU that is busy all the time hides it (%s)", first(v));
}

/* Runs that the simulator does not cover: causes are named, gains are not. */
static void test_not_covered(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST203(&f);
    f.worker_lock = 0.5;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST231") && !has(v, "ST203"), "no worker is promised where they queue for a lock (%s)",
       first(v));
    healthy(&f);
    fires_ST203(&f);
    f.worker_children = 2;
    dr_judge(v, &f);
    ok(has(v, "ST203") && isnan(v->finding[0].gain.mid) && strstr(v->finding[0].basis, "stoker tune") &&
           strstr(v->finding[0].basis, "processes of their own"),
       "workers with children: %s", v->finding[0].basis);
    healthy(&f);
    fires_ST202(&f);
    f.loader.feeder = true;
    dr_judge(v, &f);
    ok(has(v, "ST202") && isnan(v->finding[0].gain.mid) && isnan(v->ceiling) && is_sound(v) &&
           strstr(v->finding[0].basis, "stoker tune") && strstr(v->sentence, "feeds the training"),
       "a feeder of the program: %s; %s", v->sentence, v->finding[0].basis);
}

/* Three threads beside the one that makes the batches: their CPU time is no work that workers would do. */
static void test_spinning(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    run_of(&f, 0, 0.25, 0.97, 0.1);
    f.limits.cpus = f.limits.cpus_machine = 4;
    f.trainer_cpus = 3.6, f.trainer_on_cpu = 0.95;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST202") && v->finding[0].gain.mid > 2.5,
       "nor what spins while the training thread launches kernels: %.2f", v->finding[0].gain.mid);
    f.has_gpu = false;
    dr_judge(v, &f);
    const double blind = v->finding[0].gain.mid;
    f.helpers_cpu = 0.8;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST202") && v->finding[0].gain.mid > 1.3 * blind && v->finding[0].gain.mid > 2.5 &&
           v->finding[0].gain.low < 2 && is_sound(v),
       "without them: %.2f (%.2f to %.2f) instead of %.2f", v->finding[0].gain.mid, v->finding[0].gain.low,
       v->finding[0].gain.high, blind);
    ok(strstr(v->finding[0].basis, "spinning") != NULL, "said so: %s", v->finding[0].basis);
}

int main(void)
{
    test_failed_at_once();
    test_cleared();
    test_busy();
    test_costs();
    test_not_covered();
    test_spinning();
    return done_testing();
}
