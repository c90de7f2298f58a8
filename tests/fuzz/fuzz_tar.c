/* fuzz_tar.c - tar files: members, grouping, and the index that is made of them
 *
 * The sums of headers are put right first, or hardly any input would get past them.
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

/* Whatever looks like a header becomes one. */
static void seal(uint8_t *block)
{
    unsigned sum = 8 * ' ';
    for (int i = 0; i < ST_TAR_BLOCK; i++)
        sum += i < 148 || i >= 156 ? block[i] : 0;
    char digits[8];
    snprintf(digits, sizeof digits, "%06o", sum & 0777777);
    memcpy(block + 148, digits, 7);
    block[155] = ' ';
}

static void check(const struct st_shard_index *built)
{
    struct st_shard_index loaded;
    uint8_t *bytes = (uint8_t *)(uintptr_t)built->bytes;
    st_index_seal(bytes, built->size);
    if (!st_shard_index_load(&loaded, bytes, built->size, st_shard_kind_tar.number))
        abort(); /* what we make ourselves is sound */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    for (size_t at = 0; at + ST_TAR_BLOCK <= size; at += ST_TAR_BLOCK)
        if (!memcmp(bytes + at + 257, "ustar", 5))
            seal(bytes + at);
    struct st_window window = {.path = "fuzz", .memory = bytes, .end = size};
    struct st_shard_builder builder = {.named = true};
    struct st_shard_index index = {0};
    const struct st_shard_stamp stamp = {.size = size};
    if (!st_shard_kind_tar.scan(&window, 1, &builder, NULL) &&
        !st_shard_build(&index, &builder, st_shard_kind_tar.number, &stamp, NULL))
        check(&index);
    st_shard_index_free(&index);
    st_shard_builder_free(&builder);
    free(bytes);
    return 0;
}
