/* test_rules_gpu.c - the planted faults of a GPU by the numbers that an H200 showed, and variations of
 * them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "rule_facts.h"
#include "tap.h"

/* What `stoker run` recorded in the programs of tests/faults; the other facts are those of a healthy
 * run. */
struct recorded {
    const char *name, *code;
    double step, stall, wait, copy, sync, pin, on_cpu, cpus, busy, sm, tensor, pcie_in, clock, limited,
        memory, copy_bytes, copy_alone, pageable, amp;
    uint32_t workers;
    bool pins;
};
static const struct recorded all[] = {
    {"pageable copies",
     "ST216",
     27.86e-3,
     6e-6,
     0.717e-3,
     22.65e-3,
     37e-6,
     NAN,
     0.938,
     0.991,
     0.387,
     0.271,
     0.237,
     2.95e9,
     1,
     0,
     0.0071,
     77.07e6,
     19.74e-3,
     1,
     1,
     4,
     false},
    {"a full link", "ST217", 6.708e-3, 1.8e-6, 52e-6,  47e-6,   0.684e-3, NAN,
     0.253,         0.993,   0.883,    0.0365, 0.0033, 52.51e9, 1,        0,
     0.0048,        399.8e6, 25e-6,    0,      1,      0,       false},
    {"launches", "ST301", 27.81e-3, 330e-6, 283e-6, 49e-6, 0.1e-6, 71e-6, 0.404, 1.001, 0.138, 0.0011,
     2e-6,       109.7e6, 1,        0,      0.0005, 2048,  NAN,    0,     0,     0,     true},
    {"sync points", "ST302", 18.69e-3, 61e-6, 35e-6,  70e-6,   4.748e-3, 1.128e-3,
     0.694,         1.075,   0.570,    0.472, 0.0002, 312.9e6, 1,        0,
     0.0033,        4.194e6, 40e-6,    0,     0,      2,       true},
    {"float32", "ST304", 71.77e-3, 3.3e-6, 42e-6,  148e-6,  0,     2.564e-3, 0.374, 1.036, 0.99, 0.963,
     2e-5,      107.1e6, 1,        0,      0.0126, 8.389e6, 50e-6, 0,        0,     2,     true},
    {"a healthy run", "none",  8.751e-3, 1.8e-6, 30e-6, 72e-6,   0.141e-3, 2.213e-3,
     0.421,           1.286,   0.867,    0.771,  0.545, 943.4e6, 0.832,    1,
     0.0127,          8.389e6, 37e-6,    0,      1,     2,       true},
};
enum { PAGEABLE, LINK, LAUNCHES, SYNCS };

static void facts_of(struct dr_facts *f, const struct recorded *r, bool syncs_in_all_steps)
{
    healthy(f);
    run_of(f, r->workers, 15e-6, 1, r->step - r->stall);
    f->step = f->step_p50 = f->step_p99 = r->step;
    f->stall = r->stall, f->wait = r->wait, f->compute = r->step - r->stall;
    f->stall_share = r->stall / r->step, f->wait_share = r->wait / r->step;
    f->stall_share_low = f->stall_share_high = f->late_share = f->late_share_low = f->stall_share;
    for (uint32_t k = 0; k < BATCHES; k++) {
        steps[k].seconds = r->step, steps[k].wait = r->wait, steps[k].stall = r->stall;
        steps[k].sync = syncs_in_all_steps ? r->sync : k ? 0 : r->sync * BATCHES;
    }
    f->copy = r->copy, f->sync = r->sync, f->pin = r->pin, f->copy_bytes = r->copy_bytes;
    f->copy_alone = r->copy_alone, f->copies_pageable_share = r->pageable;
    f->trainer_on_cpu = r->on_cpu, f->trainer_cpus = r->cpus;
    f->gpu_busy = r->busy, f->gpu_sm = r->sm, f->gpu_tensor = r->tensor, f->gpu_pcie_in = r->pcie_in;
    f->gpu_clock = r->clock, f->gpu_limited = r->limited, f->gpu_memory_peak_share = r->memory;
    f->amp = r->amp, f->tf32 = 0, f->gpu_capability = 9;
    f->limits.cpus = f->limits.cpus_machine = 16, f->limits.pcie_limit = 63.008e9;
    f->loader.workers = r->workers, f->loader.pin_memory = r->pins,
    f->loader.batch_bytes = r->copy_bytes;
}

static void judge(struct dr_verdict *v, const struct recorded *r)
{
    struct dr_facts f;
    facts_of(&f, r, r == &all[SYNCS]);
    dr_judge(v, &f);
}

static void test_recorded(void)
{
    static struct dr_verdict v[1];
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        judge(v, &all[k]);
        ok(!strcmp(first(v), all[k].code) && !has(v, "ST303") && v->kind == DR_COMPUTE_BOUND, "%s: %s",
           all[k].name, first(v));
    }
}

/* Measured after the advice was followed: 1.37, 3.16 and 1.74 times as fast. */
static void test_gains(void)
{
    static struct dr_verdict v[1];
    judge(v, &all[PAGEABLE]);
    const struct dr_range pinned = v->finding[0].gain;
    ok(pinned.mid > 1.3 && pinned.mid < 1.5 && pinned.low == 1 && pinned.high > 2.5,
       "a thread that pins 77 MB needs as long as the copy: %.2f (%.2f to %.2f)", pinned.mid, pinned.low,
       pinned.high);
    judge(v, &all[LINK]);
    const struct dr_range link = v->finding[0].gain;
    ok(link.low < 3.16 && link.high > 3.16, "a quarter of the bytes: %.2f (%.2f to %.2f)", link.mid,
       link.low, link.high);
    judge(v, &all[SYNCS]);
    const struct dr_range syncs = v->finding[0].gain;
    ok(syncs.low < 1.4 && syncs.high > 1.7 && syncs.mid > 1.4 && syncs.mid < 1.7,
       "no waits, or no idle time of the GPU: %.2f (%.2f to %.2f)", syncs.mid, syncs.low, syncs.high);
}

static void test_variations(void)
{
    static struct dr_verdict v[1];
    struct dr_facts f;
    facts_of(&f, &all[LAUNCHES], false);
    f.stall = 0.03 * f.wait;
    dr_judge(v, &f);
    ok(!has(v, "ST301"), "a host that is ahead of the GPU only waits for room in its queue (%s)",
       first(v));
    facts_of(&f, &all[LAUNCHES], true);
    f.sync = 0.3 * f.step;
    dr_judge(v, &f);
    ok(!has(v, "ST301"), "one that waits for results polls (%s)", first(v));
    facts_of(&f, &all[LAUNCHES], false);
    f.trainer_cpus = 0.5;
    dr_judge(v, &f);
    ok(!has(v, "ST301"), "one that sleeps does not launch (%s)", first(v));
    facts_of(&f, &all[SYNCS], false);
    dr_judge(v, &f);
    ok(!has(v, "ST302"), "one long wait is no sync point (%s)", first(v));
    facts_of(&f, &all[LINK], false);
    f.gpu_pcie_in = NAN;
    dr_judge(v, &f);
    ok(!strcmp(first(v), "ST217"), "without counters, by the bytes of the copies (%s)", first(v));
    f.copy_bytes /= 4;
    dr_judge(v, &f);
    ok(!has(v, "ST217"), "a quarter of them do not fill the link (%s)", first(v));
}

int main(void)
{
    test_recorded();
    test_gains();
    test_variations();
    return done_testing();
}
