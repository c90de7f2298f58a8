/* fuzz_inflate.c - deflated streams, against zlib: what it reads is read here, what it refuses is
 * refused
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/deflate/inflate.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 1 << 17 };

/* Whether zlib finds the stream's end, and how much it wrote by then or until the damage. */
static bool by_zlib(const uint8_t *data, size_t size, uint8_t *out, uint64_t *made, bool *full)
{
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)data,
                  .avail_in = (unsigned)size,
                  .next_out = out,
                  .avail_out = ROOM};
    if (inflateInit2(&z, -15) != Z_OK)
        abort();
    const int rc = inflate(&z, Z_FINISH);
    *made = z.total_out;
    *full = !z.avail_out && rc != Z_STREAM_END;
    inflateEnd(&z);
    return rc == Z_STREAM_END;
}

/* In memory of exactly that size, so that every byte beyond is noticed. */
static bool by_us(const uint8_t *data, size_t size, const uint8_t *expected, uint64_t made)
{
    uint8_t *out = malloc(made ? made : 1);
    if (!out)
        abort();
    const bool read = st_inflate_here(ST_WRAPPING_NONE, (struct st_bytes){data, size}, out, made);
    if (read && memcmp(out, expected, made))
        abort();
    free(out);
    return read;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t expected[ROOM];
    uint64_t made;
    bool full;
    const bool read = by_zlib(data, size, expected, &made, &full);
    if (full) /* longer than there is room for */
        return 0;
    if (by_us(data, size, expected, made) != read || by_us(data, size, expected, made + 1) ||
        (made && by_us(data, size, expected, made - 1)))
        abort();
    return 0;
}
