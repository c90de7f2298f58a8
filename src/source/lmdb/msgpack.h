/* msgpack.h - parses as much MessagePack as it takes to find an image and its label
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_MSGPACK_H
#define ST_SOURCE_LMDB_MSGPACK_H

#include "base/pixels.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether the bytes are exactly one array or map. */
bool st_msgpack_is_document(struct st_bytes bytes);
/* Parses an array of two elements, bytes and an integer in either order; false for anything else, and
 * for a number beyond int64. Nothing is copied. */
bool st_msgpack_pair(struct st_bytes bytes, struct st_bytes *data, int64_t *number);

#endif
