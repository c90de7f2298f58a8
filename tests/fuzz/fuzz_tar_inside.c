/* fuzz_tar_inside.c - the index that a tar file holds itself: what it says is never just believed
 *
 * Its checksum is put right first, or hardly any input would get past it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/index/index.h"
#include "source/tar/members.h"
#include "source/tar/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMBERS = 3, MOST = 1 << 16 };

/* As `stoker pack` writes it: no owner, no time. */
static void put_header(uint8_t *block, const char *name, size_t size)
{
    unsigned sum = 8 * ' ';
    char digits[12];
    memset(block, 0, ST_TAR_BLOCK);
    memcpy(block, name, strlen(name));
    memcpy(block + 100,
           "0000644\0"
           "0000000\0"
           "0000000",
           24);
    snprintf(digits, sizeof digits, "%011o", (unsigned)size);
    memcpy(block + 124, digits, 12);
    memcpy(block + 136, "00000000000", 12);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    for (int i = 0; i < ST_TAR_BLOCK; i++)
        sum += i < 148 || i >= 156 ? block[i] : 0;
    snprintf(digits, 8, "%06o", sum);
    memcpy(block + 148, digits, 7);
    block[155] = ' ';
}

/* What was taken must be what is there: three members, each a sample. */
static void check(const struct st_shard_index *index)
{
    if (index->sample_count != MEMBERS || index->part_count != MEMBERS)
        abort();
    for (uint64_t i = 0; i < MEMBERS; i++)
        if (index->parts[i].start != 1024 * i || index->parts[i].end != 1024 * i + 517 ||
            index->text[index->keys[i]] != (char)('a' + i))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t used = 1024 * MEMBERS + ST_TAR_BLOCK, end = used + st_align(size, ST_TAR_BLOCK) + 1024;
    uint8_t *bytes = size <= MOST ? calloc(end, 1) : NULL;
    struct st_shard_index index = {0};
    if (!bytes)
        return 0;
    for (int i = 0; i < MEMBERS; i++) {
        const char name[] = {(char)('a' + i), '.', 'b', 'i', 'n', '\0'};
        put_header(bytes + 1024 * i, name, 5);
        memcpy(bytes + 1024 * i + ST_TAR_BLOCK, "12345", 5);
    }
    put_header(bytes + 1024 * MEMBERS, "__index__", size);
    if (size)
        memcpy(bytes + used, data, size);
    if (size >= sizeof(struct st_shard_header))
        st_index_seal(bytes + used, size);
    struct st_window window = {.path = "fuzz", .memory = bytes, .end = end};
    if (st_tar_inside(&window, &index))
        check(&index);
    st_shard_index_free(&index);
    free(bytes);
    return 0;
}
