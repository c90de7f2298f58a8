/* judge.h - what the files that reach the verdict share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_JUDGE_H
#define ST_DOCTOR_JUDGE_H

#include "doctor/rule/case.h"

/* The first signal that the rule needs and the run lacks, in `room`; NULL: the rule can be judged. */
const char *dr_lacks(const struct dr_rule *rule, const struct dr_facts *facts, char *room, size_t size);
/* Whether the rule can apply to a run of this kind at all (no workers, no GPU, one rank). */
bool dr_concerns(const struct dr_rule *rule, const struct dr_facts *facts);

/* Whether other programs use so much of the CPUs that this run may use that its timings are theirs. */
bool dr_machine_is_busy(const struct dr_facts *facts);
/* The share of a step that would be waits for data without them; NaN: it cannot be told. */
double dr_idle_stall(const struct dr_case *c);
/* Fills in `busy`. */
void dr_say_busy(struct dr_verdict *out, const struct dr_case *c);

/* What limits the run now: "computation" or, if it is the loader, its heaviest stage and
 * its resource. */
void dr_limit_now(char *out, size_t size, const struct dr_case *c, bool loader);
/* The same with this plan. */
void dr_limit_then(char *out, size_t size, const struct dr_case *c, const struct dr_plan *plan);
/* The gain of all findings together and the limit after that; the limit after the first one goes into
 * its `next`. */
void dr_outlook(struct dr_verdict *out, const struct dr_case *c);
/* What Stoker's loader would gain; after dr_outlook, whose ceiling it may raise. */
void dr_make_offer(struct dr_verdict *out, const struct dr_case *c);

#endif
