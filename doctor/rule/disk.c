/* disk.c - ST207: workers wait for the disk to deliver bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_storage_limits(c))
        return false;
    struct dr_text read, rate, await;
    const enum dr_stage stage = dr_storage_stage(c);
    const double share = f->stage_share[stage];
    out->weight = f->stall_share * (dr_known(share) ? share : 1);
    out->order = DR_ORDER_DISK;
    DR_SAY(out->sentence,
           "%.0f %% of the time of a batch (%s) is spent waiting for reads: %s/s from %.60s, %s per "
           "request, disk %.0f %% busy",
           dr_known(share) ? share * 100 : f->worker_disk * 100, dr_seconds_text(&read, f->stage[stage]),
           dr_bytes_text(&rate, dr_known(f->read_storage) ? f->read_storage : f->disk_read),
           f->limits.disk_name[0] ? f->limits.disk_name : "the disk",
           dr_seconds_text(&await, f->disk_await), dr_known(f->disk_busy) ? f->disk_busy * 100 : 0.0);
    const bool fits = f->data_bytes < f->memory_available_least;
    const bool room = !(f->disk_busy >= DR_DISK_IS_BUSY);
    const struct dr_plan plan = dr_plan_best(c, dr_most_workers(c));
    char settings[192];
    dr_settings_text(settings, sizeof settings, c, &plan);
    if (room && plan.workers > f->loader.workers) { /* the device could serve more requests at once */
        dr_gain_by_plan(c, out, &plan);
        DR_SAY(out->advice,
               "more reads at a time, which the disk can handle: %s; better: move the data to a local "
               "SSD%s",
               settings, fits ? ", or read them into memory once before training" : "");
    } else {
        dr_gain_by_stage(c, out, stage,
                         fits ? (struct dr_range){0.5, 0.05, 0} : (struct dr_range){0.75, 0.5, 0});
        DR_SAY(out->advice, "%s",
               fits ? "the data fit into memory: read all files once before training (cat FILES > "
                      "/dev/null), or use a faster disk"
                    : "store fewer bytes (smaller images, a more compact format), use a faster or a "
                      "second disk, or make a local copy");
    }
    dr_say_stoker(
        c, out, "stoker pack SRC DST --resize N writes fewer bytes, in large sequential files",
        "stoker pack SRC DST --resize N writes fewer bytes; the engine reads ahead within max_memory");
    return true;
}

const struct dr_rule dr_rule_disk = {
    .code = "ST207",
    .name = "slow-disk",
    .title = "Workers wait for the disk",
    .needs = "step.stall,batch.stages,read.storage",
    .check = check,
    .symptoms = "Workers are blocked in reads; few bytes come from the page cache; the disk is almost "
                "always busy, or each request takes long.",
    .why = "A disk delivers a certain number of bytes per second, no matter how many workers ask. Once "
           "it is the limit, more workers only make the queue longer.",
    .fix_torch = "Store fewer bytes (resize once, recompress), copy the data to a local SSD, or use a "
                 "machine with enough memory for them: then the page cache serves the later epochs.",
    .fix_stoker = "stoker pack SRC DST --resize 512 --quality 90\n"
                  "stoker.open(\"DST/*.tar\", fields=(\"jpg\", \"cls\"))",
    .how_to_check = "`stoker bench DATA` measures what the disk delivers; compare it with bytes per "
                    "sample times samples per second.",
};
