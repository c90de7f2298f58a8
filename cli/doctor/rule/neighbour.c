/* neighbour.c - ST223: others on this machine use the CPUs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

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
    DR_SAY(out->sentence,
           "other programs use %.1f CPUs; of %.3g CPUs this run gets %.1f, and its workers wait "
           "%.0f %% of the time for one",
           f->cpus_busy_others, cpus, f->cpus_used, queue * 100);
    DR_SAY(out->advice,
           "give the run CPUs of its own (taskset, a cgroup, another machine), or stop what else runs");
    dr_say_stoker(c, out, "stoker.DataLoader needs less CPU time for the same batches",
                  "the same: the CPUs are somebody else's");
    if (c->trace) { /* with all CPUs that it may use, waits for them taken out */
        struct dr_plan then = c->now;
        then.cpus = cpus;
        struct dr_outcome outcome;
        dr_simulate(&outcome, c->trace, &then);
        const double most = fmax(1, c->ceiling);
        out->gain = (struct dr_range){fmin(fmax(1, f->step / outcome.step.high), most),
                                      fmin(fmax(1, f->step / outcome.step.mid), most),
                                      fmin(fmax(1, f->step / outcome.step.low), most)};
        DR_SAY(out->basis, "simulated with %.3g CPUs to itself", cpus);
        if (dr_below(out->gain.mid, DR_GAIN_WORTH))
            return false;
        if (!dr_fixes(c, out->gain))
            out->order = DR_ORDER_LATER;
    } else
        DR_SAY(out->basis, "too little was measured to simulate");
    return true;
}

const struct dr_rule dr_rule_neighbour = {
    .code = "ST223",
    .name = "noisy-neighbour",
    .title = "Other programs on this machine use the CPUs",
    .needs = "step.stall,cpu.busy,run_queue",
    .check = check,
    .symptoms =
        "Workers queue for CPUs although the run does not use all that it may; other processes do.",
    .why = "CPUs are shared by whoever wants to run. Another job on them slows the workers and "
           "delays the training thread, which then launches kernels later.",
    .fix_torch = "Another machine, or CPUs apart: taskset -c 0-15 python train.py, docker "
                 "--cpuset-cpus, and the other job likewise.",
    .fix_stoker = "The same.",
    .how_to_check = "`top` or the report's \"used by others\"; waits for a CPU fall below 10 % "
                    "when the other job is gone.",
};
