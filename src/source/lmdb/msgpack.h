/* msgpack.h - values in MessagePack: enough of it to find an image and its label
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LMDB_MSGPACK_H
#define ST_SOURCE_LMDB_MSGPACK_H

#include "base/pixels.h"

#include <stdbool.h>
#include <stdint.h>

/* An array or a map that ends where the bytes end. */
bool st_msgpack_is_document(struct st_bytes bytes);
/* An array of two, one of them bytes and one a whole number, in any order; false for all else, and for a
 * number beyond int64. Nothing is copied. */
bool st_msgpack_pair(struct st_bytes bytes, struct st_bytes *data, int64_t *number);

#endif
