/* duplicates.c - ST233: several workers make the same samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_has_processes(c) || !(f->workers_alike >= 2))
        return false;
    out->blocks = true;
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "%.0f of %u workers begin with the same samples: the dataset does not divide its data among "
           "them, so that each sample is trained on several times per epoch",
           f->workers_alike, f->loader.workers);
    DR_SAY(out->advice, "in __iter__: worker = torch.utils.data.get_worker_info(), and "
                        "itertools.islice(samples, worker.id, None, worker.num_workers)");
    dr_say_stoker(c, out, "stoker.open(\"shards/*.tar\") divides shards among its threads and ranks",
                  "stoker.open(\"shards/*.tar\") divides shards among its threads and ranks");
    DR_SAY(out->basis, "each epoch becomes that much shorter; its steps do not become faster");
    return true;
}

const struct dr_rule dr_rule_duplicates = {
    .code = "ST233",
    .name = "duplicate-samples",
    .title = "Several workers make the same samples",
    .needs = "workers.samples",
    .check = check,
    .symptoms = "An epoch of an IterableDataset has num_workers times as many samples as the data; the "
                "first samples of two workers are equal.",
    .why = "Each worker has a copy of an IterableDataset and iterates over all of it, unless __iter__ "
           "asks which worker it is. A DistributedSampler does not apply to it either.",
    .fix_torch = "def __iter__(self):\n"
                 "    worker = torch.utils.data.get_worker_info()\n"
                 "    first, step = (worker.id, worker.num_workers) if worker else (0, 1)\n"
                 "    yield from itertools.islice(self.samples(), first, None, step)",
    .fix_stoker = "stoker.open(\"shards/*.tar\", shuffle=True)",
    .how_to_check = "An epoch has as many samples as the dataset, with any number of workers.",
};
