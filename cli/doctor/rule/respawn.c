/* respawn.c - ST214: workers are started anew for every epoch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_has_processes(c) || f->loader.persistent || !dr_above(f->epoch_seconds, 0))
        return false;
    const double first = dr_known(f->batch_mean) ? f->batch_mean : 0;
    /* Starting a process returns before it has imported, unpickled and opened what it needs: the first batch tells. */
    const double lost = fmax(f->respawn, f->epoch_start - first);
    const double share = lost / f->epoch_seconds;
    if (!(share >= DR_EPOCH_MATTERS))
        return false;
    struct dr_text start, epoch;
    out->weight = fmin(share, 0.95);
    out->order = DR_ORDER_OWN; /* the start of an epoch is no part of the steps' waits */
    DR_SAY(out->sentence, "each epoch of %s begins with %s in which %u workers are started (%s) anew",
           dr_seconds_text(&epoch, f->epoch_seconds), dr_seconds_text(&start, lost), f->loader.workers,
           f->loader.start_method[0] ? f->loader.start_method : "fork");
    DR_SAY(out->advice, "persistent_workers=True");
    dr_say_stoker(c, out,
                  "Stoker's engine uses threads that stay: an epoch starts in less than a millisecond",
                  "persistent_workers=True");
    dr_gain_by_share(out, out->weight, NAN, "seconds lost in each epoch, measured");
    out->plan = c->now;
    out->plan.persistent = true;
    return true;
}

const struct dr_rule dr_rule_respawn = {
    .code = "ST214",
    .name = "respawn",
    .title = "Workers are started anew for every epoch",
    .needs = "epochs",
    .check = check,
    .symptoms = "The first batch of every epoch comes late; between epochs worker processes end "
                "and new ones start.",
    .why = "Without persistent_workers, the iterator's workers live for an epoch. Starting one "
           "takes milliseconds by fork, and seconds by spawn or forkserver, which import torch "
           "anew and unpickle the data set.",
    .fix_torch = "DataLoader(dataset, num_workers=N, persistent_workers=True)",
    .fix_stoker = "stoker.DataLoader(dataset)   # the engine's threads stay; for Python workers "
                  "persistent_workers=True",
    .how_to_check =
        "The time from iter() to the first batch of later epochs falls to that of one batch.",
};
