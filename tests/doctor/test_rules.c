/* test_rules.c - each rule on facts in which it is the first cause, and on facts that just miss it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rule_cases.h"
#include "rule_checks.h"

/* Whether the verdict fits into 80 columns of ASCII, with the code in it. */
static bool fits_screen(const struct dr_verdict *v, const struct dr_facts *f, const char *code)
{
    print(v, f, 80, false, true);
    bool fits = widest() <= 80 && strstr(screen, code) && strstr(screen, "VERDICT") && !strchr(screen, '\033');
    for (const char *at = screen; *at; at++)
        fits = fits && (unsigned char)*at < 128;
    return fits;
}

static void test_cases(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    bool fits = true;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        healthy(&f);
        cases[i].fires(&f);
        dr_judge(v, &f);
        if (!ok(!strcmp(first(v), cases[i].code), "%s is the first finding (%s is)", cases[i].code,
                first(v)))
            note_findings(v);
        if (!ok(is_sound(v), "%s: its texts and numbers are sound", cases[i].code))
            note_findings(v);
        if (!fits_screen(v, &f, cases[i].code)) {
            note("%s: %u columns", cases[i].code, widest());
            fits = false;
        }
        cases[i].misses(&f);
        if (i * 37 % 100 >= share_of(100))
            f.batch_count = 0; /* where it takes long, without the simulator */
        dr_judge(v, &f);
        if (!ok(!has(v, cases[i].code), "%s is not found where it just misses", cases[i].code))
            note_findings(v);
        ok(is_sound(v), "%s: nor is anything unsound there", cases[i].code);
    }
    ok(fits, "every verdict fits into 80 columns of ASCII");
}

static void test_healthy(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    dr_judge(v, &f);
    ok(v->kind == DR_COMPUTE_BOUND && v->findings == 0,
       "a healthy run is compute-bound and has no findings (%s)", first(v));
    note_findings(v);
    ok(!strcmp(v->confidence, "high"), "with high confidence");
    ok(v->cleared_count > 25, "and %u causes are cleared", v->cleared_count);
    ok(v->ceiling == 1, "a perfect loader gains nothing");
    /* Signs of trouble without a stall are no trouble. */
    run_of(&f, 8, 0.6, 0.97, 0.1);
    f.worker_run_queue = 0.4, f.throttled_share = 0.1, f.worker_busy_threads = 9, f.worker_cpus = 2;
    f.behind_share = 0.5, f.behind_wait = 0.9, f.batch_cv = 0.9, f.cpus_busy_others = 6, f.wait_period = 8;
    set_stage(&f, DR_STAGE_DECODE, 0.9, 1);
    dr_judge(v, &f);
    ok(v->kind == DR_COMPUTE_BOUND && v->findings == 0, "no stall, no finding (%s)", first(v));
    healthy(&f);
    run_of(&f, 2, 0.4, 0.97, 0.1);
    f.stall_share = 0.049, f.stall_share_low = 0.04;
    dr_judge(v, &f);
    ok(v->findings == 0, "nor at a stall of 4.9 %% (%s)", first(v));
    f.stall_share = 0.06, f.stall_share_low = 0.001;
    dr_judge(v, &f);
    ok(v->findings == 0, "nor at one of 6 %% that may be none (%s)", first(v));
}

