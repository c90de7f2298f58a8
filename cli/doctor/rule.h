/* rule.h - one cause, one file: when it holds, what to say, what to change, what that gains
 *
 * A rule is a file in rule/ that ends in its `const struct dr_rule`, listed in rule/registry.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_RULE_H
#define ST_DOCTOR_RULE_H

#include "cli/doctor/facts.h"
#include "cli/doctor/simulate.h"

enum { DR_FINDINGS_MOST = 40 };

struct dr_finding {
    const struct dr_rule *rule;
    double weight;      /* share of the step's time that this explains: findings are ordered by it */
    int order; /* among causes of the same loss: smaller is nearer to the first cause (rule/case.h) */
    bool blocks;        /* wrong results or a crash, whatever it gains: always shown */
    char sentence[512]; /* what is the case, with numbers */
    char advice[512];   /* what to change, with concrete values, in torch */
    char advice_stoker[512]; /* the same by Stoker; "" */
    struct dr_range gain;    /* times faster; NaN: cannot be said */
    char basis[128];         /* how the gain is known: "simulated from 1,180 batches" */
    char next[160];          /* what the limit is after that; "" */
    struct dr_plan plan; /* the settings that the advice means, where it is one of settings; workers =
                            UINT32_MAX: not */
};

/* What a rule judges by: the facts, and the replay of the run where there is one. */
struct dr_case {
    const struct dr_facts *facts;
    const struct dr_trace *trace; /* NULL: cannot be simulated */
    struct dr_plan now;
    double ceiling; /* step / compute */
};

struct dr_rule {
    const char *code;  /* "ST206": stable, never reused */
    const char *name;  /* "thread-storm" */
    const char *title; /* "Workers start more threads than there are CPUs" */
    const char
        *needs; /* signals without which it cannot be judged, by their names, comma-separated; "" */
    bool (*check)(const struct dr_case *,
                  struct dr_finding *out); /* `out` is zeroed, gain NaN, plan none */
    /* `stoker explain CODE` */
    const char *symptoms, *why, *fix_torch, *fix_stoker, *how_to_check;
};

extern const struct dr_rule *const dr_rules[]; /* NULL at the end */
const struct dr_rule *dr_rule_find(const char *code_or_name);

enum dr_verdict_kind { DR_DATA_BOUND, DR_COMPUTE_BOUND, DR_CANNOT_TELL };

struct dr_verdict {
    enum dr_verdict_kind kind;
    char sentence[512];     /* "data-bound: the GPU waits 62 % of every step for the next batch" */
    const char *confidence; /* "high", "medium", "low" */
    char limiter[160];      /* stage and resource: "JPEG decode in 8 workers, which queue for 12 CPUs" */
    struct dr_finding finding[DR_FINDINGS_MOST]; /* first cause first */
    uint32_t findings;
    const struct dr_rule *cleared[64]; /* looked at and not the problem */
    uint32_t cleared_count;
    const struct dr_rule *unjudged[64]; /* signals missing */
    uint32_t unjudged_count;
    double ceiling;      /* a perfect loader: times faster */
    struct dr_range all; /* after all findings with a gain; and what limits then */
    char limit_after[160];
};

/* Applies all rules; always gives a verdict. */
void dr_judge(struct dr_verdict *out, const struct dr_facts *facts);

#endif
