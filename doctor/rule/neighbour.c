/* neighbour.c - ST223: other programs on this machine use the CPUs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double cpus = f->limits.cpus;
    const double queue = dr_known(f->worker_run_queue) ? f->worker_run_queue : f->trainer_run_queue;
    if (!dr_starved(c) || !(f->cpus_busy_others >= DR_NEIGHBOUR_SHARE * cpus) ||
        !(queue >= DR_QUEUE_HIGH) || !(f->cpus_used < DR_NEIGHBOUR_OURS * cpus) ||
        dr_above(f->throttled_share, DR_THROTTLED))
        return false;
    out->weight = f->stall_share;
    out->order = DR_ORDER_NEIGHBOUR;
    DR_SAY(
        out->sentence,
        "other programs use %.1f CPUs; of its %.3g CPU%s this run gets %.1f, and its workers wait for "
        "a CPU %.0f %% of the time",
        f->cpus_busy_others, cpus, dr_s(cpus), f->cpus_used, queue * 100);
    DR_SAY(out->advice,
           "reserve CPUs for this run (taskset, a cgroup, another machine), or stop the other programs");
    dr_say_stoker(c, out, "stoker.DataLoader needs less CPU time for the same batches",
                  "the same: other programs hold the CPUs");
    if (f->batch_mean < DR_TINY_BATCH)
        DR_SAY(out->basis,
               "not simulated: such small batches wait for threads to wake up, not for CPUs");
    else if (c->trace) { /* with all the CPUs that it may use, and without the waits for them */
        struct dr_plan then = c->now;
        then.cpus = cpus;
        struct dr_outcome outcome;
        dr_simulate(&outcome, c->trace, &then);
        const double most = fmax(1, c->ceiling);
        out->gain = (struct dr_range){fmin(fmax(1, f->step / outcome.step.high), most),
                                      fmin(fmax(1, f->step / outcome.step.mid), most),
                                      fmin(fmax(1, f->step / outcome.step.low), most)};
        DR_SAY(out->basis, "simulated with %.3g CPU%s for this run alone", cpus, dr_s(cpus));
        if (dr_below(out->gain.mid, DR_GAIN_WORTH))
            return false;
        if (!dr_fixes(c, out->gain))
            out->order = DR_ORDER_LATER;
    } else
        dr_no_promise(c, out);
    return true;
}

const struct dr_rule dr_rule_neighbour = {
    .code = "ST223",
    .name = "noisy-neighbour",
    .title = "Other programs on this machine use the CPUs",
    .needs = "step.stall,cpu.busy,run_queue",
    .check = check,
    .symptoms = "Workers queue for CPUs although the run does not use all the CPUs it may; other "
                "processes use them.",
    .why = "CPUs are shared by all runnable threads. Another job on them slows down the workers and "
           "delays the training thread, which then launches kernels late.",
    .fix_torch = "Use another machine, or separate the CPUs: taskset -c 0-15 python train.py, docker "
                 "--cpuset-cpus, and the same for the other job.",
    .fix_stoker = "The same.",
    .how_to_check = "Look at `top`, or at \"used by others\" in the report; waits for a CPU fall below "
                    "10 % once the other job is gone.",
};
