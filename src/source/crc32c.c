/* crc32c.c - the checksum of Castagnoli, eight bytes a step
 *
 * The tables are made anew for each call: that takes microseconds, and what is summed here takes more.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/crc32c.h"

static void make_tables(uint32_t table[8][256])
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
        table[0][byte] = crc;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++)
            table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 255];
}

uint32_t st_crc32c(const void *data, size_t size)
{
    uint32_t table[8][256];
    make_tables(table);
    const uint8_t *at = data;
    uint32_t crc = ~0u;
    for (; size >= 8; size -= 8, at += 8) {
        crc ^= at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        crc = table[7][crc & 255] ^ table[6][crc >> 8 & 255] ^ table[5][crc >> 16 & 255] ^
              table[4][crc >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^
              table[0][at[7]];
    }
    for (; size; size--, at++)
        crc = crc >> 8 ^ table[0][(crc ^ *at) & 255];
    return ~crc;
}
