/* words.h - names used in reports, and formatted numbers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_RULE_WORDS_H
#define ST_DOCTOR_RULE_WORDS_H

#include "doctor/rule/rule.h"

const char *dr_kind_name(enum dr_verdict_kind kind); /* "data-bound" */
const char *dr_role_name(enum dr_role role);
/* The code of the first finding; ST201 or ST901 if there is none. */
const char *dr_verdict_code(const struct dr_verdict *verdict);
/* dr_said that accepts NULL for the process. */
const char *dr_said_by(const struct dr_process *process, const char *key);
/* Mean number of batches ready at next() over steps [begin, end), as far as known. */
double dr_steps_ready(const struct dr_facts *facts, uint64_t begin, uint64_t end);

/* A number for people to read; "n/a" if it is unknown. */
struct dr_text {
    char text[64];
};
const char *dr_seconds_text(struct dr_text *room, double seconds);              /* "249 ms" */
const char *dr_share_text(struct dr_text *room, double share);                  /* "62 %" */
const char *dr_plain_text(struct dr_text *room, double value);                  /* "1,055", "0.41" */
/* with the unit of a signal */
const char *dr_unit_text(struct dr_text *room, double value, const char *unit);

/* The ending of a noun after a number. */
static inline const char *dr_s(double count) { return count == 1 ? "" : "s"; }

#endif
