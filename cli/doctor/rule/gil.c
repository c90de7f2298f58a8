/* gil.c - ST224: threads of the training process wait for the interpreter
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double others = f->trainer_cpus - f->trainer_on_cpu;
    if (!dr_starved(c) || f->loader.native || !(f->trainer_cpus >= DR_GIL_LEAST) ||
        !(f->trainer_cpus <= DR_GIL_MOST) || !(others >= DR_GIL_OTHERS) ||
        dr_above(f->trainer_run_queue, DR_QUEUE_HIGH))
        return false;
    out->weight = fmin(f->stall_share, others);
    out->order = DR_ORDER_GIL;
    DR_SAY(out->sentence,
           "all threads of the training process together use %.2f CPUs, %.2f of them other than "
           "the training thread: they take turns at Python's lock",
           f->trainer_cpus, others);
    DR_SAY(out->advice, "move Python threads (loading, logging, metrics) into processes: "
                        "num_workers>0 instead of a threaded loader");
    dr_say_stoker(c, out, "stoker.DataLoader's engine works without Python's lock",
                  "loader.explain() says which stages run in Python; those hold the lock");
    DR_SAY(out->basis, "cannot be simulated: measure it");
    return true;
}

const struct dr_rule dr_rule_gil = {
    .code = "ST224",
    .name = "gil",
    .title = "Threads of the training process wait for Python's lock",
    .needs = "step.stall,main.on_cpu,on_cpu",
    .check = check,
    .symptoms = "Several threads of the training process want to run, but together they use about "
                "one CPU; the training thread neither runs nor queues for a CPU.",
    .why = "One thread at a time runs Python code. A thread that loads, logs or computes metrics "
           "in Python holds the lock, for up to 5 ms at a time, while the training thread could "
           "launch kernels.",
    .fix_torch = "Loading in worker processes (num_workers > 0), logging and metrics every N steps "
                 "or in a process of their own.",
    .fix_stoker = "stoker.DataLoader(dataset)   # read, decode, augment and collate hold no lock",
    .how_to_check =
        "py-spy dump --pid PID shows who holds the lock; the training thread's share of the CPU rises.",
};
