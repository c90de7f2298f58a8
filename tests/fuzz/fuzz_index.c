/* fuzz_index.c - a kept index is a file that anybody may have damaged
 *
 * The checksum is put right first, or hardly any input would get past it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/index/index.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct st_index index;
    volatile size_t read = 0;
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    if (size >= sizeof(struct st_index_header))
        st_index_seal(bytes, size);
    if (st_index_load(&index, bytes, size)) {
        for (uint64_t i = 0; i < index.class_count; i++)
            read += strlen(index.text + index.classes[i]);
        for (uint64_t i = 0; i < index.sample_count; i++)
            read += strlen(index.text + index.names[i]) +
                    strlen(index.text + index.dirs[index.sample_dirs[i] & ~ST_INDEX_SPECIAL].path);
    }
    free(bytes);
    return 0;
}