/* Waits that no change of the loader would shorten. */
static void test_in_time(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    run_of(&f, 2, 0.001, 0.97, 0.022);
    f.worker_cpus = f.worker_on_cpu;
    starve(&f, 0.055);
    f.main_cpu_in_next = 0.0009, f.pin = 0.0001, f.readiness = 1, f.late_share = f.late_share_low = 0;
    dr_judge(v, &f);
    ok(v->kind == DR_COMPUTE_BOUND && v->findings == 0 && strstr(v->sentence, "ready in time"),
       "5.5 %% to receive batches that are ready: %s (%s)", v->sentence, first(v));
    ok(!strncmp(v->limiter, "computation", 11), "computation is the limit: %s", v->limiter);
    f.late_share = 0.055, f.late_share_low = 0.04;
    dr_judge(v, &f);
    ok(v->kind == DR_DATA_BOUND && !strcmp(first(v), "ST901"), "5.5 %% for late batches: data-bound (%s)",
       first(v));
    f.trainer_run_queue = 0.054, f.cpus_busy_others = 7;
    dr_judge(v, &f);
    ok(v->kind == DR_COMPUTE_BOUND && v->findings == 0,
       "unless other programs keep the training thread from running for as long (%s)", first(v));
    healthy(&f);
    fires_ST212(&f);
    f.late_share = 0.2, f.late_share_low = 0;
    dr_judge(v, &f);
    ok(v->kind == DR_COMPUTE_BOUND && v->findings == 0, "a single late batch is no finding (%s)", first(v));
    healthy(&f);
    fires_ST215(&f);
    f.readiness = 1, f.late_share = f.late_share_low = 0;
    dr_judge(v, &f);
    ok(v->kind == DR_DATA_BOUND && !strcmp(first(v), "ST215") && strncmp(v->limiter, "computation", 11),
       "ready batches that take long to receive are one (%s)", first(v));
    ok(!dr_pays((struct dr_range){0.91, 1.10, 1.10}) && dr_pays((struct dr_range){1.02, 1.10, 1.12}) &&
           !dr_pays((struct dr_range){1.01, 1.02, 1.03}) && dr_pays((struct dr_range){NAN, NAN, NAN}),
       "a gain pays if it is worth a change and its interval does not include a loss");
}

static void test_unknown(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    unknown_facts(&f);
    dr_judge(v, &f);
    ok(v->kind == DR_CANNOT_TELL && v->findings == 1 && has(v, "ST901"), "nothing known: ST901");
    ok(is_sound(v) && !strncmp(v->sentence, "cannot tell", 11), "in a sentence: %s", v->sentence);
    ok(v->unjudged_count > 5 && v->cleared_count == 0, "%u rules could not be judged, none is cleared",
       v->unjudged_count);
    f.loader.workers = 4, f.has_gpu = true, f.rank_count = 3;
    dr_judge(v, &f);
    ok(v->cleared_count <= 1 && v->unjudged_count > 25, "with workers and a GPU more: %u (%u cleared)",
       v->unjudged_count, v->cleared_count);
    healthy(&f);
    f.confidence_steps = 5;
    dr_judge(v, &f);
    ok(v->kind == DR_CANNOT_TELL && has(v, "ST901"), "five steps: ST901");
    healthy(&f);
    run_of(&f, 2, 0.4, 0.97, 0.1);
    f.batch_count = 0, f.batch_mean = f.batch_cpu_mean = f.limits.cpus = NAN;
    for (int i = 0; i < DR_STAGES; i++)
        f.stage[i] = f.stage_cpu[i] = f.stage_share[i] = NAN;
    dr_judge(v, &f);
    ok(v->kind == DR_DATA_BOUND && !strcmp(first(v), "ST901"),
       "a stall without a cause: data-bound, ST901 (%s)", first(v));
}

/* A program that its loader ended before there was a step to measure. */
static void test_failed(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    unknown_facts(&f);
    f.confidence_steps = 0;
    f.loader.workers = 2, f.loader.prefetch = 2;
    snprintf(f.loader.failure, sizeof f.loader.failure, "ValueError: no such label");
    dr_judge(v, &f);
    ok(v->kind == DR_CANNOT_TELL && !strcmp(first(v), "ST901") && strstr(v->sentence, "no such label"),
       "the loader's error is named: %s", v->sentence);
    f.shm_size = 16e6;
    snprintf(f.loader.failure, sizeof f.loader.failure,
             "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error.");
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST218") && v->finding[0].blocks && has(v, "ST901"),
       "a bus error before the first step: ST218 (%s)", v->finding[0].sentence);
    ok(is_sound(v) && strstr(v->finding[0].sentence, "2 workers with prefetch_factor=2 share it"),
       "what is unknown is left out of the sentence");
    f.loader.stoker = true;
    dr_judge(v, &f);
    ok(!has(v, "ST218"), "Stoker's loader uses no /dev/shm");
}

