/* saturated.c - ST204: workers need more CPU time than there is
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include "base/text.h"

enum cure { FEWER, CPUS, STAGE };

/* The cure with the largest gain: other settings, CPUs of the machine that this process may not use, or
 * less work. */
static enum cure cure_of(const struct dr_case *c, struct dr_finding *out, enum dr_stage stage,
                         uint32_t most)
{
    const struct dr_facts *f = c->facts;
    enum cure cure = STAGE;
    struct dr_finding by_cpus = *out, by_stage = *out;
    struct dr_plan plan = dr_plan_best(c, most);
    if (plan.workers == 0 || plan.workers > most)
        plan.workers = most;
    dr_gain_by_plan(c, out, &plan);
    if (plan.workers < f->loader.workers && !dr_below(out->gain.mid, 1))
        cure = FEWER;
    else
        out->gain = (struct dr_range){NAN, NAN, NAN};
    const double least = cure == FEWER ? out->gain.mid * DR_GAIN_WORTH : 0;
    if (dr_above(f->limits.cpus_machine, f->limits.cpus)) {
        const double free = f->limits.cpus_machine -
                            (dr_known(f->cpus_busy_others) ? f->cpus_busy_others : 0) -
                            (dr_known(f->cpus_busy_elsewhere) ? f->cpus_busy_elsewhere : 0);
        const struct dr_plan wider = dr_plan_with_cpus(c, fmax(free, f->limits.cpus));
        dr_gain_by_cpus(c, &by_cpus, &wider);
        if (by_cpus.gain.mid > fmax(least, DR_GAIN_WORTH)) {
            *out = by_cpus;
            return CPUS;
        }
    }
    /* Where the stage has its own finding, that one states the gain. */
    if ((stage == DR_STAGE_TRANSFORM || stage == DR_STAGE_DECODE) &&
        f->stage_share[stage] > DR_STAGE_HEAVY)
        DR_SAY(by_stage.basis, "see the finding about %s", dr_stage_word(stage));
    else
        dr_gain_by_stage(c, &by_stage, stage, (struct dr_range){0.75, 0.5, 0});
    if (cure == FEWER && !(by_stage.gain.mid > least))
        return FEWER;
    *out = by_stage;
    return STAGE;
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const bool queue = f->worker_run_queue >= DR_QUEUE_HIGH, full = f->worker_on_cpu >= DR_WORKER_FULL;
    if (!dr_late(c) || f->loader.workers == 0 || (!queue && !full) || !dr_known(f->limits.cpus))
        return false;
    const uint32_t most = dr_most_workers(c);
    const bool many = f->loader.workers > DR_OVERSUBSCRIBED * fmax(1, f->limits.cpus);
    if (f->loader.workers < most)
        return false;
    const enum dr_stage stage = dr_heaviest_stage(c);
    const enum cure cure = cure_of(c, out, stage, most);
    out->weight = f->stall_share;
    out->order = many ? DR_ORDER_TOO_MANY : DR_ORDER_LATER;
    char settings[192];
    dr_settings_text(settings, sizeof settings, c, &out->plan);
    const uint32_t workers = f->loader.workers < most ? f->loader.workers : most;
    struct dr_text on, waits, share;
    DR_SAY(out->sentence,
           "%u %s on %.3g CPU%s: each runs %s of the time and waits for a CPU %s of the time; the "
           "largest part of the work is %s (%s)",
           f->loader.workers, dr_makers(c, f->loader.workers), f->limits.cpus, dr_s(f->limits.cpus),
           dr_share_text(&on, f->worker_on_cpu), dr_share_text(&waits, f->worker_run_queue),
           dr_stage_word(stage), dr_share_text(&share, f->stage_share[stage]));
    if (cure == CPUS)
        DR_SAY(out->advice,
               "the machine has %.3g CPU%s, but this process may use only %.3g (taskset, a cpuset): "
               "allow it more, with %s",
               f->limits.cpus_machine, dr_s(f->limits.cpus_machine), f->limits.cpus, settings);
    else if (cure == FEWER)
        DR_SAY(out->advice,
               "%s, since more workers only slow each other down; then make the %s cheaper, or use more "
               "CPUs",
               settings, dr_stage_word(stage));
    else
        DR_SAY(out->advice,
               "make the %s cheaper%s, or use more CPUs: %u worker%s already keep%s %.3g CPU%s busy",
               dr_stage_word(stage),
               f->has_gpu ? ", move it to the GPU or do it once, offline" : ", or do it once, offline",
               workers, st_s(workers), workers == 1 ? "s" : "", f->limits.cpus, dr_s(f->limits.cpus));
    dr_say_stoker(
        c, out,
        "stoker.DataLoader runs the usual image pipelines in a fraction of the CPU time (its "
        "explain() shows which parts)",
        f->has_gpu ? "device=\"cuda\" moves resize, colour and normalization to the GPU"
                   : "loader.explain() names the stages that still run in Python");
    return true;
}

const struct dr_rule dr_rule_saturated = {
    .code = "ST204",
    .name = "cpu-saturated",
    .title = "Workers need more CPU time than there is",
    .needs = "step.stall,run_queue,cpus",
    .check = check,
    .symptoms = "There are as many workers as CPUs or more; they are ready to run but wait for a CPU "
                "10 % of the time or longer; training still waits.",
    .why = "All CPUs are busy, so another worker adds context switches and memory, not batches. The "
           "training thread queues for a CPU too, and launches its kernels late.",
    .fix_torch = "Set num_workers to the number of usable CPUs minus one. Then make a batch cheaper: "
                 "smaller stored images, uint8 until the GPU, augmentation on the GPU, no float64.",
    .fix_stoker = "stoker.DataLoader(dataset, device=\"cuda\")   # decodes only the part that a crop "
                  "needs; the GPU does the rest\n"
                  "stoker pack SRC DST --resize 512 --crop-ready  # smaller files that are cheaper to "
                  "crop",
    .how_to_check = "Run again: waits for a CPU fall below 10 %, at the same or a higher speed.",
};
