/* cannot_tell.c - ST901: not enough was measured to name a cause
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

#include "base/text.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_cannot_tell(f))
        return false;
    const bool some = dr_above(f->confidence_steps, 0);
    out->order = DR_ORDER_OWN;
    if (*f->loader.failure)
        DR_SAY(out->sentence, "the loader failed after %.0f step%s, too few for a verdict: %.360s",
               some ? f->confidence_steps : 0.0, dr_s(some ? f->confidence_steps : 0),
               f->loader.failure);
    else if (some)
        DR_SAY(out->sentence, "only %.0f step%s measured after the warm-up; at least %d are needed",
               f->confidence_steps, f->confidence_steps == 1 ? " was" : "s were", DR_STEPS_LEAST);
    else
        DR_SAY(out->sentence,
               "no step of a training loop was seen");
    DR_SAY(out->advice, "%s",
           *f->loader.failure ? "fix that error first"
           : some ? "run longer: 100 steps or more"
                  : "run a program that iterates over a DataLoader: `stoker run -- python ...`, without "
                    "python -I, -S or -E, and without STOKER_OFF");
    DR_SAY(out->basis, "nothing was measured");
    return true;
}

const struct dr_rule dr_rule_cannot_tell = {
    .code = "ST901",
    .name = "cannot-tell",
    .title = "Not enough was measured to name a cause",
    .needs = "",
    .check = check,
    .symptoms = "Too few steps, no loader, or no signals that could distinguish one cause from another.",
    .why = "A cause is named only if the numbers show it. A Python that does not load the watch "
           "(python -I), a program in another language, a run of a few steps, or a container without "
           "/proc counters provides too little.",
    .fix_torch = "Run longer, and provide the signals that the report lists under COULD NOT SEE; each "
                 "comes with its remedy.",
    .fix_stoker = "The same. Stoker's loader reports its stages itself.",
    .how_to_check = "`stoker doctor` lists the signals that this machine can provide.",
};
