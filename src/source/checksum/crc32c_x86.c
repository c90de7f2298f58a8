/* crc32c_x86.c - CRC-32C with the SSE 4.2 instruction: 8 bytes in about one cycle
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/checksum/crc32c_streams.h"

#include <nmmintrin.h>

static inline crc_register take_word(crc_register crc, uint64_t word)
{
    return _mm_crc32_u64(crc, word);
}
static inline uint32_t take_byte(uint32_t crc, uint8_t byte) { return _mm_crc32_u8(crc, byte); }

uint32_t st_crc32c_run_x86(uint32_t crc, const uint8_t *at, size_t size)
{
    return run_streams(crc, at, size);
}
