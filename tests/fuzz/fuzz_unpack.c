/* fuzz_unpack.c - gzip, zlib and zstd: nothing comes out beyond the limit, and what was there stays
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/shards/unpack.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum st_packing packings[] = {ST_PACKED_GZIP, ST_PACKED_ZLIB, ST_PACKED_ZSTD};
    enum { LIMIT = 100000 };
    st_packing_of(data, size);
    for (int i = 0; i < 3; i++) {
        struct st_buffer out = {0};
        if (!st_buffer_reserve(&out, 3))
            return 0;
        memcpy(out.data, "abc", 3);
        out.size = 3;
        st_unpack(packings[i], (struct st_bytes){data, size}, LIMIT, &out, "fuzz", NULL);
        if (out.size < 3 || out.size > 3 + LIMIT || memcmp(out.data, "abc", 3))
            abort();
        st_buffer_free(&out);
    }
    return 0;
}
