/* fuzz_tar_idx.c - another program's index of a tar file: what it says is never just believed
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/tar/scan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "NAME.bin" with a few bytes: a header of which only the sum and the size count. */
static void put_member(uint8_t *block, char name)
{
    unsigned sum = 8 * ' ';
    memset(block, 0, 1024);
    block[0] = (uint8_t)name;
    memcpy(block + 1, ".bin", 4);
    memcpy(block + 124, "00000000005", 11);
    block[156] = '0';
    for (int i = 0; i < 512; i++)
        sum += i < 148 || i >= 156 ? block[i] : 0;
    for (int i = 5; i >= 0; i--, sum >>= 3)
        block[148 + i] = (uint8_t)('0' + (sum & 7));
    memcpy(block + 512, "12345", 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t archive[3 * 1024 + 1024] = {0};
    for (int i = 0; i < 3; i++)
        put_member(archive + 1024 * i, (char)('a' + i));
    struct st_window window = {.path = "fuzz", .memory = archive, .end = sizeof archive};
    struct st_shard_builder builder = {.named = true};
    struct st_shard_index index = {0};
    const struct st_shard_stamp stamp = {.size = sizeof archive};
    if (st_shard_kind_tar.import(&window, (struct st_bytes){data, size}, &builder) &&
        !st_shard_build(&index, &builder, st_shard_kind_tar.number, &stamp, NULL) &&
        index.part_count > 3)
        abort(); /* three members are there */
    st_shard_index_free(&index);
    st_shard_builder_free(&builder);
    return 0;
}
