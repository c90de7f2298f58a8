/* judge.c - from facts to a verdict: applies all rules, drops contradictions, puts the first cause first
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "doctor/rule/judge.h"

#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

/* A finding and the findings that it removes: their symptoms follow from it, or their advice would make
 * it worse. */
static const struct {
    const char *code, *removes;
} arbitration[] = {
    {"ST211",
     "ST202 ST203 ST204 ST205 ST206 ST207 ST208 ST209 ST210 ST212 ST213 ST214 ST215 ST220 ST222 "
     "ST223 ST224 ST226 ST227 ST228"},          /* the problem is over after the first epoch */
    {"ST220", "ST203 ST204 ST212 ST213 ST215"}, /* the cost of workers that have too little work */
    {"ST202", "ST215"},
    {"ST205", "ST203 ST204 ST213 ST223"}, /* the quota makes all of them queue */
    {"ST232", "ST203 ST213 ST223"}, /* more workers would end earlier */
    {"ST231", "ST203 ST204 ST212 ST213 ST223"},
    {"ST236", "ST203 ST207 ST210 ST219"}, /* more workers need more memory */
    {"ST227", "ST226"}, /* transforms that reduce what is decoded far too large */
    {"ST235", "ST204 ST208 ST226 ST227 ST228"}, /* of which opening is a part */
    {"ST230", "ST202 ST203 ST204 ST212 ST213 ST220"}, /* workers do not run the sampler */
    {"ST206", "ST203 ST204 ST213 ST223"},
    {"ST223", "ST203 ST204 ST213"},
    {"ST224", "ST202 ST203"},
    {"ST210", "ST207 ST208"},
    {"ST208", "ST207"},
    {"ST209", "ST203 ST207 ST208"}, /* its plan includes the workers it needs */
    {"ST207", "ST203"},
    {"ST203", "ST204"},
    {"ST217", "ST301 ST303"}, /* the GPU waits for copies: larger or fewer kernels change nothing */
    {"ST216", "ST303"},
    {"ST302", "ST301 ST303"}, /* it waits because of the syncs, not because kernels are small */
    {"ST301", "ST303"},       /* its advice already includes that of ST303 */
};

static struct dr_finding *find(struct dr_verdict *out, const char *code)
{
    for (uint32_t i = 0; i < out->findings; i++)
        if (!strcmp(out->finding[i].rule->code, code))
            return &out->finding[i];
    return NULL;
}

static void drop(struct dr_verdict *out, struct dr_finding *finding)
{
    const size_t at = (size_t)(finding - out->finding);
    memmove(finding, finding + 1, (out->findings - at - 1) * sizeof *finding);
    out->findings--;
}

/* Workers are restarted for too little work: keeping them alive is the smaller change, unless no workers
 * gain more. */
static void keep_or_drop_workers(struct dr_verdict *out)
{
    struct dr_finding *tiny = find(out, "ST220"), *respawn = find(out, "ST214");
    if (tiny && respawn)
        drop(out, tiny->gain.mid > DR_GAIN_WORTH * respawn->gain.mid ? respawn : tiny);
}

static void arbitrate(struct dr_verdict *out)
{
    keep_or_drop_workers(out);
    for (size_t i = 0; i < sizeof arbitration / sizeof *arbitration; i++) {
        const struct dr_finding *cause = find(out, arbitration[i].code);
        /* a finding that cures nothing does not rule out others */
        if (!cause || cause->order == DR_ORDER_LATER)
            continue;
        for (uint32_t j = out->findings; j-- > 0;)
            if (strstr(arbitration[i].removes, out->finding[j].rule->code))
                drop(out, &out->finding[j]);
    }
    /* A remark about the pattern of waits needs a finding to refer to. */
    struct dr_finding *remark = find(out, "ST213");
    if (remark && out->findings == 1)
        drop(out, remark);
}

/* The loss by which findings are compared; all causes of the stall share the same loss. A remark about
 * the pattern of waits is no cause. */
static double loss_of(const struct dr_finding *finding, double stall)
{
    if (finding->order == DR_ORDER_REMARK)
        return 0;
    return finding->order < DR_ORDER_OWN ? stall : finding->weight;
}

static bool comes_before(const struct dr_finding *a, const struct dr_finding *b, double stall)
{
    if (a->blocks != b->blocks)
        return a->blocks;
    const double x = loss_of(a, stall), y = loss_of(b, stall);
    if (x != y)
        return x > y;
    if (a->order != b->order)
        return a->order < b->order;
    return a->weight > b->weight;
}

