/* page_cache.c - ST210: the data do not fit into the page cache
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_storage_limits(c) || !(f->refaults >= DR_REFAULTS_MATTER) ||
        dr_above(f->hit_ratio, DR_HITS_GOOD) || dr_below(f->data_bytes, f->limits.memory))
        return false;
    struct dr_text data, memory, again;
    const enum dr_stage stage = dr_storage_stage(c);
    out->weight = f->stall_share * (dr_known(f->stage_share[stage]) ? f->stage_share[stage] : 1);
    out->order = DR_ORDER_CACHE;
    DR_SAY(
        out->sentence,
        "the data (about %s) do not fit into the memory of %s: %s/s are read again that had been in the "
        "page cache",
        dr_bytes_text(&data, f->data_bytes), dr_bytes_text(&memory, f->limits.memory),
        dr_bytes_text(&again, f->refaults * 4096));
    dr_gain_by_stage(c, out, stage, (struct dr_range){0.5, 0.1, 0});
    const bool cgroup = f->limits.memory < 0.95 * f->limits.memory_machine;
    DR_SAY(out->advice, "%s%s",
           cgroup ? "raise the container's memory limit (the page cache counts against it) so that the "
                    "data fit; or "
                  : "",
           "store fewer bytes, or read shards sequentially instead of files at random");
    dr_say_stoker(
        c, out,
        "stoker pack SRC DST --resize N makes the data smaller, and shards are read in large pieces",
        "stoker pack SRC DST --resize N makes the data smaller");
    return true;
}

const struct dr_rule dr_rule_page_cache = {
    .code = "ST210",
    .name = "page-cache-thrash",
    .title = "The data do not fit into the page cache",
    .needs = "step.stall,memory.refaults,batch.stages",
    .check = check,
    .symptoms = "Every epoch reads from the disk again; the kernel counts pages that it evicted and "
                "had to read again (refaults).",
    .why = "A random order over more data than the cache holds evicts each page before it is used "
           "again. In a container the page cache counts against the memory limit, so free memory on "
           "the host does not help.",
    .fix_torch = "Raise the memory limit (docker --memory, limits.memory), make the data smaller than "
                 "it, or read shards sequentially and shuffle in a buffer.",
    .fix_stoker = "stoker pack SRC DST --resize 512 --quality 90",
    .how_to_check = "Refaults are near 0 from the second epoch on, and the hit ratio is above 90 %.",
};
