/* tiny.c - ST220: the work is too small for worker processes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

#include <string.h>

/* The times were measured on cold caches: the processes wake each other for every batch. */
static void say_lower_bound(struct dr_finding *out)
{
    const size_t used = strlen(out->basis);
    if (dr_known(out->gain.mid))
        (void)snprintf(out->basis + used, sizeof out->basis - used,
                       "; a lower bound, since caches are warmer without workers");
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
    struct dr_plan plan = c->now;
    plan.workers = 0;
    if (dr_starved(c)) {
        dr_gain_by_plan(c, out, &plan);
        say_lower_bound(out);
        if (c->trace ? !dr_pays(out->gain) && !start_costs_more
                     : !(f->wait > f->batch_mean))
            return false;
    } else if (!start_costs_more)
        return false;
    if (start_costs_more) {
        const struct dr_range by_plan = out->gain;
        dr_gain_by_share(out, fmin(start_share, 0.95), NAN,
                         "measured: the start of the workers in each epoch");
        if (dr_above(by_plan.mid, out->gain.mid))
            out->gain = by_plan;
        out->plan = plan;
    }
    struct dr_text batch, wait;
    out->weight = start_costs_more
                      ? fmax(dr_known(f->stall_share) ? f->stall_share : 0, fmin(start_share, 0.95))
                      : f->stall_share;
    out->order = dr_starved(c) ? DR_ORDER_TINY : DR_ORDER_OWN;
    DR_SAY(out->sentence, "making a batch takes %s, but getting it from one of %u workers takes %s",
           dr_seconds_text(&batch, f->batch_mean), f->loader.workers,
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
