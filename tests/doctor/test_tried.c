/* test_tried.c - samples made again with Stoker's loader: what is read of them, and the gain they promise
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "made_run.h"
#include "rule_checks.h"
#include "rule_facts.h"

static void tried(struct dr_process *process, uint32_t block, uint32_t torch_us, uint32_t stoker_us)
{
    event(process, DR_TRIED_TORCH, made.now, 50 * MS, block, 0, 16, torch_us);
    event(process, DR_TRIED_STOKER, made.now, 9 * MS, block, 0, 16, stoker_us);
}

static void test_reading(void)
{
    struct dr_process *trainer = begin();
    say(trainer, "loader.0.try.plan", "engine");
    say(trainer, "loader.0.try.workers", "4");
    for (uint32_t k = 0; k < 100; k++)
        step(trainer, k, 30 * MS, 70 * MS);
    end_epoch(trainer);
    ok(!judge(-1) && !strcmp(facts.tried.plan, "engine") && facts.tried.samples == 0 &&
           !dr_known(facts.tried.share),
       "a plan without measurements");
    for (uint32_t k = 0; k < 8; k++)
        tried(trainer, k, 64000, k % 2 ? 15000 : 17000);
    ok(!judge(-1) && near(facts.tried.samples, 128) && near(facts.tried.torch_cpu, 0.004) &&
           near(facts.tried.stoker_cpu, 0.001) && near(facts.tried.share, 0.25) &&
           near(facts.tried.workers, 4),
       "CPU seconds per sample, and their ratio");
    ok(facts.tried.share_low < 0.25 && facts.tried.share_low > 0.22 && facts.tried.share_high > 0.25 &&
           facts.tried.share_high < 0.28,
       "its interval: %.3f to %.3f", facts.tried.share_low, facts.tried.share_high);
    ok(near(facts.step, 0.1) && near(facts.step_count, 94), "steps are as without them");
    event(trainer, DR_TRIED_STOKER, made.now, MS, 8, 0, 16, 1);  /* without torch's */
    event(trainer, DR_TRIED_TORCH, made.now, MS, 9, 0, 16, 1000000);
    event(trainer, DR_TRIED_STOKER, made.now, MS, 9, 0, 8, 1);   /* of other samples */
    event(trainer, DR_TRIED_TORCH, made.now, MS, 10, 1, 16, 64); /* of another loader */
    event(trainer, DR_TRIED_STOKER, made.now, MS, 10, 1, 16, 64);
    ok(!judge(-1) && near(facts.tried.samples, 128) && near(facts.tried.share, 0.25),
       "what does not belong together is left out");
    trainer = begin();
    say(trainer, "loader.0.try.error", "no");
    for (uint32_t k = 0; k < 100; k++)
        step(trainer, k, 30 * MS, 70 * MS);
    ok(!judge(-1) && !facts.tried.plan && !strcmp(facts.tried.error, "no"), "why there are none");
}

/* 4 workers that need 0.4 s for a batch, steps of 0.01 s. */
static void measured(struct dr_facts *f, const char *plan, double share, double off)
{
    healthy(f);
    run_of(f, 4, 0.4, 1, 0.01);
    f->limits.cpus = f->limits.cpus_machine = 64;
    f->cpus_busy_others = 0;
    f->tried = (struct dr_tried){.plan = plan,
                                 .workers = 4,
                                 .samples = 128,
                                 .torch_cpu = 0.004,
                                 .stoker_cpu = 0.004 * share,
                                 .share = share,
                                 .share_low = share - off,
                                 .share_high = share + off};
}

static bool about(double value, double expected)
{
    note("%.3f, expected about %.3f", value, expected);
    return fabs(value - expected) < 0.06 * expected;
}

static struct dr_verdict verdict;
static const struct dr_offer *offer_for(const struct dr_facts *f)
{
    dr_judge(&verdict, f);
    note("%s: %s", verdict.offer.command, verdict.offer.sentence);
    return &verdict.offer;
}