/* What the evidence says of a batch adds up. */
static void test_percents(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST203(&f);
    for (int i = 0; i < DR_STAGES; i++)
        set_stage(&f, (enum dr_stage)i, i == DR_STAGE_PUT ? 0.4 : 1.0 / 7, 1);
    dr_judge(v, &f);
    print(v, &f, 120, false, true);
    int sum = 0;
    const char *at = strstr(screen, "batch  ");
    const char *end = at ? strstr(at, "; then hand-over") : NULL;
    for (; at && end && (at = strstr(at, " %")) && at < end; at += 2) {
        const char *from = at;
        while (from[-1] >= '0' && from[-1] <= '9')
            from--;
        sum += atoi(from);
    }
    ok(sum == 100, "the stages of a batch are %d %%", sum);
}

static void test_pairs(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST206(&f);
    f.limits.cpus_quota = f.limits.cpus = 4, f.throttled_share = 0.3;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST206") && has(v, "ST205") && !has(v, "ST203") && !has(v, "ST204"),
       "a thread storm comes before the quota that it uses up, and excludes a number of workers");
    healthy(&f);
    fires_ST209(&f);
    dr_judge(v, &f);
    ok(!has(v, "ST203") && v->finding[0].plan.workers > 8,
       "waits for a network: more workers than CPUs (%u), in the same finding",
       v->finding[0].plan.workers);
    healthy(&f);
    run_of(&f, 4, 1, 0.1, 0.1);
    set_stage(&f, DR_STAGE_READ, 0.9, 0.02);
    strcpy(f.limits.file_system, "nfs4");
    strcpy(f.limits.disk_name, "server:/export");
    f.nfs_reads = 200, f.nfs_read = 30e6, f.nfs_rtt = 0.010, f.nfs_time = 0.012;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST209") &&
           strstr(v->finding[0].sentence, "nfs4 on server:/export, whose READ requests take 12"),
       "waits for NFS: the mount and its latency are named: %s", v->finding[0].sentence);
    healthy(&f);
    run_of(&f, 4, 2, 0.97, 0.1);
    set_stage(&f, DR_STAGE_DECODE, 0.8, 1);
    dr_judge(v, &f);
    ok(has(v, "ST227") && has(v, "ST203"), "decode and too few workers are both named");
    healthy(&f);
    fires_ST227(&f);
    f.worker_run_queue = 0.15;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST227") && has(v, "ST204"),
       "at the limit of the CPUs the stage comes first (%s)", first(v));
    healthy(&f);
    run_of(&f, 1, 0.4, 0.02, 0.1);
    f.cpus_busy_others = 5, f.cpus_used = 0.1, f.worker_run_queue = 0.11;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST203"), "a neighbour that costs little hides no lack of workers (%s)",
       first(v));
    note_findings(v);
    healthy(&f);
    fires_ST203(&f);
    f.wait_period = 2;
    dr_judge(v, &f);
    f.has_gpu = false, f.logging = 0.1 * f.step, f.logging_steps = 1;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST203") && has(v, "ST310") &&
           !strcmp(v->finding[v->findings - 1].rule->code, "ST213"),
       "periodic waits are a remark, the last");
    f.outlier_share = 0.8, f.outlier_gc = 1;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST306"), "outliers that cost more than the stall come first");
    healthy(&f);
    fires_ST203(&f);
    fires_ST221(&f);
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST221") && v->finding[0].blocks && has(v, "ST203"),
       "what breaks results comes before what costs time");
}