static void sort_findings(struct dr_verdict *out, double stall)
{
    for (uint32_t i = 1; i < out->findings; i++) {
        const struct dr_finding moving = out->finding[i];
        uint32_t to = i;
        for (; to > 0 && comes_before(&moving, &out->finding[to - 1], stall); to--)
            out->finding[to] = out->finding[to - 1];
        out->finding[to] = moving;
    }
}

/* What is cleared was looked at, with the data for it: after too few steps nothing was, and on a busy
 * machine a neighbour that explains no stall is still there. */
static bool is_cleared(const struct dr_rule *rule, const struct dr_case *c)
{
    if (dr_cannot_tell(c->facts))
        return false;
    return strcmp(rule->code, "ST223") || !dr_machine_is_busy(c->facts);
}

static void apply(struct dr_verdict *out, const struct dr_case *c)
{
    char lacking[64];
    for (size_t i = 0; dr_rules[i]; i++) {
        const struct dr_rule *rule = dr_rules[i];
        if (out->findings == DR_FINDINGS_MOST || !dr_concerns(rule, c->facts))
            continue;
        struct dr_finding *finding = &out->finding[out->findings];
        memset(finding, 0, sizeof *finding);
        finding->rule = rule;
        finding->gain = (struct dr_range){NAN, NAN, NAN};
        finding->plan = c->now;
        finding->plan.workers = UINT32_MAX;
        finding->plan.cpu_scale = finding->plan.wall_scale = finding->plan.step_scale = 1;
        if (rule->check(c, finding)) {
            if (isnan(finding->weight))
                finding->weight = 0;
            out->findings++;
        } else if (!strcmp(rule->code, "ST201") || !strcmp(rule->code, "ST901")) {
            continue;
        } else if (dr_lacks(rule, c->facts, lacking, sizeof lacking) || !is_cleared(rule, c)) {
            if (out->unjudged_count < sizeof out->unjudged / sizeof *out->unjudged)
                out->unjudged[out->unjudged_count++] = rule;
        } else if (out->cleared_count < sizeof out->cleared / sizeof *out->cleared)
            out->cleared[out->cleared_count++] = rule;
    }
}

/* Data-bound, but no rule matches: say so instead of guessing. */
static void unexplained(struct dr_verdict *out, const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    struct dr_finding *finding = &out->finding[out->findings++];
    memset(finding, 0, sizeof *finding);
    finding->rule = dr_rule_find("ST901");
    finding->weight = f->stall_share;
    finding->order = DR_ORDER_LATER;
    finding->gain = (struct dr_range){NAN, NAN, NAN};
    finding->plan = c->now;
    finding->plan.workers = UINT32_MAX;
    const enum dr_stage stage = dr_heaviest_stage(c);
    if (dr_known(f->stage_share[stage]))
        DR_SAY(
            finding->sentence,
            "no known cause explains the waits; the largest part of the time of a batch (%.0f %%) is %s",
            f->stage_share[stage] * 100, dr_stage_word(stage));
    else
        DR_SAY(finding->sentence,
               "the waits are real, but how the batches are made could not be observed");
    DR_SAY(finding->advice,
           "find out what the dataset does there, or provide the signals listed below");
    DR_SAY(finding->basis, "no prediction without a cause");
}

/* Without a cause, on a machine that others use: on an idle one, there might be nothing to explain. */
static void doubt(struct dr_verdict *out, const struct dr_case *c)
{
    if (dr_below(dr_idle_stall(c), DR_STALL_MATTERS)) {
        out->kind = DR_COMPUTE_BOUND;
        return;
    }
    unexplained(out, c);
    struct dr_finding *finding = find(out, "ST901");
    out->kind = DR_CANNOT_TELL;
    DR_SAY(finding->sentence,
           "no known cause explains the waits (%.0f %% of each step), and other programs use %.1f CPUs: "
           "the waits may be theirs",
           c->facts->stall_share * 100, c->facts->cpus_busy_others);
    DR_SAY(finding->advice, "run it again on an idle machine");
}

/* While other programs hold the CPUs, the training thread itself may come late to take a batch. */
static bool held_by_others(const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    return f->cpus_busy_others >= DR_NEIGHBOUR_SHARE * f->limits.cpus &&
           f->late_share < DR_STALL_SMALL && f->late_share - f->trainer_run_queue < DR_STALL_MATTERS;
}

