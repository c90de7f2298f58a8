/* json_out.c - writes JSON to a file: commas, quotes and what is unknown
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/doctor/report/json.h"

#include "cli/out.h"

#include <math.h>

/* What comes before a value: a comma, and its key. Objects near the top get lines of their own. */
static void begin(struct dr_json *json, const char *key)
{
    enum { LINES = 2 };
    if (json->filled[json->depth])
        fputc(',', json->to);
    if (json->depth && json->depth <= LINES)
        fprintf(json->to, "\n%*s", json->depth, "");
    json->filled[json->depth] = true;
    if (key) {
        json_text(json->to, key);
        fputs(": ", json->to);
    }
}

void dr_json_open(struct dr_json *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->to);
    if (json->depth + 1 < DR_JSON_DEPTH)
        json->depth++;
    json->filled[json->depth] = false;
}

void dr_json_close(struct dr_json *json, char bracket)
{
    json->depth--;
    fputc(bracket, json->to);
    if (!json->depth)
        fputc('\n', json->to);
}

void dr_json_number(struct dr_json *json, const char *key, double value)
{
    begin(json, key);
    if (isfinite(value))
        fprintf(json->to, "%.9g", value);
    else
        fputs("null", json->to);
}

void dr_json_text(struct dr_json *json, const char *key, const char *text)
{
    if (!text) {
        dr_json_null(json, key);
        return;
    }
    begin(json, key);
    json_text(json->to, text);
}

void dr_json_bool(struct dr_json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->to);
}

void dr_json_null(struct dr_json *json, const char *key)
{
    begin(json, key);
    fputs("null", json->to);
}

void dr_json_range(struct dr_json *json, const char *key, const struct dr_range *range)
{
    if (!isfinite(range->mid)) {
        dr_json_null(json, key);
        return;
    }
    dr_json_open(json, key, '{');
    dr_json_number(json, "low", range->low);
    dr_json_number(json, "mid", range->mid);
    dr_json_number(json, "high", range->high);
    dr_json_close(json, '}');
}
