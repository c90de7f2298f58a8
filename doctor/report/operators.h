/* operators.h - the functions that make a sample, and what each costs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_OPERATORS_H
#define ST_DOCTOR_REPORT_OPERATORS_H

#include "cli/json.h"
#include "doctor/model/facts.h"

#include <stdio.h>

/* All write nothing (in JSON an empty list) where no function was timed. */
void dr_print_operators(FILE *to, uint32_t indent, const struct dr_facts *facts);
void dr_html_operators(FILE *to, const struct dr_facts *facts);
void dr_json_operators(struct json *json, const struct dr_facts *facts);

#endif
