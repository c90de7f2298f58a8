/* json.h - validates JSON (RFC 8259) by skipping over it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TABLE_JSON_H
#define ST_SOURCE_TABLE_JSON_H

#include "base/pixels.h"
#include "source/text/cursor.h"

#include <stdint.h>

/* How deeply lists and objects may be nested. */
enum { ST_JSON_DEPTH = 500 };

/* Skips the next value, including blanks before it; false: it is damaged at the position of `text`, or
 * (text->deep) nested deeper than `depth`. NaN, Infinity and -Infinity are accepted as numbers, as
 * Python writes them. Python's json.loads accepts everything that this accepts. */
bool st_json_skip(struct st_text *text, int depth);
/* Whether this is exactly one value, except for blanks around it. If not, *at is where the damage is, or
 * (*deep) where it is nested deeper than ST_JSON_DEPTH. */
bool st_json_is_whole(struct st_bytes bytes, uint64_t *at, bool *deep);

#endif
