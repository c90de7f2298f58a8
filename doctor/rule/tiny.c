/* tiny.c - ST220: the work is too small for worker processes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include "base/text.h"

#include "cli/cli.h"

/* No workers: a batch needs no shared memory, and takes `batch` seconds of CPU time; a step takes
 * `step`. */
static struct dr_plan without_workers(const struct dr_case *c, double batch, double step)
{
    const struct dr_facts *f = c->facts;
    struct dr_plan plan = c->now;
    plan.workers = 0;
    if (!c->trace)
        return plan;
    const double own = f->step - f->wait - c->trace->step_watch;
    const double counted = fmax(own * (1 - c->trace->step_queued), fmin(c->trace->step_cpu, own));
    const double not_shared = 1 - f->shared_cpu / f->batch_cpu_mean;
    const double of_batch = batch / f->batch_cpu_mean;
    const double of_step = fmax(step - c->trace->step_watch, counted - c->trace->step_cpu) / counted;
    plan.cpu_scale = not_shared > 0 ? not_shared : 1;
    if (of_batch > 0 && of_batch < 1)
        plan.cpu_scale *= of_batch;
    if (dr_known(step) && of_step > 0 && of_step < 1)
        plan.step_scale = of_step;
    return plan;
}

/* Seconds that next() takes for a batch that is ready, beyond the CPU time that the simulator knows: a
 * thread of the worker has to wake up and answer. Waits of the training thread for a CPU are not among
 * them. */
static double answer_of(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    double sum = 0, count = 0;
    for (uint32_t k = 0; k < f->step_count; k++)
        if (f->steps[k].flags & DR_NEXT_READY)
            sum += f->steps[k].wait, count++;
    const double known = c->trace->hand_over + c->trace->step_queued * f->step;
    return count > 0 ? fmax(0, sum / count - known) : 0;
}

/* A thread that waits for another process returns to cold caches; alone it never waits. So all batches
 * and steps take no longer than the fastest ones do now: 1 %, or, at best, those that happened to wait
 * least. At worst they take as long as now, and only if that pays there is a finding. The ceiling does
 * not apply: it is that of a loader with workers. */
static bool predict(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const struct dr_plan cold = without_workers(c, NAN, NAN),
                         warm = without_workers(c, f->batch_cpu_fast, f->own_fast),
                         best = without_workers(c, f->batch_cpu_least, f->own_least);
    dr_gain_by_plan(c, out, &warm);
    if (!c->trace)
        return f->wait > f->batch_mean;
    struct dr_plan now = c->now;
    now.persistent = true; /* the start of workers counts elsewhere */
    struct dr_outcome before, slow, then, fast;
    dr_simulate(&before, c->trace, &now);
    dr_simulate(&slow, c->trace, &cold);
    dr_simulate(&then, c->trace, &warm);
    dr_simulate(&fast, c->trace, &best);
    const double step = before.step.mid + answer_of(c);
    out->gain.mid = step / then.step.mid;
    out->gain.low = fmin(step / slow.step.high, out->gain.mid);
    out->gain.high = fmax(step / fast.step.low, out->gain.mid);
    struct number_text batches;
    DR_SAY(out->basis, "simulated from %s batch%s, with the times of the fastest 1 %%",
           with_commas(&batches, c->trace->batches), st_es(c->trace->batches));
    return dr_pays((struct dr_range){step / slow.step.high, step / slow.step.mid, NAN});
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    /* What takes the training thread long to receive is no small work, only badly packed. */
    if (!dr_has_processes(c) || !(f->batch_mean < DR_TINY_BATCH) ||
        dr_above(f->main_cpu_in_next, DR_TINY_BATCH))
        return false;
    const double start_share = f->loader.persistent ? NAN : f->respawn / f->epoch_seconds;
    const bool start_costs_more =
        start_share >= DR_EPOCH_MATTERS && f->loader.batches * f->batch_mean < f->respawn;
    if (dr_starved(c)) {
        if (!predict(c, out) && !start_costs_more)
            return false;
    } else if (!start_costs_more)
        return false;
    if (start_costs_more) {
        const struct dr_range by_plan = out->gain;
        dr_gain_by_share(out, fmin(start_share, 0.95), NAN,
                         "measured: the start of the workers in each epoch");
        if (dr_above(by_plan.mid, out->gain.mid))
            out->gain = by_plan;
        else
            out->plan = without_workers(c, NAN, NAN);
    }
    struct dr_text batch, wait;
    out->weight = start_costs_more
                      ? fmax(dr_known(f->stall_share) ? f->stall_share : 0, fmin(start_share, 0.95))
                      : f->stall_share;
    out->order = dr_starved(c) ? DR_ORDER_TINY : DR_ORDER_OWN;
    DR_SAY(out->sentence, "making a batch takes %s, but getting it from %s takes %s",
           dr_seconds_text(&batch, f->batch_mean),
           f->loader.workers == 1 ? "its worker" : "one of its workers",
           dr_seconds_text(&wait, start_costs_more ? f->respawn : f->wait));
    DR_SAY(out->advice, "num_workers=0, and a larger batch; data this small can stay on the GPU as one "
                        "tensor that you index");
    dr_say_stoker(c, out,
                  "stoker.DataLoader gathers whole batches from a TensorDataset, without workers",
                  "num_workers=0; whole batches are gathered from a TensorDataset");
    return true;
}

const struct dr_rule dr_rule_tiny = {
    .code = "ST220",
    .name = "tiny-data",
    .title = "The work is too small for worker processes",
    .needs = "batch.seconds",
    .check = check,
    .symptoms = "A worker needs less than 2 ms for a batch, but next() takes longer than that; "
                "num_workers=0 is faster.",
    .why = "A batch from a worker is pickled, sent and unpickled, and workers have to be started. For "
           "small tensors in memory that is more work than making the batch.",
    .fix_torch = "DataLoader(dataset, num_workers=0), a larger batch_size, or no loader at all:\n"
                 "data = data.to(device); for index in torch.randperm(len(data), "
                 "device=device).split(batch): step(data[index])",
    .fix_stoker = "stoker.DataLoader(TensorDataset(x, y), batch_size=1024)   # gathers whole batches "
                  "with one index",
    .how_to_check = "Run with num_workers=0: samples per second rise.",
};
