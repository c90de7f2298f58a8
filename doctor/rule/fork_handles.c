/* fork_handles.c - ST221: workers were forked while the dataset had files open
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include <string.h>

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const char *how = f->loader.start_method;
    if (!dr_has_processes(c) || !f->loader.handles[0] || (how[0] && strcmp(how, "fork") != 0))
        return false;
    out->blocks = true;
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "the dataset holds %.200s, and %u worker%s forked with it: its file position and the state "
           "of its library are shared",
           f->loader.handles, f->loader.workers, f->loader.workers == 1 ? " was" : "s were");
    DR_SAY(out->advice,
           "open it in the worker: store only the path in __init__, and open it in the first "
           "__getitem__ (or in worker_init_fn)");
    dr_say_stoker(c, out, "stoker.open reads HDF5, LMDB and zip itself, with one handle for all threads",
                  "open it in the worker; stoker.open reads HDF5, LMDB and zip itself");
    DR_SAY(out->basis, "prevents wrong data and crashes");
    return true;
}

const struct dr_rule dr_rule_fork_handles = {
    .code = "ST221",
    .name = "fork-handles",
    .title = "Workers were forked while the dataset had files open",
    .needs = "dataset.objects",
    .check = check,
    .symptoms = "The dataset holds an h5py, LMDB, zip, SQLite or plain file object that was opened "
                "before the workers started; occasionally wrong samples, \"can't decompress\", or a "
                "crash in a worker.",
    .why = "fork copies the file descriptor, but parent and children share one file position: workers "
           "that seek and read at the same time read each other's bytes. LMDB and HDF5 forbid using a "
           "handle across fork altogether.",
    .fix_torch = "def __getitem__(self, i):\n"
                 "    if self.file is None:            # once per worker\n"
                 "        self.file = h5py.File(self.path, \"r\")\n"
                 "    return self.file[\"images\"][i]",
    .fix_stoker = "stoker.open(\"train.h5\", ...)   # no Python handle, no fork",
    .how_to_check = "The report no longer lists open handles, and every run returns the same samples.",
};
