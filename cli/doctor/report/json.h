/* json.h - writes JSON to a file: commas, quotes and what is unknown
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_DOCTOR_REPORT_JSON_H
#define ST_DOCTOR_REPORT_JSON_H

#include "cli/doctor/simulate.h"

#include <stdbool.h>
#include <stdio.h>

enum { DR_JSON_DEPTH = 16 };
struct dr_json {
    FILE *to;
    int depth;
    bool filled[DR_JSON_DEPTH]; /* something stands in this object or array: a comma comes next */
};

/* `key` is NULL inside an array. An object or array: '{' or '['. */
void dr_json_open(struct dr_json *json, const char *key, char bracket);
void dr_json_close(struct dr_json *json, char bracket);
/* NaN and what is not finite are null. */
void dr_json_number(struct dr_json *json, const char *key, double value);
void dr_json_text(struct dr_json *json, const char *key, const char *text); /* NULL is null */
void dr_json_bool(struct dr_json *json, const char *key, bool value);
void dr_json_null(struct dr_json *json, const char *key);
/* {"low", "mid", "high"}; null where `mid` is unknown. */
void dr_json_range(struct dr_json *json, const char *key, const struct dr_range *range);

#endif
