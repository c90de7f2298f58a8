/* inflate.c - deflated bytes whose size is known, all at once
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/inflate.h"
#include "st_config.h"

#if ST_HAVE_DEFLATE
#include <libdeflate.h>

bool st_inflate(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size)
{
    struct libdeflate_decompressor *own = libdeflate_alloc_decompressor();
    if (!own)
        return false;
    /* Without a place for the size, less than `size` bytes is an error too. */
    const enum libdeflate_result result =
        wrapping == ST_WRAPPING_ZLIB
            ? libdeflate_zlib_decompress(own, in.data, in.size, out, size, NULL)
            : libdeflate_deflate_decompress(own, in.data, in.size, out, size, NULL);
    libdeflate_free_decompressor(own);
    return result == LIBDEFLATE_SUCCESS;
}

uint32_t st_crc32(const void *data, uint64_t size) { return libdeflate_crc32(0, data, size); }

#else
#include <limits.h>
#include <zlib.h>

bool st_inflate(enum st_wrapping wrapping, struct st_bytes in, uint8_t *out, uint64_t size)
{
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)in.data};
    uint64_t left_in = in.size, left_out = size;
    uint8_t beyond;
    if (inflateInit2(&z, wrapping == ST_WRAPPING_ZLIB ? 15 : -15) != Z_OK)
        return false;
    int rc = Z_OK;
    z.next_out = out;
    while (rc == Z_OK) {
        if (!z.avail_in && left_in) {
            z.avail_in = left_in < UINT_MAX ? (unsigned)left_in : UINT_MAX;
            left_in -= z.avail_in;
        }
        if (!z.avail_out && left_out) {
            z.avail_out = left_out < UINT_MAX ? (unsigned)left_out : UINT_MAX;
            left_out -= z.avail_out;
        } else if (!z.avail_out) { /* only the end may follow */
            z.next_out = &beyond;
            z.avail_out = 1;
        }
        rc = inflate(&z, Z_NO_FLUSH);
        if (z.next_out == &beyond + 1)
            rc = Z_DATA_ERROR;
    }
    const bool whole = rc == Z_STREAM_END && z.total_out == size;
    inflateEnd(&z);
    return whole;
}

uint32_t st_crc32(const void *data, uint64_t size) { return (uint32_t)crc32_z(0, data, size); }

#endif
