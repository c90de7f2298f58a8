/* facts_outliers.c - steps far longer than the others, for reasons other than the loader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/model/parts.h"

#include "base/err.h"

static const double MANY_DEVIATIONS = 8, LEAST_EXCESS = 0.5; /* share of the median step */

struct outliers {
    double usual, limit;
    double all, excess, save, gc, eval;
    struct dr_sum gaps; /* steps between two outliers */
    double gap_squares;
    uint32_t last;
    bool any;
};

/* The time of the training process itself in a step. Waits for the loader and for the GPU are covered by
 * other rules (a host that runs ahead occasionally waits long, which is not an outlier). */
static double own_seconds(const struct dr_interval *interval)
{
    const struct dr_step *step = &interval->step;
    return fmax(step->seconds - step->wait - step->sync, 0);
}

static void count_outlier(struct outliers *out, uint32_t at, double excess, double save, double gc,
                          double eval)
{
    if (out->any) {
        const double gap = at - out->last;
        dr_sum_add(&out->gaps, gap);
        out->gap_squares += gap * gap;
    }
    out->any = true;
    out->last = at;
    out->excess += excess;
    out->eval += fmin(eval, excess);
    out->save += fmin(save, fmax(excess - eval, 0));
    out->gc += fmin(gc, fmax(excess - eval - save, 0));
}

/* The step itself, and the time between the end of its epoch and the next one. */
static void look_at(struct outliers *out, const struct dr_intervals *intervals, uint32_t at)
{
    const struct dr_interval *interval = &intervals->all[at];
    if (!interval->closed || interval->cut)
        return;
    const double own = own_seconds(interval);
    const bool evaluates = interval->interrupted && interval->eval_to_ns > interval->eval_from_ns;
    const double eval = evaluates ? (double)(interval->eval_to_ns - interval->eval_from_ns) / 1e9 : 0;
    const bool after = interval->last && interval->eval_from_ns >= interval->end_ns;
    out->all += interval->step.seconds;
    double excess = own > out->limit ? own - out->usual : 0, save = interval->step.save;
    double gc = interval->step.gc, evaluated = after ? 0 : eval;
    if (interval->last && at + 1 < intervals->count && (interval->gap_save > 0 || (after && eval > 0))) {
        const double gap =
            fmin((after ? eval : 0) + interval->gap_save, /* never more than the elapsed time */
                 (double)(intervals->all[at + 1].step.start_ns - interval->end_ns) / 1e9);
        out->all += gap;
        excess += gap;
        evaluated += after ? fmin(eval, gap) : 0;
        save += interval->gap_save;
        gc += interval->gap_gc;
    }
    if (excess > 0)
        count_outlier(out, at, excess, save, gc, evaluated);
}

int dr_facts_outliers(struct dr_part *part)
{
    struct dr_facts *facts = part->facts;
    const struct dr_intervals *intervals = &part->intervals;
    const uint32_t most = intervals->count - part->first;
    double *own = dr_blocks_new(part->blocks, most, sizeof *own);
    if (!own)
        return st_fail(part->err, STOKER_ENOMEM, "out of memory for %u steps", most);
    uint32_t count = 0;
    for (uint32_t k = part->first; k < intervals->count; k++)
        if (dr_is_ordinary(&intervals->all[k]))
            own[count++] = own_seconds(&intervals->all[k]);
    struct outliers out = {.usual = dr_percentile(own, count, 0.5)};
    for (uint32_t k = 0; k < count; k++)
        own[k] = fabs(own[k] - out.usual);
    const double deviation = 1.4826 * dr_percentile(own, count, 0.5);
    out.limit = out.usual + fmax(MANY_DEVIATIONS * deviation, LEAST_EXCESS * facts->step_p50);
    for (uint32_t k = part->first; k < intervals->count; k++)
        look_at(&out, intervals, k);
    facts->outlier_share = dr_share(out.excess, out.all);
    if (out.excess > 0) {
        facts->outlier_save = out.save / out.excess;
        facts->outlier_gc = out.gc / out.excess;
        facts->outlier_eval = out.eval / out.excess;
    }
    const double mean = dr_sum_mean(&out.gaps), n = (double)out.gaps.count;
    if (n >= 2 && out.gap_squares / n - mean * mean <= 0.04 * mean * mean)
        facts->outlier_period = mean;
    return STOKER_OK;
}