/* Batches that are ready in time leave only their transfer in the stall: that needs a finding
 * to count. */
static bool is_data_bound(struct dr_verdict *out, const struct dr_case *c)
{
    bool found = find(out, "ST214") || find(out, "ST220") || find(out, "ST225");
    for (uint32_t i = 0; dr_starved(c) && i < out->findings; i++)
        found |= out->finding[i].order < DR_ORDER_LATER;
    return found || (dr_late(c) && !held_by_others(c));
}

static const char *confidence(const struct dr_facts *f)
{
    const double width = f->stall_share_high - f->stall_share_low, steps = f->confidence_steps;
    if (steps >= DR_STEPS_HIGH && width <= DR_WIDTH_HIGH)
        return "high";
    return steps >= DR_STEPS_MEDIUM && !(width > DR_WIDTH_MEDIUM) ? "medium" : "low";
}

/* The headline names the first cause: where that is no lack of data, it says what takes the time. */
static bool say_cost(struct dr_verdict *out, const struct dr_case *c)
{
    const struct dr_finding *cost = out->findings ? &out->finding[0] : NULL;
    if (!cost || !cost->cost || out->kind == DR_CANNOT_TELL)
        return false;
    if (out->kind == DR_DATA_BOUND)
        DR_SAY(out->sentence,
               "data-bound (%s waits for the next batch %.0f %% of each step), but first: %.400s",
               dr_waiter(c), c->facts->stall_share * 100, cost->sentence);
    else
        DR_SAY(out->sentence, "compute-bound, but not by the model: %.440s", cost->sentence);
    return true;
}

static void say(struct dr_verdict *out, const struct dr_case *c)
{
    const struct dr_facts *f = c->facts;
    if (say_cost(out, c))
        return;
    const struct dr_finding *start = find(out, find(out, "ST220") ? "ST220" : "ST214");
    if (out->kind == DR_CANNOT_TELL)
        DR_SAY(out->sentence, "cannot tell: %.400s",
               out->findings ? out->finding[0].sentence : "nothing was recorded");
    else if (out->kind == DR_COMPUTE_BOUND && find(out, "ST211"))
        DR_SAY(out->sentence,
               "compute-bound after the first epoch: from then on, %s waits for data only %.0f %% of "
               "each step",
               dr_waiter(c), f->later_epochs_stall_share * 100);
    else if (out->kind == DR_COMPUTE_BOUND && dr_late(c) && *out->busy)
        DR_SAY(out->sentence,
               "compute-bound on an idle machine: here %s waits %.0f %% of each step, because other "
               "programs use the CPUs",
               dr_waiter(c), f->stall_share * 100);
    else if (out->kind == DR_COMPUTE_BOUND && dr_starved(c))
        DR_SAY(out->sentence,
               "compute-bound: batches are ready in time; %s waits %.1f %% of each step, to receive "
               "them or for single late ones",
               dr_waiter(c), f->stall_share * 100);
    else if (out->kind == DR_COMPUTE_BOUND)
        DR_SAY(out->sentence,
               "compute-bound: %s waits for data only %.1f %% of each step; the loader keeps up",
               dr_waiter(c), f->stall_share * 100);
    else if (dr_starved(c))
        DR_SAY(out->sentence, "data-bound: %s waits for the next batch %.0f %% of each step",
               dr_waiter(c), f->stall_share * 100);
    else if (!start && find(out, "ST225"))
        DR_SAY(out->sentence,
               "data-bound: ranks wait %.0f %% of the time for the one that gets its batch last",
               find(out, "ST225")->weight * 100);
    else
        DR_SAY(out->sentence, "data-bound: starting workers takes %.0f %% of every epoch",
               start ? start->weight * 100 : 0.0);
}

/* An interval by drawn blocks knows only how steps and batches vary. Two runs of one program differ,
 * too, and so do the loader and its model. `others`: the share of the CPUs that other programs use; it
 * may be larger or smaller the next time. */
static void add_model_error(struct dr_range *gain, double most, double others)
{
    if (!(gain->mid > 1))
        return;
    const double error =
        fmax((DR_MODEL_ERROR + others) * (gain->mid - 1), DR_EQUAL_RUNS * gain->mid);
    gain->low = fmin(gain->low, fmax(gain->mid - error, 1));
    gain->high = fmax(gain->high, fmin(gain->mid + error, fmax(gain->mid, most)));
}