static void test_ranks(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    run_of(&f, 1, 0.125, 0.05, 0.1);
    spread_ranks(&f, 0.05);
    f.ranks[0].stall_share = f.ranks[1].stall_share = f.ranks[2].stall_share = f.ranks[3].stall_share = 0.2;
    f.rank_skew = 0.36;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST225") && is_sound(v) && fabs(v->finding[0].gain.mid - 1 / 0.64) < 1e-9,
       "ranks that are late by turns: %s", v->findings ? v->finding[0].sentence : "nothing");
    f.rank_skew = 0.05;
    dr_judge(v, &f);
    ok(!has(v, "ST225"), "ranks that wait together are no stragglers");
    healthy(&f);
    spread_ranks(&f, 0.5);
    dr_judge(v, &f);
    ok(v->kind == DR_DATA_BOUND && !strcmp(first(v), "ST225") && strstr(v->sentence, "ranks wait 46 %"),
       "a rank that waits for another one is data-bound: %s", v->sentence);
    healthy(&f);
    run_of(&f, 1, 0.3, 0.05, 0.1);
    spread_ranks(&f, f.stall_share);
    for (int i = 0; i < 4; i++)
        f.ranks[i].pace = 0.3 * (i == 2 ? 1 : 0.95);
    dr_judge(v, &f);
    ok(!has(v, "ST225") && !strcmp(first(v), "ST203") && is_sound(v),
       "ranks that are all slow hide their waits in the all-reduce: %s", first(v));
}

/* On a busy machine, torch's own three threads are all seen at work in most ticks. */
static void test_threads_of_torch(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST206(&f);
    f.worker_threads = f.worker_busy_threads = 3;
    dr_judge(v, &f);
    ok(!has(v, "ST206"), "three threads in a worker are no storm (%s)", first(v));
    f.worker_threads = 5;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST206"), "but five may be (%s)", first(v));
}

/* Without workers, batches need no shared memory, and both batches and steps may take only their best
 * times. */
static void test_tiny(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST220(&f);
    f.worker_cpus = 3 * f.worker_on_cpu, f.worker_threads = 3;
    dr_judge(v, &f);
    const struct dr_range plain = v->finding[0].gain;
    ok(!strcmp(first(v), "ST220") && plain.mid > 1.5 && plain.mid < 1.65,
       "4 ms with workers, 2.5 ms without: %.2f (%.2f to %.2f)", plain.mid, plain.low, plain.high);
    f.worker_threads = 5;
    dr_judge(v, &f);
    ok(v->finding[0].gain.mid <= plain.mid, "threads of the dataset remain: %.2f",
       v->finding[0].gain.mid);
    f.worker_threads = 3;
    f.shared_cpu = 0.5 * f.batch_cpu_mean;
    dr_judge(v, &f);
    const struct dr_range shared = v->finding[0].gain;
    ok(shared.mid > 1.05 * plain.mid, "shared memory: %.2f", shared.mid);
    f.batch_cpu_fast = 0.7 * f.batch_cpu_mean, f.own_fast = 0.7 * f.compute;
    f.batch_cpu_least = 0.5 * f.batch_cpu_mean, f.own_least = 0.5 * f.compute;
    dr_judge(v, &f);
    const struct dr_range best = v->finding[0].gain;
    ok(fabs(best.low - shared.mid) < 0.1 * (shared.mid - 1) && best.mid > 1.3 * shared.mid && best.high > 1.2 * best.mid &&
           best.high <= v->ceiling && is_sound(v),
       "the best times: %.2f (%.2f to %.2f)", best.mid, best.low, best.high);
    f.trainer_cpus = f.trainer_on_cpu = f.main_cpu_in_next / f.step;
    dr_judge(v, &f);
    ok(v->finding[0].gain.high < 1.1 * shared.mid, "a step that sleeps gets no faster: %.2f (to %.2f)",
       v->finding[0].gain.mid, v->finding[0].gain.high);
    healthy(&f);
    run_of(&f, 2, 0.001, 0.97, 0.022);
    f.worker_cpus = f.worker_on_cpu;
    starve(&f, 0.055);
    f.main_cpu_in_next = 0.0009, f.pin = 0.0001, f.readiness = 1, f.late_share = f.late_share_low = 0;
    f.batch_cpu_fast = f.batch_cpu_least = 0.5 * f.batch_cpu_mean;
    f.own_fast = f.own_least = 0.9 * f.compute;
    dr_judge(v, &f);
    ok(v->findings == 0, "faster times alone are no finding (%s)", first(v));
}

