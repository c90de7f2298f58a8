/* fuzz_shard_index.c - an archive's kept index is a file that anybody may have damaged
 *
 * The checksum is put right first, or hardly any input would get past it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/index.h"
#include "source/shards/index.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_shard_index index;
    volatile uint64_t read = 0;
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    if (size >= sizeof(struct st_shard_header))
        st_index_seal(bytes, size);
    for (uint64_t kind = 1; kind <= 2; kind++)
        if (st_shard_index_load(&index, bytes, size, kind))
            for (uint64_t i = 0; i < index.sample_count; i++) {
                read += index.keys ? strlen(index.text + index.keys[i]) : 0;
                for (uint64_t part = st_shard_first(&index, i);
                     part < (index.firsts ? index.firsts[i + 1] : i + 1); part++)
                    read += index.parts[part].end - index.parts[part].start +
                            (index.keys ? strlen(index.text + index.suffixes[index.part_suffixes[part]])
                                        : 0);
            }
    free(bytes);
    return 0;
}
