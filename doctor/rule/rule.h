/* rule.h - one cause per file: when it applies, what to report, what to change, what that gains
 *
 * A rule is a file in rule/ that ends in its `const struct dr_rule`, listed in rule/registry.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_RULE_H
#define ST_DOCTOR_RULE_H

#include "doctor/model/facts.h"
#include "doctor/model/simulate.h"

enum { DR_FINDINGS_MOST = 40 };

struct dr_finding {
    const struct dr_rule *rule;
    double weight;      /* share of the step that this explains; findings are sorted by it */
    int order; /* among causes of the same loss: smaller is closer to the root cause (rule/case.h) */
    bool cost;          /* work of the training loop besides model and data */
    bool blocks;        /* wrong results or a crash: always shown, whatever the gain */
    char sentence[512]; /* the finding, with numbers */
    char advice[512];   /* what to change in torch, with concrete values */
    char advice_stoker[512]; /* what to do with Stoker; "" */
    struct dr_range gain;    /* speed-up; NaN: unknown */
    char basis[128];         /* how the gain was obtained: "simulated from 1,180 batches" */
    char next[160];          /* the limit after that; "" */
    struct dr_plan plan;     /* the settings that the advice stands for; workers = UINT32_MAX: it is not
                                about settings */
};

/* What a rule judges: the facts, and the recorded trace for simulation. */
struct dr_case {
    const struct dr_facts *facts;
    const struct dr_trace *trace; /* NULL: the run cannot be simulated */
    struct dr_plan now;
    double ceiling; /* step / compute */
};

struct dr_rule {
    const char *code;  /* "ST206": stable, never reused */
    const char *name;  /* "thread-storm" */
    const char *title; /* "Workers start more threads than there are CPUs" */
    const char
        *needs; /* names of the signals it cannot be judged without, comma-separated; "" */
    bool (*check)(const struct dr_case *,
                  struct dr_finding *out); /* `out` is zeroed, with a gain of NaN and no plan */
    /* `stoker explain CODE` */
    const char *symptoms, *why, *fix_torch, *fix_stoker, *how_to_check;
};

extern const struct dr_rule *const dr_rules[]; /* NULL at the end */
const struct dr_rule *dr_rule_find(const char *code_or_name);

enum dr_verdict_kind { DR_DATA_BOUND, DR_COMPUTE_BOUND, DR_CANNOT_TELL };

/* What Stoker's loader would gain. */
enum dr_offer_kind {
    DR_OFFER_NONE,    /* the run uses it, or has no loader */
    DR_OFFER_UNKNOWN, /* not measured, or without a prediction */
    DR_OFFER_NOTHING, /* the step is the limit, or samples are no less work with it */
    DR_OFFER_GAIN,
};
struct dr_offer {
    enum dr_offer_kind kind;
    char command[160]; /* "python -m stoker train.py" */
    char sentence[512];
    struct dr_range gain; /* NaN: unknown */
};

struct dr_verdict {
    enum dr_verdict_kind kind;
    bool failed; /* the command failed before its first step: there is nothing to judge */
    char sentence[512];     /* "data-bound: the GPU waits for the next batch 62 % of each step" */
    char busy[256];         /* other programs use the CPUs: how many, and what that means; "" */
    const char *confidence; /* "high", "medium", "low" */
    char limiter[160]; /* stage and resource: "decoding (71 % of the time of a batch) in 8 workers" */
    struct dr_finding finding[DR_FINDINGS_MOST]; /* the root cause first */
    uint32_t findings;
    const struct dr_rule *cleared[64]; /* checked, and not the problem */
    uint32_t cleared_count;
    const struct dr_rule *unjudged[64]; /* signals missing */
    uint32_t unjudged_count;
    double ceiling;      /* speed-up by a perfect loader */
    double most;         /* by that and all changes outside the loader: no gain exceeds it */
    struct dr_range all; /* speed-up by all findings together */
    char limit_after[160];
    struct dr_offer offer;
};

/* Applies all rules; there is always a verdict. */
void dr_judge(struct dr_verdict *out, const struct dr_facts *facts);

#endif
