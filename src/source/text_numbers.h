/* text_numbers.h - numbers written as text, as Python's int() and float() take them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_TEXT_NUMBERS_H
#define ST_SOURCE_TEXT_NUMBERS_H

#include "base/pixels.h"

#include <stdbool.h>
#include <stdint.h>

/* White space around the number does not count; all else must belong to it. False too where it does not
 * fit. */
bool st_text_whole(struct st_bytes text, int64_t *out);
/* Whatever the process's locale says, the point is a point. */
bool st_text_real(struct st_bytes text, double *out);

#endif
