/* opening.c - ST235: archives or databases are opened for every sample
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

/* Without the time for opening: all of it, or at worst half. */
static void predict(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double waits = f->batch_mean - f->batch_cpu_mean, opening = f->opening - f->opening_cpu;
    struct dr_plan then = c->now;
    if (!c->trace || !dr_above(f->batch_cpu_mean, 0)) {
        dr_no_promise(c, out);
        return;
    }
    for (int part = 0; part < 2; part++) {
        const double share = part ? 1 : 0.5;
        then.cpu_scale = fmax(1 - share * f->opening_cpu / f->batch_cpu_mean, 0);
        then.wall_scale = waits > 0 ? fmax(1 - share * fmin(opening / waits, 1), 0) : 1;
        const struct dr_range gain = dr_gain(c->trace, &c->now, &then, c->ceiling);
        if (!part)
            out->gain.low = gain.low;
        else
            out->gain = (struct dr_range){fmin(out->gain.low, gain.mid), gain.mid, gain.high};
    }
    out->plan.cpu_scale = then.cpu_scale;
    out->plan.wall_scale = then.wall_scale;
    DR_SAY(out->basis, "simulated without the time for opening");
}

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_late(c) || f->loader.native || !(f->openings_per_sample >= DR_OPENS) ||
        !(f->opening >= DR_STAGE_WAITS * f->batch_mean))
        return false;
    struct dr_text opening, batch, each;
    out->weight = f->stall_share * f->opening / f->batch_mean;
    out->order = DR_ORDER_OPENING;
    DR_SAY(out->sentence,
           "opening archives or databases takes %s of the %s of a batch: %s of them are opened for each "
           "sample",
           dr_seconds_text(&opening, f->opening), dr_seconds_text(&batch, f->batch_mean),
           dr_plain_text(&each, f->openings_per_sample));
    DR_SAY(out->advice,
           "open it once in each worker: store only the path in __init__, and open it in the first "
           "__getitem__");
    dr_say_stoker(c, out, "stoker.open reads zip, tar, HDF5 and LMDB with one handle for all threads",
                  "stoker.open reads zip, tar, HDF5 and LMDB with one handle for all threads");
    predict(c, out);
    return true;
}

const struct dr_rule dr_rule_opening = {
    .code = "ST235",
    .name = "opened-per-sample",
    .title = "Archives or databases are opened for every sample",
    .needs = "step.stall,batch.opening",
    .check = check,
    .symptoms = "zipfile.ZipFile, tarfile, h5py.File or sqlite3.connect is called for each sample and "
                "takes more than a third of the time of a batch.",
    .why = "Opening a zip file reads its directory of all members, a tar file is read from its "
           "beginning, and HDF5 and SQLite check the whole file header: work for one sample that "
           "would do for all.",
    .fix_torch = "def __getitem__(self, i):\n"
                 "    if self.archive is None:            # once per worker\n"
                 "        self.archive = zipfile.ZipFile(self.path)\n"
                 "    return decode(self.archive.read(self.names[i]))",
    .fix_stoker = "stoker.open(\"train.zip\")",
    .how_to_check = "In the next report, openings per sample are close to 0.",
};
