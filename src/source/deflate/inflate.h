/* inflate.h - inflates a whole buffer of known size
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_DEFLATE_INFLATE_H
#define ST_SOURCE_DEFLATE_INFLATE_H

#include "base/mem.h"
#include "base/pixels.h"

enum st_wrapping { ST_WRAPPING_NONE, ST_WRAPPING_ZLIB };

/* Fills `out` with exactly `size` bytes; false if the stream is damaged, shorter or longer, or if out of
 * memory. Any thread. */
bool st_inflate(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size);
/* The same without a library, which is faster for some streams and slower for others. */
bool st_inflate_here(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size);
/* The checksum of zip and gzip. */
uint32_t st_crc32(const void *data, uint64_t size);

/* Deflate expands a byte to at most 1,032: a larger stated size is impossible. */
static inline bool st_inflate_possible(uint64_t deflated, uint64_t size)
{
    return size <= 1032 || (size - 1032) / 1032 <= deflated;
}

#endif
