/* outlook.c - the gain of all findings together, and what limits the run after that
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/judge.h"

/* `plan`: future settings, for which only the names of the stages are certain; NULL: the
 * current ones. */
static void data_limit_text(char *out, size_t size, const struct dr_case *c, const struct dr_plan *plan)
{
    const struct dr_facts *f = c->facts;
    const enum dr_stage stage = dr_heaviest_stage(c);
    const double workers = plan ? plan->workers : f->loader.workers;
    char what[96];
    if (plan && plan->cpu_scale == 1 && plan->wall_scale == 1 && dr_known(f->stage_share[stage]))
        DR_SAY(what, "%s", dr_stage_word(stage));
    else if (!plan && dr_known(f->stage_share[stage]))
        DR_SAY(what, "%s (%.0f %% of the time of a batch)", dr_stage_word(stage),
               f->stage_share[stage] * 100);
    else
        DR_SAY(what, "making batches");
    const double waiting = dr_waiting_share(c);
    if (workers < 1)
        (void)snprintf(out, size, "%s in the training thread", what);
    else if (dr_above(waiting, DR_WAITING))
        (void)snprintf(out, size, "%s in %.0f %s, mostly waiting", what, workers,
                       dr_makers(c, workers));
    else if (dr_known(f->limits.cpus) &&
             (dr_above(f->worker_run_queue, DR_QUEUE_HIGH) || workers >= dr_most_workers(c)))
        (void)snprintf(out, size, "%s in %.0f %s on %.3g CPU%s", what, workers, dr_makers(c, workers),
                       f->limits.cpus, dr_s(f->limits.cpus));
    else
        (void)snprintf(out, size, "%s in %.0f %s", what, workers, dr_makers(c, workers));
}

static void limit_text(char *out, size_t size, const struct dr_case *c, const struct dr_plan *plan,
                       bool loader)
{
    struct dr_text time;
    if (loader)
        data_limit_text(out, size, c, plan);
    else
        (void)snprintf(out, size, "computation (%s per step)",
                       dr_seconds_text(&time, c->facts->compute - (plan ? plan->step_less : 0)));
}

void dr_limit_now(char *out, size_t size, const struct dr_case *c, bool loader)
{
    limit_text(out, size, c, NULL, loader);
}

void dr_limit_then(char *out, size_t size, const struct dr_case *c, const struct dr_plan *plan)
{
    struct dr_outcome outcome;
    dr_simulate(&outcome, c->trace, plan);
    if (dr_known(outcome.wait_share))
        limit_text(out, size, c, plan, outcome.wait_share >= DR_STALL_MATTERS);
}

/* Adds the change of a finding: the first change of each setting counts; changes of stages add up. */
static struct dr_plan add(struct dr_plan plan, const struct dr_plan *now, const struct dr_plan *change)
{
    if (change->workers != UINT32_MAX) {
        if (plan.workers == now->workers)
            plan.workers = change->workers;
        if (plan.prefetch == now->prefetch)
            plan.prefetch = change->prefetch;
        plan.in_order &= change->in_order;
        plan.persistent |= change->persistent;
    }
    plan.cpu_scale *= change->cpu_scale;
    plan.wall_scale *= change->wall_scale;
    plan.step_scale *= change->step_scale;
    plan.step_less += change->step_less;
    return plan;
}

static bool is_in_plan(const struct dr_finding *finding)
{
    return finding->plan.step_less > 0 ||
           (finding->order < DR_ORDER_OWN &&
            (finding->plan.workers != UINT32_MAX || finding->plan.cpu_scale != 1 ||
             finding->plan.wall_scale != 1));
}

/* A perfect loader also frees CPUs, which a finding may count on: the ceiling is never below what one of
 * the loader promises. Work besides model and data, and what only concerns the GPU, add to it. */
static void find_most(struct dr_verdict *out, const struct dr_case *c)
{
    double others = 1, less = 0;
    for (uint32_t i = 0; i < out->findings; i++) {
        const struct dr_finding *finding = &out->finding[i];
        if (!dr_known(finding->gain.mid))
            continue;
        if (finding->plan.step_less > 0)
            less += finding->plan.step_less;
        else if (finding->order >= DR_ORDER_OWN)
            others *= fmax(finding->gain.high, 1);
        else if (dr_above(finding->gain.high, out->ceiling))
            out->ceiling = finding->gain.high;
    }
    const double left = c->facts->compute - less;
    if (less > 0 && left > 0 && c->facts->compute > 0)
        others *= c->facts->compute / left;
    out->most = fmax(dr_known(out->ceiling) ? out->ceiling : 1, 1) * others;
    for (uint32_t i = 0; i < out->findings; i++)
        if (dr_above(out->finding[i].gain.high, out->most))
            out->most = out->finding[i].gain.high;
}

void dr_outlook(struct dr_verdict *out, const struct dr_case *c)
{
    double factor = 1, alone = 1;
    find_most(out, c);
    bool planned = false;
    struct dr_plan all = c->now;
    for (uint32_t i = 0; i < out->findings; i++) {
        struct dr_finding *finding = &out->finding[i];
        if (!dr_known(finding->gain.mid))
            continue;
        if (!is_in_plan(finding) || !c->trace) {
            if (finding->order >= DR_ORDER_OWN)
                factor *= finding->gain.mid;
            else
                alone = fmax(alone, finding->gain.mid);
            continue;
        }
        all = add(all, &c->now, &finding->plan);
        planned = true;
        if (i == 0)
            dr_limit_then(finding->next, sizeof finding->next, c, &all);
    }
    if (out->findings > 1 && !out->finding[0].next[0] && out->finding[1].order < DR_ORDER_REMARK)
        DR_SAY(out->finding[0].next, "%s: %s", out->finding[1].rule->code,
               out->finding[1].rule->title);
    if (planned) {
        out->all = dr_gain(c->trace, &c->now, &all, all.step_less > 0 ? out->most : out->ceiling);
        dr_limit_then(out->limit_after, sizeof out->limit_after, c, &all);
    } else if (alone > 1 || factor > 1)
        out->all = (struct dr_range){1, 1, 1};
    if (!dr_known(out->all.mid))
        return;
    /* Causes without a plan share one ceiling; findings outside the loader have none. */
    const double most = all.step_less > 0         ? out->most / factor
                        : dr_known(out->ceiling) ? out->ceiling
                                                 : INFINITY;
    out->all.low = out->all.low * factor;
    out->all.mid = fmin(fmax(out->all.mid, alone), most) * factor;
    out->all.high = fmax(fmin(fmax(out->all.high, alone), most) * factor, out->all.mid);
    out->all.low = fmin(out->all.low, out->all.mid);
    if (!out->limit_after[0] && dr_above(out->all.mid, 0.97 * most))
        (void)snprintf(out->limit_after, sizeof out->limit_after, "computation");
}