/* The command failed before a step was seen, and its loader reported nothing: its own error message says
 * more than a verdict would. */
static bool failed_at_once(struct dr_verdict *out, const struct dr_facts *facts)
{
    const struct dr_run *run = facts->run;
    if (!run || !run->finished || run->exit_code == 0 || dr_above(facts->confidence_steps, 0) ||
        facts->loader.failure[0])
        return false;
    out->failed = true;
    out->kind = DR_CANNOT_TELL;
    out->confidence = "low";
    if (run->exit_code > 128)
        DR_SAY(out->sentence, "no verdict: signal %d ended the command before its first training step",
               run->exit_code - 128);
    else
        DR_SAY(out->sentence,
               "no verdict: the command ended with status %d before its first training step",
               run->exit_code);
    return true;
}

void dr_judge(struct dr_verdict *out, const struct dr_facts *facts)
{
    memset(out, 0, sizeof *out);
    out->ceiling = out->most = NAN;
    out->all = out->offer.gain = (struct dr_range){NAN, NAN, NAN};
    if (failed_at_once(out, facts))
        return;
    struct dr_trace trace;
    struct dr_case c = {.facts = facts, .ceiling = NAN};
    const struct dr_settings *loader = &facts->loader;
    c.now = (struct dr_plan){.workers = loader->workers,
                             .prefetch = loader->prefetch,
                             .in_order = loader->in_order,
                             .persistent = loader->persistent,
                             .shared_samples = loader->native,
                             .cpus = facts->limits.cpus,
                             .wall_scale = 1,
                             .cpu_scale = 1,
                             .step_scale = 1};
    const bool covered = !dr_not_covered(facts);
    if (dr_trace_of(&trace, &c.now, facts) && covered)
        c.trace = &trace;
    /* Waits of a feeder overlap with the steps. */
    if (dr_above(facts->compute, 0) && dr_above(facts->step, 0) && !facts->loader.feeder)
        c.ceiling = fmax(1, facts->step / facts->compute);
    out->ceiling = c.ceiling;
    out->confidence = confidence(facts);

    apply(out, &c);
    arbitrate(out);
    /* without workers, the steps themselves become shorter */
    const struct dr_finding *tiny = find(out, "ST220");
    if (tiny && dr_above(tiny->gain.high, c.ceiling))
        c.ceiling = out->ceiling = tiny->gain.high;
    const bool over = find(out, "ST211") != NULL, blind = find(out, "ST901") != NULL;
    if (blind)
        out->kind = DR_CANNOT_TELL;
    else if (over)
        out->kind = DR_COMPUTE_BOUND;
    else
        out->kind = is_data_bound(out, &c) ? DR_DATA_BOUND : DR_COMPUTE_BOUND;
    bool explained = false;
    for (uint32_t i = 0; i < out->findings; i++)
        explained |=
            out->finding[i].order < DR_ORDER_LATER || out->finding[i].weight >= 0.5 * facts->stall_share;
    if (dr_machine_is_busy(facts))
        dr_say_busy(out, &c);
    if (out->kind == DR_DATA_BOUND && !explained && *out->busy)
        doubt(out, &c);
    else if (out->kind == DR_DATA_BOUND && !explained)
        unexplained(out, &c);
    sort_findings(out, dr_known(facts->stall_share) ? facts->stall_share : 0);
    say(out, &c);
    if (out->kind != DR_CANNOT_TELL && out->findings && !strcmp(out->finding[0].rule->code, "ST230"))
        DR_SAY(out->limiter, "drawing indices in the training thread");
    else if (out->findings && out->finding[0].cost && out->kind != DR_CANNOT_TELL)
        DR_SAY(out->limiter, "the training loop itself: %s (%.0f %% of the step)",
               out->finding[0].rule->name, out->finding[0].weight * 100);
    else if (out->kind != DR_CANNOT_TELL)
        dr_limit_now(out->limiter, sizeof out->limiter, &c,
                     out->kind == DR_DATA_BOUND && dr_starved(&c));
    const double others = *out->busy ? fmin(facts->cpus_busy_others / facts->limits.cpus, 1) : 0;
    for (uint32_t i = 0; i < out->findings; i++)
        add_model_error(&out->finding[i].gain,
                        out->finding[i].order < DR_ORDER_OWN ? out->ceiling : INFINITY, others);
    dr_outlook(out, &c);
    add_model_error(&out->all, out->most, others);
    dr_make_offer(out, &c);
}