/* Gains of stages: measured where they work on data that are thrown away, otherwise assumed. */
static void test_surplus(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST226(&f);
    dr_judge(v, &f);
    const struct dr_range assumed = v->finding[0].gain;
    ok(strstr(v->finding[0].basis, "assumed"), "half of the stage is an assumption: %s", v->finding[0].basis);
    f.discarded[DR_STAGE_TRANSFORM] = 0.4 * f.stage[DR_STAGE_TRANSFORM];
    dr_judge(v, &f);
    ok(v->finding[0].gain.mid == assumed.mid, "a smaller surplus does not replace it");
    f.discarded[DR_STAGE_TRANSFORM] = 0.9 * f.stage[DR_STAGE_TRANSFORM];
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST226") && v->finding[0].gain.mid > 1.2 * assumed.mid &&
           v->finding[0].gain.mid <= v->ceiling && v->finding[0].gain.low > assumed.low,
       "a measured surplus does: %.2f instead of %.2f (%s)", v->finding[0].gain.mid, assumed.mid,
       v->finding[0].basis);
    ok(is_sound(v) && strstr(v->finding[0].advice, "90 % of this time"), "the advice says so: %s",
       v->finding[0].advice);
    healthy(&f);
    run_of(&f, 8, 2.4, 0.97, 0.1);
    set_stage(&f, DR_STAGE_DECODE, 0.55, 1), set_stage(&f, DR_STAGE_TRANSFORM, 0.35, 1);
    f.discarded[DR_STAGE_DECODE] = 0.95 * f.stage[DR_STAGE_DECODE];
    dr_judge(v, &f);
    const double decode = v->finding[0].gain.mid;
    f.discarded[DR_STAGE_TRANSFORM] = 0.95 * f.stage[DR_STAGE_TRANSFORM];
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST227") && v->finding[0].gain.mid > 1.2 * decode,
       "smaller stored images are also transformed faster: %.2f, not %.2f", v->finding[0].gain.mid, decode);
    healthy(&f);
    run_of(&f, 8, 4, 0.97, 0.1);
    set_stage(&f, DR_STAGE_DECODE, 0.37, 1), set_stage(&f, DR_STAGE_TRANSFORM, 0.61, 1);
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST226"), "most of the time is that of transforms: %s", first(v));
    f.discarded[DR_STAGE_DECODE] = 0.99 * f.stage[DR_STAGE_DECODE];
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST227") && !has(v, "ST226") && v->finding[0].gain.mid > 1.3 && v->finding[0].gain.high > 3 && is_sound(v),
       "which only reduce what was decoded far too large: %s, %.2f", first(v), v->finding[0].gain.mid);
    const double kept = v->finding[0].gain.mid;
    f.reduced = 0.95 * f.stage[DR_STAGE_TRANSFORM];
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST227") && v->finding[0].gain.mid > 2 * kept &&
           v->finding[0].gain.low > kept && is_sound(v),
       "and have less to do with smaller files: %.2f (%.2f to %.2f), not %.2f", v->finding[0].gain.mid,
       v->finding[0].gain.low, v->finding[0].gain.high, kept);
    f.discarded[DR_STAGE_TRANSFORM] = 0.9 * f.stage[DR_STAGE_TRANSFORM];
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST226"), "those that work on what is cropped away are their own cause: %s", first(v));
}

/* On a busy machine a promise is less certain: others may use more or less of the CPUs next time. */
static void test_promise_on_a_busy_machine(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    healthy(&f);
    fires_ST203(&f);
    dr_judge(v, &f);
    const struct dr_range alone = v->finding[0].gain;
    f.cpus_busy_others = 0.5 * f.limits.cpus;
    dr_judge(v, &f);
    const struct dr_range busy = v->finding[0].gain;
    ok(!strcmp(first(v), "ST203") && v->busy[0] && alone.low > 1 + 0.8 * (alone.mid - 1) &&
           busy.low < 1 + 0.5 * (busy.mid - 1) && busy.low > 1 && is_sound(v),
       "%.2f to %.2f instead of %.2f to %.2f", busy.low, busy.high, alone.low, alone.high);
}

int main(void)
{
    test_promise_on_a_busy_machine();
    test_healthy();
    test_in_time();
    test_unknown();
    test_failed();
    test_percents();
    test_cases();
    test_pairs();
    test_ranks();
    test_threads_of_torch();
    test_tiny();
    test_surplus();
    return done_testing();
}
