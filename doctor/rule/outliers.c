/* outliers.c - ST306: occasional steps take far longer, and not because of the loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!(f->outlier_share >= DR_OUTLIERS) || dr_held_off_cpu(c))
        return false;
    const double save = dr_known(f->outlier_save) ? f->outlier_save : 0,
                 gc = dr_known(f->outlier_gc) ? f->outlier_gc : 0,
                 eval = dr_known(f->outlier_eval) ? f->outlier_eval : 0;
    const double most = fmax(save, fmax(gc, eval));
    const char *what = most < DR_OUTLIER_CAUSE ? "something outside the loader"
                       : most == save ? "torch.save"
                       : most == gc   ? "the garbage collector"
                                      : "evaluation";
    /* work of most steps has rules of its own */
    if (most >= DR_OUTLIER_CAUSE &&
        dr_is_constant(most == save ? f->save_steps : most == gc ? f->gc_steps : f->eval_steps))
        return false;
    char period[48] = "";
    if (dr_known(f->outlier_period))
        DR_SAY(period, ", about every %.0f steps", f->outlier_period);
    out->weight = fmin(f->outlier_share, 0.95);
    out->order = DR_ORDER_OWN;
    out->cost = true;
    DR_SAY(out->sentence,
           "%.0f %% of the time is spent in a few steps that take far longer than the others%s: %s",
           f->outlier_share * 100, period, what);
    DR_SAY(out->advice, "%s",
           most < DR_OUTLIER_CAUSE ? "find out what the loop does in those steps (logging, plots, "
                                     "uploads), and do it less often, or in a thread or process"
           : most == save
               ? "save less often, or in the background: torch.distributed.checkpoint.async_save, "
                 "or copy to CPU and save in a thread"
           : most == gc
               ? "call gc.freeze() and gc.disable() before training, and gc.collect() after each epoch"
               : "evaluate less often, on fewer batches, or in a separate process");
    dr_gain_by_share(out, out->weight, NAN, "measured: the time beyond that of ordinary steps");
    return true;
}

const struct dr_rule dr_rule_outliers = {
    .code = "ST306",
    .name = "outlier-steps",
    .title = "Checkpoints, evaluation, logging or garbage collection interrupt the training",
    .needs = "step.outliers",
    .check = check,
    .symptoms = "Most steps take about the same time; a few, often at regular intervals, take many "
                "times as long, and the time is not spent in next().",
    .why = "Training stops while torch.save writes; a full garbage collection visits all Python "
           "objects; evaluation and plotting run in the training loop.",
    .fix_torch = "torch.distributed.checkpoint.async_save(...), or save from a thread; gc.freeze(); "
                 "log every N steps.",
    .fix_stoker = "The loader's state_dict() is small (64 bytes for the engine): saving it costs "
                  "nothing.",
    .how_to_check = "report.html marks the long steps with their cause; their share falls.",
};
