/* saturated.c - ST204: workers want more CPU than there is
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const bool queue = f->worker_run_queue >= DR_QUEUE_HIGH, full = f->worker_on_cpu >= DR_WORKER_FULL;
    if (!dr_starved(c) || f->loader.workers == 0 || (!queue && !full) || !dr_known(f->limits.cpus))
        return false;
    const uint32_t most = dr_most_workers(c);
    const bool many = f->loader.workers > DR_OVERSUBSCRIBED * fmax(1, f->limits.cpus);
    if (f->loader.workers < most)
        return false;
    struct dr_plan plan = dr_plan_best(c, most);
    if (plan.workers == 0 || plan.workers > most)
        plan.workers = most;
    dr_gain_by_plan(c, out, &plan);
    const enum dr_stage stage = dr_heaviest_stage(c);
    const bool fewer = plan.workers < f->loader.workers && !dr_below(out->gain.mid, 1);
    if (!fewer) {
        out->plan.workers = UINT32_MAX;
        out->gain = (struct dr_range){NAN, NAN, NAN};
        /* Where the stage is a finding of its own, that says what it gains. */
        if ((stage == DR_STAGE_TRANSFORM || stage == DR_STAGE_DECODE) &&
            f->stage_share[stage] > DR_STAGE_HEAVY)
            DR_SAY(out->basis, "see the finding on the %s", dr_stage_word(stage));
        else
            dr_gain_by_stage(c, out, stage, (struct dr_range){0.75, 0.5, 0});
    }
    out->weight = f->stall_share;
    out->order = many ? DR_ORDER_TOO_MANY : DR_ORDER_LATER;
    char settings[192];
    dr_settings_text(settings, sizeof settings, c, &plan);
    struct dr_text on, waits, share;
    DR_SAY(out->sentence,
           "%u %s on %.3g CPUs: each works %s of the time and waits %s for a CPU; the largest part of "
           "the work is %s (%s)",
           f->loader.workers, dr_makers(c), f->limits.cpus, dr_share_text(&on, f->worker_on_cpu),
           dr_share_text(&waits, f->worker_run_queue), dr_stage_word(stage),
           dr_share_text(&share, f->stage_share[stage]));
    if (fewer)
        DR_SAY(out->advice,
               "%s: more only get in one another's way; then make the %s cheaper, or use more CPUs",
               settings, dr_stage_word(stage));
    else
        DR_SAY(out->advice, "no setting helps: make the %s cheaper%s, or use more CPUs",
               dr_stage_word(stage), f->has_gpu ? ", move it to the GPU" : "");
    dr_say_stoker(
        c, out,
        "stoker.DataLoader does usual image pipelines in a fraction of the CPU time (its explain() "
        "says which parts)",
        f->has_gpu ? "device=\"cuda\" moves resize, colour and normalise to the GPU"
                   : "loader.explain() names the stages that still run in Python");
    return true;
}

const struct dr_rule dr_rule_saturated = {
    .code = "ST204",
    .name = "cpu-saturated",
    .title = "Workers want more CPU than there is",
    .needs = "step.stall,run_queue",
    .check = check,
    .symptoms = "There are as many workers as CPUs, or more; they are ready to run but wait for a "
                "CPU 10 % of the time or longer; training waits all the same.",
    .why = "All CPUs are at work, so another worker adds switching and memory, not batches. The "
           "training thread queues for a CPU too, and launches its kernels later.",
    .fix_torch = "Set num_workers to the number of usable CPUs less one, then make a batch "
                 "cheaper: smaller stored images, uint8 until the GPU, augmentation on the GPU, no "
                 "float64.",
    .fix_stoker = "stoker.DataLoader(dataset, device=\"cuda\")   # decodes the part that a crop "
                  "needs; the GPU does the rest\n"
                  "stoker pack SRC DST --resize 512 --crop-ready  # smaller, and cheaper to crop",
    .how_to_check = "Run again: waits for a CPU fall below 10 % with the same or a better pace.",
};
