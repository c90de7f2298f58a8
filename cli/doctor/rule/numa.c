/* numa.c - ST222: workers run on another NUMA node than the GPU's
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

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
           "the workers run mostly on NUMA node %.0f, the GPU hangs on node %.0f: batches cross "
           "between them",
           l->cpu_node, l->gpu_node);
    DR_SAY(out->advice,
           "numactl --cpunodebind=%.0f --membind=%.0f python ..., or torchrun --numa-binding=node",
           l->gpu_node, l->gpu_node);
    dr_say_stoker(c, out, "the same: Stoker's threads run where the process may run",
                  "numactl as above");
    out->gain = (struct dr_range){1.0, fmin(1.03, fmax(1, c->ceiling)), fmin(1.1, fmax(1, c->ceiling))};
    DR_SAY(out->basis, "usual for this change, not measured here");
    return true;
}

const struct dr_rule dr_rule_numa = {
    .code = "ST222",
    .name = "numa",
    .title = "Workers run on another NUMA node than the GPU's",
    .needs = "step.stall,numa",
    .check = check,
    .symptoms =
        "A machine with several nodes; the GPU's node is not the one whose CPUs run the workers.",
    .why = "Memory belongs to a node. A batch that was written on one and is copied from there to "
           "a GPU on the other crosses the link between the sockets, which others use too.",
    .fix_torch = "torchrun --numa-binding=node ... (torch 2.9 and newer), or numactl "
                 "--cpunodebind=N --membind=N python train.py",
    .fix_stoker = "The same: the loader's threads stay within the CPUs that the process may use.",
    .how_to_check =
        "`stoker doctor` shows nodes and GPU; the next report's nodes agree. Expect a few per cent.",
};
