/* json_text.h - the characters of JSON strings
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TABLE_JSON_TEXT_H
#define ST_SOURCE_TABLE_JSON_TEXT_H

#include "source/text/cursor.h"

/* Reads from after the opening quote to after the closing one and writes the characters without escapes
 * to `to`, which has room for the string as it is written; returns the address after them. NULL: it is
 * damaged at the position of `text`. A lone surrogate is encoded as if UTF-8 had them. */
char *st_json_take_text(struct st_text *text, char *to);

#endif
