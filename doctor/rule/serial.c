/* serial.c - ST202: batches are made in the training thread, between two steps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

/* Threads of OpenMP and MKL help to make batches in the training process, but spin most of the time; in
 * workers there are none. What they do counts as nothing in the estimate, as work in its lower end. */
static void without_helpers(const struct dr_case *c, struct dr_finding *out, const struct dr_plan *plan)
{
    const struct dr_facts *f = c->facts;
    if (!c->trace || !dr_above(f->helpers_cpu, DR_HELPERS_MATTER * f->batch_cpu_mean))
        return;
    struct dr_plan all = *plan;
    all.cpu_scale = 1 + f->helpers_cpu / f->batch_cpu_mean;
    const struct dr_range least = dr_gain(c->trace, &c->now, &all, c->ceiling);
    if (dr_below(least.low, out->gain.low))
        out->gain.low = least.low;
    struct dr_text spin;
    DR_SAY(out->basis, "simulated; %s of CPU time per batch is spinning threads, at worst work",
           dr_seconds_text(&spin, f->helpers_cpu));
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_starved(c) || f->loader.workers != 0 || f->loader.native)
        return false;
    struct dr_plan plan = dr_plan_best(c, dr_most_workers(c));
    if (plan.workers == 0) {
        if (c->trace) /* the simulator found no better setting: tiny batches, or no CPU to spare */
            return false;
        plan.workers = 1;
    }
    dr_gain_by_plan(c, out, &plan);
    without_helpers(c, out, &plan);
    if (dr_below(out->gain.mid, DR_GAIN_WORTH) ||
        (!dr_above(f->helpers_cpu, 0) && !dr_pays(out->gain)))
        return false;
    struct dr_text batch, step;
    char settings[192];
    out->weight = f->stall_share;
    out->order = DR_ORDER_SERIAL;
    dr_settings_text(settings, sizeof settings, c, &plan);
    DR_SAY(
        out->sentence,
        "num_workers=0: the training thread makes each batch itself, which takes %s, and %s waits for "
        "it in every step of %s",
        dr_seconds_text(&batch, dr_known(f->batch_mean) ? f->batch_mean : f->wait), dr_waiter(c),
        dr_seconds_text(&step, f->step));
    DR_SAY(out->advice, "DataLoader(..., %s%s)", settings,
           f->has_gpu && !f->loader.pin_memory ? ", pin_memory=True" : "");
    dr_say_stoker(c, out,
                  "use stoker.DataLoader instead of torch's: num_workers=\"auto\" is its default",
                  "leave num_workers at its default, \"auto\"");
    return true;
}

const struct dr_rule dr_rule_serial = {
    .code = "ST202",
    .name = "serial-loading",
    .title = "Batches are made in the training thread",
    .needs = "step.stall",
    .check = check,
    .symptoms = "num_workers=0; next() takes as long as making a batch takes; no batch is ever ready.",
    .why = "Without workers, next() reads, decodes and collates before it returns. Loading and "
           "computing take turns instead of overlapping.",
    .fix_torch = "DataLoader(dataset, num_workers=N, persistent_workers=True, pin_memory=True)\n"
                 "Take N from the report: enough for the step time, within the available CPUs.",
    .fix_stoker = "from stoker import DataLoader     # num_workers=\"auto\" is the default\n"
                  "or, without changing the program: python -m stoker train.py",
    .how_to_check = "Run again: readiness rises above 0, and the stall falls to the predicted value.",
};
