/* collector.c - ST307: the garbage collector runs in most steps
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_cost(c, out, f->gc, f->gc_steps, false))
        return false;
    struct dr_text time, step, steps;
    DR_SAY(out->sentence, "the garbage collector takes %s of a step of %s; it runs in %s of the steps",
           dr_seconds_text(&time, f->gc), dr_seconds_text(&step, f->step),
           dr_share_text(&steps, f->gc_steps));
    DR_SAY(out->advice, "%s",
           "no gc.collect() in the loop; gc.freeze() after the model and the data are built, so "
           "that the "
           "collector does not visit them again");
    return true;
}

const struct dr_rule dr_rule_collector = {
    .code = "ST307",
    .name = "garbage-collection",
    .title = "The garbage collector runs in most steps",
    .needs = "step.costs",
    .check = check,
    .symptoms = "gc.collect() in each step, or so many Python objects that automatic collections "
                "take long.",
    .why = "A full collection visits every Python object of the process, so it takes longer the "
           "larger the "
           "dataset's lists are, and training waits meanwhile. Tensors do not need it: they are freed "
           "when the last reference is gone.",
    .fix_torch = "gc.collect(); gc.freeze()   # before the loop; nothing in it\n"
                 "gc.disable() in the loop and gc.collect() after each epoch, if objects have cycles",
    .fix_stoker = "Stoker's engine creates no Python object per sample.",
    .how_to_check = "In the next report, the time of the collector is below 5 % of the step.",
};
