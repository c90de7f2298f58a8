/* sized.h - structures of callers that were compiled with another version of the header
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_API_SIZED_H
#define ST_API_SIZED_H

#include "base/err.h"

/* Copies what both sides know of a structure that begins with its size. `own` holds the defaults. An earlier
 * header has fewer fields, a later one more; a size that no header has is refused. */
int st_sized_take(void *own, size_t own_size, const void *given, const char *what, struct stoker_error *err);

#endif
