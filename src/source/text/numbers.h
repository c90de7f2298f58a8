/* numbers.h - parses numbers written as text, as Python's int() and float() do
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TEXT_NUMBERS_H
#define ST_SOURCE_TEXT_NUMBERS_H

#include "base/pixels.h"
#include "source/text/cursor.h"

#include <stdbool.h>
#include <stdint.h>

/* Surrounding white space is ignored; anything else that is not part of the number makes these return
 * false, and so does an integer that does not fit. */
bool st_text_int(struct st_bytes text, int64_t *out);
/* The decimal separator is a point in every locale. */
bool st_text_float(struct st_bytes text, double *out);
/* Consumes a number as JSON writes it, if one comes next; blanks are not skipped. Its last bit is that
 * of Python's float(). */
bool st_text_take_number(struct st_text *text, double *out);

#endif
