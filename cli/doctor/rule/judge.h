/* judge.h - parts of the judgement that its files share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_JUDGE_H
#define ST_DOCTOR_JUDGE_H

#include "cli/doctor/rule/case.h"

/* The first signal that the rule needs and the run has not, in `room`; NULL: it can be judged. */
const char *dr_lacks(const struct dr_rule *rule, const struct dr_facts *facts, char *room, size_t size);
/* Whether the rule could hold for a run of this kind at all: no workers, no GPU, one rank. */
bool dr_concerns(const struct dr_rule *rule, const struct dr_facts *facts);

/* What limits a loader with this plan: "compute", or the heaviest stage and what it waits for. */
void dr_limit_text(char *out, size_t size, const struct dr_case *c, const struct dr_plan *plan);
/* What all findings together gain, and what limits then; the limit after the first into its `next`. */
void dr_outlook(struct dr_verdict *out, const struct dr_case *c);

#endif
