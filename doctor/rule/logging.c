/* logging.c - ST310: logging takes a large part of each step
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

static bool check(const struct dr_case *c, struct dr_finding *out)
{
    const struct dr_facts *f = c->facts;
    if (!dr_cost(c, out, f->logging, f->logging_steps, true))
        return false;
    struct dr_text time, step, steps;
    DR_SAY(out->sentence, "logging takes %s of a step of %s; %s of the steps log",
           dr_seconds_text(&time, f->logging), dr_seconds_text(&step, f->step),
           dr_share_text(&steps, f->logging_steps));
    DR_SAY(out->advice, "%s",
           "log every N steps; histograms and images rarely; a logging.handlers.QueueHandler, whose "
           "thread "
           "writes");
    return true;
}

const struct dr_rule dr_rule_logging = {
    .code = "ST310",
    .name = "logging",
    .title = "Logging takes a large part of each step",
    .needs = "step.costs",
    .check = check,
    .symptoms = "Handlers of logging, TensorBoard, W&B or MLflow are called in each step, and take "
                "longer than a "
                 "line of text should: histograms, images, a slow disk, a request for each line.",
    .why = "These calls return when the record is written or sent, unless they have a thread for it.",
    .fix_torch = "if step % 50 == 0: writer.add_scalar(...)\n"
                 "logging.handlers.QueueHandler",
    .fix_stoker = "Nothing to change in the loader: it does not log.",
    .how_to_check = "In the next report, the time spent logging is below 5 % of the step.",
};
