/* json.h - writes JSON: commas, quotes, and null for what is unknown
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_JSON_H
#define ST_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 16 };
struct json {
    FILE *to;
    int depth;
    /* This object or array has a value already: a comma comes before the next one. */
    bool filled[JSON_DEPTH];
};

/* `key` is NULL inside an array. `bracket` is '{' or '[' to open, '}' or ']' to close. */
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_number(struct json *json, const char *key, double value); /* NaN and infinity are null */
void json_count(struct json *json, const char *key, uint64_t value);
void json_string(struct json *json, const char *key, const char *text); /* NULL is null */
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);

#endif
