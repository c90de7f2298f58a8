/* with_stoker.c - the run with Stoker's loader, from samples that were made with it at its end
 *
 * What was measured is the work of a sample. How many threads there are, that they share a batch, and
 * what the training process needs meanwhile is the simulator's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/facts.h"
#include "doctor/model/simulate.h"

#include <string.h>

enum { MOST_READY = 8 }; /* batches that the engine keeps ready if nobody says how many */
/* What a sample costs beside training differs from what it costs alone, at torch's loader and at ours:
 * caches, clocks. The ratio is taken to be within this share, and so is a step. */
static const double DIFFERS = 0.05;

/* Whether batches are made in the training process by one thread, which OpenMP's threads help: its own
 * CPU time is then no measure of the work. */
static bool is_helped(const struct dr_facts *facts)
{
    return !facts->loader.workers && dr_above(facts->helpers_cpu, 0);
}

/* The part of a batch's CPU time that is left, where a sample needs `share` of torch's. */
static double cpu_left(const struct dr_facts *facts, double share)
{
    const double sample = share * facts->tried.torch_cpu;
    const double batch = sample * facts->loader.batch_size / facts->batch_cpu_mean;
    return is_helped(facts) && isfinite(batch) ? batch : share;
}

static struct dr_plan with_stoker(const struct dr_facts *facts, const struct dr_plan *now, double share)
{
    const struct dr_tried *tried = &facts->tried;
    struct dr_plan plan = *now;
    if (!strcmp(tried->plan, "engine")) {
        plan.engine = plan.shared_samples = plan.persistent = plan.in_order = true;
        plan.workers = tried->workers >= 1 ? (uint32_t)fmin(tried->workers, 4096) : 1;
        plan.prefetch = now->workers && now->prefetch != 2 ? now->prefetch : MOST_READY;
        plan.cpu_scale = cpu_left(facts, share);
    } else if (!strcmp(tried->plan, "rows")) {
        plan.engine = true;
        plan.workers = 0;
        plan.cpu_scale = cpu_left(facts, share);
    } else {
        plan.cpu_scale = share;
    }
    return plan;
}

struct dr_range dr_gain_with_stoker(const struct dr_facts *facts, const struct dr_trace *trace,
                                    const struct dr_plan *now, double ceiling)
{
    const struct dr_tried *tried = &facts->tried;
    struct dr_range gain = {NAN, NAN, NAN};
    if (!trace || !tried->plan || !dr_known(tried->share))
        return gain;
    const struct dr_plan middle = with_stoker(facts, now, tried->share),
                         worst = with_stoker(facts, now, tried->share_high * (1 + DIFFERS)),
                         best = with_stoker(facts, now, tried->share_low * (1 - DIFFERS));
    const struct dr_range low = dr_gain(trace, now, &worst, ceiling),
                          high = dr_gain(trace, now, &best, ceiling);
    gain = dr_gain(trace, now, &middle, ceiling);
    /* The training thread loses more to workers that fill the CPUs than its time in the run queue. */
    const double freed = 1 / (1 - fmin(fmax(trace->step_queued, 0), 0.5));
    gain.low = fmin(low.low, gain.mid * (1 - DIFFERS));
    gain.high = fmax(high.high, gain.mid * (1 + DIFFERS) * freed);
    return gain;
}
