/* fuzz_shard_index.c - an archive's kept index is a file that anybody may have damaged
 *
 * The checksum is put right first, or hardly any input would get past it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/index/index.h"
#include "source/shards/index.h"
#include "source/shards/list.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same bytes as a list of one archive, whose header is put right, and whose entry is taken as it is.
 * Frees them. */
static uint64_t find_listed(uint8_t *bytes, size_t size)
{
    enum { VERSION = 8, KIND = 24, COUNT = 32, ENTRY = 40, FRONT = 88 };
    const uint32_t version = 1;
    const uint64_t one = 1;
    uint64_t inode;
    int64_t changed_ns, archive_size, modified_ns;
    struct st_shard_index index;
    if (size < FRONT) {
        free(bytes);
        return 0;
    }
    memcpy(bytes, "stixlist", 8);
    memcpy(bytes + VERSION, &version, sizeof version);
    memcpy(bytes + KIND, &one, sizeof one);
    memcpy(bytes + COUNT, &one, sizeof one);
    memcpy(&inode, bytes + ENTRY, 8);
    memcpy(&changed_ns, bytes + ENTRY + 8, 8);
    memcpy(&archive_size, bytes + ENTRY + 16, 8);
    memcpy(&modified_ns, bytes + ENTRY + 24, 8);
    const struct stat info = {.st_ino = inode,
                              .st_size = archive_size,
                              .st_ctim = {changed_ns / 1000000000, changed_ns % 1000000000},
                              .st_mtim = {modified_ns / 1000000000, modified_ns % 1000000000}};
    st_index_seal(bytes, FRONT);
    struct st_shard_list *list = st_shard_list_take(bytes, size, 1);
    const bool found = list && st_shard_list_find(list, &info, &index);
    const uint64_t samples = found ? index.sample_count : 0;
    st_shard_list_free(list);
    return samples;
}

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
    read += find_listed(bytes, size);
    return 0;
}
