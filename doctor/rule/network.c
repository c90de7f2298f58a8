/* network.c - ST209: workers wait for the network
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include <string.h>

static bool network_file_system(const char *name)
{
    static const char *const kinds[] = {"nfs",  "cifs",   "smb",  "fuse",   "9p",
                                        "ceph", "lustre", "gpfs", "beegfs", "glusterfs"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strncmp(name, kinds[i], strlen(kinds[i])))
            return true;
    return false;
}

/* "nfs4 on server:/export, whose READ requests take 12 ms" */
static void name_place(char *out, size_t size, const struct dr_facts *f)
{
    struct dr_text time;
    const bool asked = f->nfs_reads > 0 && dr_known(f->nfs_time);
    (void)snprintf(out, size, "%.30s%s%.70s%s%s", f->limits.file_system,
                   f->limits.disk_name[0] ? " on " : "", f->limits.disk_name,
                   asked ? ", whose READ requests take " : "",
                   asked ? dr_seconds_text(&time, f->nfs_time) : "");
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_late(c))
        return false;
    enum dr_stage stage = DR_STAGE_NETWORK;
    const bool sockets = f->stage_share[DR_STAGE_NETWORK] >= DR_STAGE_WAITS;
    const bool files = !sockets && network_file_system(f->limits.file_system) &&
                       f->stage_share[DR_STAGE_READ] >= DR_STAGE_WAITS &&
                       !dr_below(dr_stage_waits(c, DR_STAGE_READ), DR_WAITING);
    const bool unseen = !sockets && !files && f->stage_share[DR_STAGE_OTHER] >= DR_STAGE_WAITS &&
                        dr_stage_waits(c, DR_STAGE_OTHER) >= DR_WAITING &&
                        f->worker_socket >= DR_SOCKET_WAITS;
    if (!sockets && !files && !unseen)
        return false;
    stage = sockets ? DR_STAGE_NETWORK : files ? DR_STAGE_READ : DR_STAGE_OTHER;
    const struct dr_plan plan = dr_plan_best(c, dr_most_workers(c));
    if (plan.workers != f->loader.workers || plan.prefetch != f->loader.prefetch) {
        dr_gain_by_plan(c, out, &plan);
        if (dr_known(out->gain.mid)) { /* a server that has a queue cannot be told from a distant one */
            out->gain.low = fmin(out->gain.low, 1);
            DR_SAY(out->basis,
                   "simulated from %u batches, if answers to more requests at once take no longer",
                   c->trace->batches);
        }
    } else
        dr_gain_by_stage(c, out, stage, (struct dr_range){0.75, 0.5, 0});
    struct dr_text wait, sample;
    char settings[192], place[160] = "";
    dr_settings_text(settings, sizeof settings, c, &plan);
    if (files)
        name_place(place, sizeof place, f);
    out->weight = f->stall_share * f->stage_share[stage];
    out->order = DR_ORDER_NETWORK;
    DR_SAY(out->sentence,
           "%.0f %% of the time of a batch (%s, %s per sample) is spent waiting for %s%.150s",
           f->stage_share[stage] * 100, dr_seconds_text(&wait, f->stage[stage]),
           dr_seconds_text(&sample, f->stage[stage] / f->loader.batch_size),
           files ? "the file system " : "the network", place);
    DR_SAY(
        out->advice,
        "keep more requests in flight (waiting needs no CPU): %s; or make a local copy, or fetch larger "
        "objects with fewer requests",
        settings);
    dr_say_stoker(c, out,
                  "stoker.open(\"https://...\") or s3:// reads many samples at once in one process, "
                  "with an optional cache (cache_dir)",
                  "stoker.open(..., cache_dir=DIR) caches what was read; a larger prefetch_factor keeps "
                  "more requests in flight");
    return true;
}

const struct dr_rule dr_rule_network = {
    .code = "ST209",
    .name = "network-latency",
    .title = "Workers wait for the network",
    .needs = "step.stall,batch.stages",
    .check = check,
    .symptoms = "Workers neither run nor queue for a CPU; most of the time of a batch is spent waiting "
                "for sockets or a network file system; the network link itself is nearly idle.",
    .why = "A request takes a round trip, whatever its size, and a worker has one request in flight at "
           "a time. Throughput is requests in flight divided by latency, so concurrency is the cure, "
           "not bandwidth.",
    .fix_torch = "More workers than CPUs (they wait), prefetch_factor of 4 or more, requests for many "
                 "samples at once, or a copy on a local disk before training.",
    .fix_stoker = "stoker.open(\"https://host/train-{000..127}.tar\", fields=(\"jpg\", \"cls\"))\n"
                  "reads ahead with many requests in flight, and keeps a cache with cache_dir=DIR.",
    .how_to_check = "The wait per sample stays, but the stall disappears: readiness rises with the "
                    "number of requests in flight.",
};
