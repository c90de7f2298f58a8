/* crc32c_arm.c - CRC-32C with the Armv8 instruction: about 8 bytes in 2 cycles
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/crc32c.h"

#include <arm_acle.h>
#include <string.h>

uint32_t st_crc32c_run_arm(uint32_t crc, const uint8_t *at, size_t size)
{
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        crc = __crc32cd(crc, word);
    }
    for (; size; size--, at++)
        crc = __crc32cb(crc, *at);
    return crc;
}
