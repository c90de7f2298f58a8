/* uneven.c - ST232: an iterable dataset ends in some workers long before it ends in others
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_late(c) || !dr_has_processes(c) || f->loader.workers < 2 ||
        !(f->workers_at_work < DR_UNEVEN) || !dr_above(f->workers_at_work, 0))
        return false;
    struct dr_text at_work;
    out->weight = f->stall_share;
    out->order = DR_ORDER_UNEVEN;
    DR_SAY(out->sentence,
           "of %u workers only %s make batches, averaged over the epoch: the dataset has ended in the "
           "others, whose shards are smaller or faster",
           f->loader.workers, dr_plain_text(&at_work, f->workers_at_work * f->loader.workers));
    DR_SAY(out->advice,
           "divide the data by samples, not by files: itertools.islice(samples, worker.id, None, "
           "worker.num_workers), or shards of equal size and a multiple of num_workers");
    dr_say_stoker(c, out, "stoker.open reads shards with all threads: any of them makes the next sample",
                  "stoker.open reads shards with all threads");
    dr_gain_by_share(out, 1 - f->workers_at_work, c->ceiling,
                     "measured: the time in which workers had nothing left");
    return true;
}

const struct dr_rule dr_rule_uneven = {
    .code = "ST232",
    .name = "uneven-shards",
    .title = "The dataset ends early in some workers",
    .needs = "step.stall,workers.at_work",
    .check = check,
    .symptoms = "The beginning of an epoch is fast, its end slow: fewer and fewer workers make batches.",
    .why = "Each worker iterates over its own part of an IterableDataset. When one part ends, its "
           "worker has nothing to do until the epoch ends, and the others deliver all that is left.",
    .fix_torch = "worker = torch.utils.data.get_worker_info()\n"
                 "yield from itertools.islice(samples, worker.id, None, worker.num_workers)",
    .fix_stoker = "stoker.open(\"shards/*.tar\", shuffle=True)",
    .how_to_check = "In the next report, all workers make batches until the end of the epoch.",
};
