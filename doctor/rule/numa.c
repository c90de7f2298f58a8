/* numa.c - ST222: workers run on a different NUMA node than the GPU
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const struct dr_limits *l = &f->limits;
    if (!dr_starved(c) || !(l->nodes >= 2) || !dr_known(l->gpu_node) || !dr_known(l->cpu_node) ||
        l->gpu_node < 0 || l->gpu_node == l->cpu_node)
        return false;
    out->weight = fmin(f->stall_share, 0.1);
    out->order = DR_ORDER_NUMA;
    DR_SAY(out->sentence,
           "the workers run mostly on NUMA node %.0f, but the GPU is attached to node %.0f: every batch "
           "crosses the link between them",
           l->cpu_node, l->gpu_node);
    DR_SAY(out->advice,
           "numactl --cpunodebind=%.0f --membind=%.0f python ..., or torchrun --numa-binding=node",
           l->gpu_node, l->gpu_node);
    dr_say_stoker(c, out, "the same: Stoker's threads run on the CPUs of the process",
                  "numactl as above");
    out->gain = (struct dr_range){1.0, fmin(1.03, fmax(1, c->ceiling)), fmin(1.1, fmax(1, c->ceiling))};
    DR_SAY(out->basis, "typical for this change, not measured here");
    return true;
}

const struct dr_rule dr_rule_numa = {
    .code = "ST222",
    .name = "numa",
    .title = "Workers run on a different NUMA node than the GPU",
    .needs = "step.stall,numa",
    .check = check,
    .symptoms = "The machine has several NUMA nodes, and the workers run on CPUs of a node other than "
                "the GPU's.",
    .why = "Memory belongs to a node. A batch that was written on one node and is copied to a GPU on "
           "another crosses the link between the sockets, which other traffic uses too.",
    .fix_torch = "torchrun --numa-binding=node ... (torch 2.9 and newer), or numactl --cpunodebind=N "
                 "--membind=N python train.py",
    .fix_stoker = "The same: the threads of the loader stay on the CPUs that the process may use.",
    .how_to_check = "`stoker doctor` shows nodes and GPU; they agree in the next report. Expect a few "
                    "per cent.",
};
