/* swapping.c - ST236: memory is short, and that of the run is swapped out and read back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    /* what was swapped out once and is not needed costs nothing: only what comes back does */
    if (dr_cannot_tell(f) || !(f->swapped >= DR_SWAPPED) || !(f->major_faults >= DR_FAULTS_READ) ||
        dr_below(f->psi_memory, DR_MEMORY_WAITS))
        return false;
    struct dr_text size, room, waits;
    out->weight = dr_known(f->psi_memory) ? fmin(f->psi_memory, 0.95) : f->stall_share;
    out->order = dr_starved(c) ? DR_ORDER_SWAP : DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "memory is short: %s of this run are swapped out, %.0f pages per second are read back, and "
           "some task waits for memory %s of the time (memory: %s)",
           dr_bytes_text(&size, f->swapped), f->major_faults, dr_share_text(&waits, f->psi_memory),
           dr_bytes_text(&room, f->limits.memory));
    DR_SAY(out->advice, "use fewer workers or a smaller prefetch_factor, data that are mapped instead "
                        "of loaded (numpy.memmap), or more memory");
    dr_say_stoker(c, out, "the engine is one process: what it holds exists once, not in each worker",
                  "the engine's max_memory limits what it holds");
    DR_SAY(out->basis, "cannot be simulated: measure it");
    return true;
}

const struct dr_rule dr_rule_swapping = {
    .code = "ST236",
    .name = "swapping",
    .title = "Memory is short: parts of the run are swapped out and read back",
    .needs = "step.stall,swapped",
    .check = check,
    .symptoms = "Processes of the run have memory in swap, and page faults read it back all the time.",
    .why = "When memory is full, the kernel writes pages of processes to the disk and reads them back "
           "when they are used, which takes a thousand times as long as memory does.",
    .fix_torch = "DataLoader(dataset, num_workers=N/2, prefetch_factor=2); numpy.load(path, "
                 "mmap_mode=\"r\")",
    .fix_stoker = "stoker.DataLoader(dataset, max_memory=\"8GiB\")",
    .how_to_check = "In the next report, nothing of the run is swapped out.",
};
