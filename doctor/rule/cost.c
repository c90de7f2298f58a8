/* cost.c - what rules about costs of the training loop share: work of each step besides model and data
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/case.h"

/* What is left where the work is done once in so many steps instead of in each. */
static const double RARELY_STEPS = 50;

bool dr_is_constant(double steps) { return steps >= DR_COST_STEPS; }

/* The steps of a GPU that is always busy hide what the host does meanwhile. */
static double not_hidden(const struct dr_facts *f, double seconds)
{
    const double gap = f->has_gpu ? (1 - f->gpu_busy) * f->step : NAN;
    return dr_known(gap) ? fmin(seconds, fmax(gap, 0)) : seconds;
}

/* Batches may be the limit once steps are shorter: the simulator knows. */
static void predict(const struct dr_case *c, struct dr_finding *out, double less, bool rarely)
{
    const struct dr_facts *f = c->facts;
    struct dr_plan then = c->now;
    if (c->trace) {
        then.step_less = 0.8 * less;
        const struct dr_range worst = dr_gain(c->trace, &c->now, &then, NAN);
        then.step_less = less;
        out->gain = dr_gain(c->trace, &c->now, &then, NAN);
        out->gain.low = fmin(worst.low, out->gain.mid);
        if (rarely)
            DR_SAY(out->basis, "simulated with this work in one step of %.0f", RARELY_STEPS);
        else
            DR_SAY(out->basis, "simulated without this work");
    } else if (!dr_starved(c))
        dr_gain_by_share(out, less / f->step, NAN,
                         rarely ? "measured: its share of the step, but in one of 50"
                                : "measured: its share of the step");
    else
        DR_SAY(out->basis, "batches may be the limit then: try it");
    out->plan.step_less = less;
}

bool dr_cost(const struct dr_case *c, struct dr_finding *out, double seconds, double steps,
             bool rarely)
{
    const struct dr_facts *f = c->facts;
    if (dr_cannot_tell(f) || !dr_is_constant(steps))
        return false;
    const double cost = not_hidden(f, seconds), share = cost / f->step;
    if (!(share >= DR_COST_MATTERS))
        return false;
    out->weight = fmin(share, 0.99);
    out->order = DR_ORDER_OWN;
    out->cost = true;
    predict(c, out, rarely ? cost * (1 - 1 / RARELY_STEPS) : cost, rarely);
    return true;
}
