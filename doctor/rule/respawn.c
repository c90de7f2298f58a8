/* respawn.c - ST214: workers are restarted for every epoch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_has_processes(c) || f->loader.persistent || !dr_above(f->epoch_seconds, 0))
        return false;
    const double first = dr_known(f->batch_mean) ? f->batch_mean : 0;
    /* Starting a process returns before it has imported, unpickled and opened everything: the first
     * batch shows it. */
    const double lost = fmax(f->respawn, f->epoch_start - first);
    const double share = lost / f->epoch_seconds;
    if (!(share >= DR_EPOCH_MATTERS))
        return false;
    struct dr_text start, epoch;
    out->weight = fmin(share, 0.95);
    out->order = DR_ORDER_OWN; /* the start of an epoch is not part of the waits of its steps */
    DR_SAY(out->sentence, "each epoch of %s begins with %s in which %u worker%s restarted (%s)",
           dr_seconds_text(&epoch, f->epoch_seconds), dr_seconds_text(&start, lost), f->loader.workers,
           f->loader.workers == 1 ? " is" : "s are",
           f->loader.start_method[0] ? f->loader.start_method : "fork");
    DR_SAY(out->advice, "persistent_workers=True");
    dr_say_stoker(
        c, out, "the threads of Stoker's engine stay alive: an epoch starts in less than a millisecond",
        "persistent_workers=True");
    dr_gain_by_share(out, out->weight, NAN, "measured: the seconds lost in each epoch");
    out->plan = c->now;
    out->plan.persistent = true;
    return true;
}

const struct dr_rule dr_rule_respawn = {
    .code = "ST214",
    .name = "respawn",
    .title = "Workers are restarted for every epoch",
    .needs = "epochs.start",
    .check = check,
    .symptoms = "The first batch of every epoch is late; between epochs, worker processes exit and new "
                "ones start.",
    .why = "Without persistent_workers, workers live for one epoch. Starting one takes milliseconds "
           "with fork, and seconds with spawn or forkserver, which import torch and unpickle the data "
           "set each time.",
    .fix_torch = "DataLoader(dataset, num_workers=N, persistent_workers=True)",
    .fix_stoker = "stoker.DataLoader(dataset)   # the engine's threads stay; Python workers need "
                  "persistent_workers=True",
    .how_to_check = "In later epochs, the time from iter() to the first batch falls to that of one "
                    "batch.",
};
