/* gil.c - ST224: threads of the training process wait for the GIL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double others = f->trainer_cpus - f->trainer_on_cpu;
    /* With worker processes, what else runs in the training process of a GPU is not Python: threads of
     * autograd, and of pinning. */
    if (!dr_starved(c) || f->loader.native || (f->has_gpu && f->loader.workers > 0) ||
        !(f->trainer_cpus >= DR_GIL_LEAST) ||
        !(f->trainer_cpus <= DR_GIL_MOST) || !(others >= DR_GIL_OTHERS) ||
        dr_above(f->trainer_run_queue, DR_QUEUE_HIGH))
        return false;
    out->weight = fmin(f->stall_share, others);
    out->order = DR_ORDER_GIL;
    DR_SAY(
        out->sentence,
        "all threads of the training process together use %.2f CPUs, %.2f of them outside the training "
        "thread: they take turns holding the GIL",
        f->trainer_cpus, others);
    DR_SAY(out->advice, "move Python threads (loading, logging, metrics) into processes%s",
           f->loader.workers ? "" : ": num_workers>0 instead of a threaded loader");
    dr_say_stoker(c, out, "stoker.DataLoader's engine does not hold the GIL",
                  "loader.explain() lists the stages that run in Python; those hold the GIL");
    DR_SAY(out->basis, "cannot be simulated: measure it");
    return true;
}

const struct dr_rule dr_rule_gil = {
    .code = "ST224",
    .name = "gil",
    .title = "Threads of the training process wait for Python's GIL",
    .needs = "step.stall,main.on_cpu,on_cpu",
    .check = check,
    .symptoms = "Several threads of the training process are ready to run, but together they use about "
                "one CPU; the training thread neither runs nor queues for a CPU.",
    .why = "Only one thread at a time runs Python code. A thread that loads, logs or computes metrics "
           "in Python holds the GIL for up to 5 ms at a time, while the training thread could launch "
           "kernels.",
    .fix_torch = "Load in worker processes (num_workers > 0); log and compute metrics every N steps, "
                 "or in a separate process.",
    .fix_stoker = "stoker.DataLoader(dataset)   # reading, decoding, augmentation and collation do not "
                  "hold the GIL",
    .how_to_check = "py-spy dump --pid PID shows which thread holds the GIL; the training thread's "
                    "share of a CPU rises.",
};
