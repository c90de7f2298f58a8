/* seeds.c - ST234: workers draw the same random numbers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_has_processes(c) || !(f->workers_random >= 2))
        return false;
    out->blocks = true;
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "%.0f of %u workers draw the same random numbers: each has a copy of the generator at%.150s, "
           "in the same state",
           f->workers_random, f->loader.workers, f->random_at);
    DR_SAY(out->advice, "make the generator in the worker: in worker_init_fn, "
                        "numpy.random.default_rng(torch.initial_seed()); or draw by torch, random or "
                        "numpy.random, which torch seeds in each worker");
    dr_say_stoker(c, out,
                  "the engine's random numbers follow from seed, epoch and sample, whoever makes it",
                  "transforms of the engine draw by seed, epoch and sample, whoever makes it");
    DR_SAY(out->basis, "prevents augmentation that repeats itself");
    return true;
}

const struct dr_rule dr_rule_seeds = {
    .code = "ST234",
    .name = "same-random-numbers",
    .title = "Workers draw the same random numbers",
    .needs = "workers.random",
    .check = check,
    .symptoms = "A dataset, a transform or a module holds a numpy.random.Generator, a RandomState, a "
                "random.Random or a torch.Generator that was made before the workers; it is in the same "
                "state in each of them, and is used there.",
    .why = "Workers are copies of the training process, generators included. torch seeds random, "
           "numpy.random and torch itself in each worker, but it does not know of others. So all "
           "workers augment in the same way, and do so again in every epoch that starts them anew.",
    .fix_torch = "def init(worker):\n"
                 "    data = torch.utils.data.get_worker_info().dataset\n"
                 "    data.rng = numpy.random.default_rng(torch.initial_seed())\n"
                 "DataLoader(dataset, num_workers=N, worker_init_fn=init)",
    .fix_stoker = "stoker.datasets with a transform: numbers follow from (seed, epoch, sample, op)",
    .how_to_check = "Print a random number in the first __getitem__ of each worker: they differ.",
};
