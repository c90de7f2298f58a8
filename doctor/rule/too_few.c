/* too_few.c - ST203: workers are always busy, and there are CPUs for more of them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_late(c) || f->loader.workers == 0 || dr_above(f->worker_idle, 0.5))
        return false;
    const uint32_t most = dr_most_workers(c);
    if (most <= f->loader.workers)
        return false;
    const struct dr_plan plan = dr_plan_best(c, most);
    if (plan.workers <= f->loader.workers)
        return false;
    dr_gain_by_plan(c, out, &plan);
    if (!dr_pays(out->gain))
        return false;
    struct dr_text batch, pace, step;
    char settings[192];
    out->weight = f->stall_share;
    out->order = !c->trace || dr_fixes(c, out->gain) ? DR_ORDER_TOO_FEW : DR_ORDER_LATER;
    dr_settings_text(settings, sizeof settings, c, &plan);
    DR_SAY(out->sentence,
           "%u %s with %s per batch deliver%s one every %s, but a step needs one every %s",
           f->loader.workers, dr_makers(c, f->loader.workers), dr_seconds_text(&batch, f->batch_mean),
           f->loader.workers == 1 ? "s" : "",
           dr_seconds_text(&pace, f->batch_mean / f->loader.workers),
           dr_seconds_text(&step, f->compute));
    struct dr_text cpus, used;
    DR_SAY(out->advice, "%s (CPUs available: %s, in use: %s)", settings,
           dr_plain_text(&cpus, f->limits.cpus), dr_plain_text(&used, f->cpus_used));
    dr_say_stoker(c, out, "stoker.DataLoader uses all available CPUs (num_workers=\"auto\")",
                  "num_workers=\"auto\" uses all available CPUs");
    return true;
}

const struct dr_rule dr_rule_too_few = {
    .code = "ST203",
    .name = "too-few-workers",
    .title = "Too few workers for the speed of the training",
    .needs = "step.stall,batch.seconds,cpus",
    .check = check,
    .symptoms = "Workers are never idle and rarely wait for a CPU; CPUs are unused while training "
                "waits.",
    .why = "W workers deliver one batch every (batch time / W). If that is longer than a step, the "
           "difference is stall. Workers that mostly wait, for a network for example, do not need a "
           "CPU each, so there can be more workers than CPUs.",
    .fix_torch = "DataLoader(dataset, num_workers=N, persistent_workers=True)\n"
                 "Take N from the report.",
    .fix_stoker = "stoker.DataLoader(dataset, num_workers=\"auto\")\n"
                  "Most image pipelines need fewer CPUs with Stoker, because its engine does the work "
                  "without Python.",
    .how_to_check = "Run again: the stall falls as predicted. If workers now queue for CPUs, the next "
                    "finding is ST204.",
};
