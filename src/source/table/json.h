/* json.h - stepping over JSON (RFC 8259), to see whether it is whole
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TABLE_JSON_H
#define ST_SOURCE_TABLE_JSON_H

#include "base/pixels.h"
#include "source/text.h"

#include <stdint.h>

/* How deep lists and objects may lie in one another. */
enum { ST_JSON_DEPTH = 500 };

/* Steps over the value that comes next, blanks before it included; false: it is damaged where `text`
 * stands now, or deeper than `depth`. NaN, Infinity and -Infinity count as numbers, as Python writes
 * them. What passes here Python's json.loads reads. */
bool st_json_skip(struct st_text *text, int depth);
/* Whether this is one value, with nothing but blanks around it. Else *at says where the damage is. */
bool st_json_is_whole(struct st_bytes bytes, uint64_t *at);

#endif
