/* crc32c.c - CRC-32C (Castagnoli): picks the implementation; plain C, eight bytes per step
 *
 * The tables are rebuilt for each long run, which takes microseconds, less than the checksum itself.
 * Short runs are computed bit by bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/checksum/crc32c.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#endif

enum { SHORT = 256 };

static uint32_t step_bits(uint32_t crc)
{
    for (int bit = 0; bit < 8; bit++)
        crc = crc >> 1 ^ (crc & 1 ? ST_CRC32C_POLYNOMIAL : 0);
    return crc;
}

static void make_tables(uint32_t table[8][256])
{
    for (uint32_t byte = 0; byte < 256; byte++)
        table[0][byte] = step_bits(byte);
    for (uint32_t byte = 0; byte < 256; byte++)
        for (int k = 1; k < 8; k++)
            table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 255];
}

static uint32_t run_tables(uint32_t crc, const uint8_t *at, size_t size)
{
    uint32_t table[8][256];
    make_tables(table);
    for (; size >= 8; size -= 8, at += 8) {
        crc ^= at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        crc = table[7][crc & 255] ^ table[6][crc >> 8 & 255] ^ table[5][crc >> 16 & 255] ^
              table[4][crc >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^
              table[0][at[7]];
    }
    for (; size; size--, at++)
        crc = crc >> 8 ^ table[0][(crc ^ *at) & 255];
    return crc;
}

uint32_t st_crc32c_run_c(uint32_t crc, const uint8_t *at, size_t size)
{
    if (size >= SHORT)
        return run_tables(crc, at, size);
    for (; size; size--, at++)
        crc = step_bits(crc ^ *at);
    return crc;
}

st_crc32c_run *st_crc32c_best(void)
{
#if defined(__aarch64__)
    if (getauxval(AT_HWCAP) & HWCAP_CRC32)
        return st_crc32c_run_arm;
#elif defined(__x86_64__)
    if (!__builtin_cpu_supports("sse4.2"))
        return st_crc32c_run_c;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq")
               ? st_crc32c_run_avx512
               : st_crc32c_run_x86;
#endif
    return st_crc32c_run_c;
}

uint32_t st_crc32c_more(uint32_t crc, const void *data, size_t size)
{
    return ~st_crc32c_best()(~crc, data, size);
}

uint32_t st_crc32c(const void *data, size_t size) { return st_crc32c_more(0, data, size); }
