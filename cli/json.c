/* json.c - writes JSON: commas, quotes, and null for what is unknown
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cli/json.h"

#include "cli/out.h"

#include <math.h>

/* Writes what precedes a value: a comma, and its key. The upper levels get one line per value. */
static void begin(struct json *json, const char *key)
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

void json_open(struct json *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->to);
    if (json->depth + 1 < JSON_DEPTH)
        json->depth++;
    json->filled[json->depth] = false;
}

void json_close(struct json *json, char bracket)
{
    json->depth--;
    fputc(bracket, json->to);
    if (!json->depth)
        fputc('\n', json->to);
}

void json_number(struct json *json, const char *key, double value)
{
    begin(json, key);
    if (isfinite(value))
        fprintf(json->to, "%.9g", value);
    else
        fputs("null", json->to);
}

void json_count(struct json *json, const char *key, uint64_t value)
{
    begin(json, key);
    fprintf(json->to, "%llu", (unsigned long long)value);
}

void json_string(struct json *json, const char *key, const char *text)
{
    if (!text) {
        json_null(json, key);
        return;
    }
    begin(json, key);
    json_text(json->to, text);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->to);
}

void json_null(struct json *json, const char *key)
{
    begin(json, key);
    fputs("null", json->to);
}
