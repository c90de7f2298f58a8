/* load.h - loads a whole file into memory, decompressing it if necessary
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LOAD_H
#define ST_SOURCE_LOAD_H

#include "source/held.h"

/* Whether the file begins like a gzip or zstd file. */
bool st_load_is_packed(const struct st_held *file);
/* Reads the whole file and decompresses it if it is compressed. Fails if it exceeds `limit` bytes before
 * or after, or if it expands implausibly (st_unpack_limit). */
int st_load(struct st_buffer *out, const struct st_held *file, uint64_t limit, struct stoker_error *err);

#endif
