/* json.h - parts of a judged run as JSON, for the reports and the commands
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_JSON_H
#define ST_DOCTOR_REPORT_JSON_H

#include "cli/json.h"
#include "doctor/rule/rule.h"

/* {"low", "mid", "high"}; null where `mid` is unknown. */
void dr_json_range(struct json *json, const char *key, const struct dr_range *range);
/* The members "verdict", "findings", "cleared" and "unjudged". */
void dr_json_verdict(struct json *json, const struct dr_verdict *verdict);

#endif