static void test_gain(void)
{
    static struct dr_facts f;
    measured(&f, "python", 0.5, 0.05);
    const struct dr_offer *offer = offer_for(&f);
    ok(offer->kind == DR_OFFER_GAIN && about(offer->gain.mid, 2), "half the work: twice as fast");
    ok(offer->gain.low < 1.8 && offer->gain.low > 1.6 && offer->gain.high > 2.2 && offer->gain.high < 2.5,
       "with the uncertainty of the measurement: %.2f to %.2f", offer->gain.low, offer->gain.high);
    measured(&f, "engine", 0.5, 0.05);
    ok(about(offer_for(&f)->gain.mid, 2), "the same by threads of the engine");
    measured(&f, "engine", 0.02, 0);
    ok(about(offer_for(&f)->gain.mid, 10) && is_sound(&verdict), "never more than the step allows");
    measured(&f, "engine", 0.5, 0);
    f.loader.pin_memory = true, f.pin = 0.3;
    ok(about(offer_for(&f)->gain.mid, 0.3 / 0.05 < 10 ? 6 : 10),
       "the engine writes into pinned memory: no thread copies");
    measured(&f, "engine", 0.25, 0);
    run_of(&f, 0, 0.4, 1, 0.1); /* 0.5 s per step; 0.1 s of CPU time for a batch on 4 threads */
    ok(about(offer_for(&f)->gain.mid, 5), "without workers, threads work beside the step");
    measured(&f, "rows", 0.1, 0);
    run_of(&f, 0, 0.4, 1, 0.1);
    ok(about(offer_for(&f)->gain.mid, 0.5 / 0.14), "rows are gathered in the training thread");
    measured(&f, "engine", 0.25, 0); /* the training thread's 0.4 s are helped by as much of OpenMP's */
    run_of(&f, 0, 0.4, 1, 0.001);
    f.helpers_cpu = 0.4;
    f.tried.torch_cpu = 0.8 / f.loader.batch_size;
    ok(about(offer_for(&f)->gain.mid, 0.401 / 0.05), "help of other threads is work that one thread has");
    measured(&f, "engine", 1, 0);
    ok(offer_for(&f)->kind == DR_OFFER_NOTHING, "a sample is as much work as before");
    f.tried.on_gpu = true;
    ok(offer_for(&f)->kind == DR_OFFER_GAIN && offer->gain.high > 5 && strstr(offer->sentence, "batches on the GPU"),
       "but batches that are made on the GPU may gain more, up to the ceiling: %.2f", offer->gain.high);
    measured(&f, "engine", 0.25, 0);
    f.loader.feeder = true;
    ok(offer_for(&f)->kind == DR_OFFER_UNKNOWN && strstr(offer->sentence, "cannot be simulated") &&
           !dr_known(offer->gain.mid),
       "no number where the simulator does not cover the run");
}

static void test_nothing(void)
{
    static struct dr_facts f;
    measured(&f, "engine", 0.1, 0);
    run_of(&f, 4, 0.2, 1, 0.1);
    const struct dr_offer *offer = offer_for(&f);
    ok(offer->kind == DR_OFFER_NOTHING && strstr(offer->sentence, "nothing to gain: the step"),
       "the step is the limit");
    f.tried = (struct dr_tried){.plan = NULL, .share = NAN};
    ok(offer_for(&f)->kind == DR_OFFER_NOTHING, "which is known without a measurement");
    measured(&f, "python", 1.01, 0.01);
    f.tried.why = "it is my own";
    ok(offer_for(&f)->kind == DR_OFFER_NOTHING && strstr(offer->sentence, "because it is my own"),
       "samples are no less work");
    measured(&f, "python", 0.2, 0.01);
    run_of(&f, 4, 0.4, 0.02, 0.01); /* samples wait for something */
    ok(offer_for(&f)->kind == DR_OFFER_NOTHING && strstr(offer->sentence, "not what takes the time"),
       "waits are as long as before");
    measured(&f, "python", 1.5, 0.01);
    ok(offer_for(&f)->kind == DR_OFFER_GAIN && about(offer->gain.mid, 1 / 1.5), "a loss is said, too");
}

static void test_unmeasured(void)
{
    static struct dr_facts f;
    measured(&f, "engine", 0.1, 0);
    f.tried = (struct dr_tried){.share = NAN};
    const struct dr_offer *offer = offer_for(&f);
    ok(offer->kind == DR_OFFER_UNKNOWN && strstr(offer->sentence, "--try-stoker") &&
           !dr_known(offer->gain.mid),
       "without a measurement: how to get it, and no number");
    f.tried.error = "the program ended with KeyboardInterrupt";
    ok(strstr(offer_for(&f)->sentence, "KeyboardInterrupt") != NULL, "why it failed");
    f.loader.stoker = true;
    ok(offer_for(&f)->kind == DR_OFFER_NONE, "nothing if Stoker loads already");
}

static void test_command(void)
{
    static struct dr_facts f;
    static struct dr_run run;
    measured(&f, "engine", 0.1, 0);
    f.run = &run;
    static const struct {
        char *argv[8];
        const char *expected;
    } cases[] = {
        {{"python", "train.py", "--lr", "1"}, "python -m stoker train.py"},
        {{"/usr/bin/python3.11", "-u", "-W", "ignore", "a/train.py"}, "python -m stoker a/train.py"},
        {{"python3", "-m", "package.train", "x"}, "python -m stoker -m package.train"},
        {{"torchrun", "--nproc-per-node", "2", "train.py"}, "torchrun -m stoker train.py"},
        {{"python", "-c", "pass"}, "from stoker import DataLoader"},
        {{"python"}, "from stoker import DataLoader"},
        {{"python", "-W"}, "from stoker import DataLoader"},
        {{"torchrun", "--help"}, "from stoker import DataLoader"},
        {{"./train.sh", "train.py"}, "from stoker import DataLoader"},
        {{NULL}, "from stoker import DataLoader"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        run.argv = cases[k].argv;
        ok(!strcmp(offer_for(&f)->command, cases[k].expected), "%s", cases[k].expected);
    }
    run.argv = cases[0].argv;
    offer_for(&f);
    print(&verdict, &f, 200, false, true);
    ok(strstr(screen, " STOKER   python -m stoker train.py: ") != NULL, "a line of its own on the screen");
}

int main(void)
{
    test_reading();
    test_gain();
    test_nothing();
    test_unmeasured();
    test_command();
    dr_facts_free(&facts);
    return done_testing();
}
