/* crc32c_arm.c - CRC-32C with the Armv8 instruction: 8 bytes in about one cycle
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/checksum/crc32c_streams.h"

#include <arm_acle.h>

static inline crc_register take_word(crc_register crc, uint64_t word) { return __crc32cd(crc, word); }
static inline uint32_t take_byte(uint32_t crc, uint8_t byte) { return __crc32cb(crc, byte); }

uint32_t st_crc32c_run_arm(uint32_t crc, const uint8_t *at, size_t size)
{
    return run_streams(crc, at, size);
}
