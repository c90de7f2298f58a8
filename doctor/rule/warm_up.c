/* warm_up.c - ST211: only the first epoch is slow
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!(f->first_epoch_stall_share >= DR_WARM_UP) ||
        !(f->later_epochs_stall_share < DR_STALL_MATTERS) ||
        !((f->first_epoch_stall_share - f->later_epochs_stall_share) * f->epoch_seconds >=
          DR_WARM_UP_SECONDS))
        return false;
    out->weight = 0;
    out->order = DR_ORDER_REMARK;
    DR_SAY(out->sentence,
           "only the first epoch waits for data (%.0f %% of its time); later ones do not (%.0f %%), "
           "because the files are in the page cache by then",
           f->first_epoch_stall_share * 100, f->later_epochs_stall_share * 100);
    DR_SAY(out->advice, "nothing to do: later epochs do not wait");
    out->gain = (struct dr_range){1, 1, 1};
    DR_SAY(out->basis, "measured in later epochs");
    return true;
}

const struct dr_rule dr_rule_warm_up = {
    .code = "ST211",
    .name = "warm-up-only",
    .title = "Only the first epoch waits for data",
    .needs = "epochs.later",
    .check = check,
    .symptoms = "The first epoch stalls; later ones do not.",
    .why = "The first epoch reads from the disk and fills the page cache; later ones read from memory.",
    .fix_torch = "Nothing to fix. If you train for one epoch only, read the files once beforehand, or "
                 "look at ST207 and ST208.",
    .fix_stoker = "Nothing to fix.",
    .how_to_check = "Run for two epochs or more, and compare the stall of the first with that of the "
                    "others.",
};
