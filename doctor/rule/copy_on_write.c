/* copy_on_write.c - ST219: workers' memory grows as they touch a large dataset of Python objects
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    const double least = dr_known(f->loader.objects) ? DR_GROWTH : DR_GROWTH_UNKNOWN;
    if (!dr_has_processes(c) || !(f->worker_private_growth >= least) ||
        dr_below(f->loader.objects, DR_OBJECTS_MANY))
        return false;
    struct dr_text growth, free_, left;
    out->blocks = true;
    out->order = DR_ORDER_OWN;
    DR_SAY(out->sentence,
           "the private memory of the workers grows by %s/s; the free memory of %s lasts %s",
           dr_bytes_text(&growth, f->worker_private_growth),
           dr_bytes_text(&free_, f->memory_available_least),
           dr_seconds_text(&left, f->memory_available_least / f->worker_private_growth));
    if (dr_known(f->loader.objects))
        DR_SAY(out->advice,
               "the dataset holds about %.0f Python objects: store them in one NumPy array (or in "
               "Arrow, or as one joined string with offsets)",
               f->loader.objects);
    else
        DR_SAY(out->advice,
               "store the lists and dicts of the dataset in NumPy arrays (or Arrow), and look for a "
               "cache that grows in __getitem__");
    dr_say_stoker(
        c, out, "stoker.datasets and stoker.open keep one index outside Python for all threads",
        "stoker.datasets and stoker.open keep their index outside Python");
    DR_SAY(out->basis, "prevents running out of memory");
    return true;
}

const struct dr_rule dr_rule_copy_on_write = {
    .code = "ST219",
    .name = "copy-on-write",
    .title = "The workers' memory grows with every sample",
    .needs = "private",
    .check = check,
    .symptoms = "The private memory of each worker grows steadily, until the machine swaps or a worker "
                "is killed.",
    .why = "Forked workers share the pages of their parent until they write to them. Reading a Python "
           "object is a write: its reference count changes, and the kernel copies the page. In time, "
           "every worker has its own copy of the whole list.",
    .fix_torch = "self.paths = numpy.array(paths)          # fixed width, no Python objects\n"
                 "For long strings use one byte array with offsets; the same applies to lists of dicts.",
    .fix_stoker = "stoker.datasets.ImageFolder(...)   # or stoker.open(...): the index does not "
                  "consist of Python objects",
    .how_to_check = "The private memory of the workers stays flat in the next report.",
};
