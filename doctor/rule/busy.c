/* busy.c - whether other programs disturb the run, and what it would be without them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/judge.h"

/* Of the CPUs that others use, those that this run might have used. Where its quota leaves some of them
 * to others, these count only as far as the rest has no room for them, or if the run has to queue. */
static double others_here(const struct dr_facts *f)
{
    const double outside = f->limits.cpus_affinity - f->limits.cpus;
    if (!dr_above(outside, 0) || f->worker_run_queue >= DR_QUEUE_HIGH ||
        f->trainer_run_queue >= DR_QUEUE_HIGH)
        return f->cpus_busy_others;
    return f->cpus_busy_others - outside;
}

bool dr_machine_is_busy(const struct dr_facts *f)
{
    return others_here(f) >= DR_NEIGHBOUR_SHARE * f->limits.cpus;
}

double dr_idle_stall(const struct dr_case *c)
{
    if (!c->trace)
        return NAN;
    struct dr_plan alone = c->now;
    alone.cpus = c->facts->limits.cpus;
    struct dr_outcome outcome;
    dr_simulate(&outcome, c->trace, &alone);
    return outcome.wait_share;
}

void dr_say_busy(struct dr_verdict *out, const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    struct dr_text others, machine, stall;
    const double idle = dr_idle_stall(c);
    char then[96] = "what an idle one would show cannot be told";
    if (dr_known(idle))
        DR_SAY(then, "on an idle one, about %s of each step would be waits for data",
               dr_share_text(&stall, idle));
    DR_SAY(out->busy,
           "busy machine: other programs use %s of %s %s CPUs, so these timings are theirs too; %s",
           dr_plain_text(&others, f->cpus_busy_others),
           dr_below(f->limits.cpus_affinity, f->limits.cpus_machine) ? "this run's" : "its",
           dr_plain_text(&machine,
                         dr_known(f->limits.cpus_affinity) ? f->limits.cpus_affinity : f->limits.cpus),
           then);
}
