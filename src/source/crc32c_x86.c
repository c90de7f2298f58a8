/* crc32c_x86.c - CRC-32C with the SSE 4.2 instruction: about 8 bytes in 3 cycles
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "source/crc32c.h"

#include <nmmintrin.h>
#include <string.h>

uint32_t st_crc32c_run_x86(uint32_t crc, const uint8_t *at, size_t size)
{
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size; size--, at++)
        crc = _mm_crc32_u8(crc, *at);
    return crc;
}
