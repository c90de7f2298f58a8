/* load.h - a whole file in memory, unpacked where it is packed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LOAD_H
#define ST_SOURCE_LOAD_H

#include "source/held.h"

/* Whether the file begins as a gzip or zstd file does. */
bool st_load_is_packed(const struct st_held *file);
/* Reads it all, and unpacks it if it is packed. More than `limit` bytes, before or after, are refused,
 * and so is what unpacks to far more than data do (st_unpack_limit). */
int st_load(struct st_buffer *out, const struct st_held *file, uint64_t limit, struct stoker_error *err);

#endif
