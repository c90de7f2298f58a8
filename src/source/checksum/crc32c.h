/* crc32c.h - CRC-32C (Castagnoli), as in iSCSI (RFC 3720)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_CHECKSUM_CRC32C_H
#define ST_SOURCE_CHECKSUM_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define ST_CRC32C_POLYNOMIAL 0x82f63b78u /* reflected: bit 31 is x^0, and x^32 is left out */

/* Uses the CPU's instructions for CRCs or carry-less products, if it has them. */
uint32_t st_crc32c(const void *data, size_t size);
/* Continues from the checksum of the preceding bytes; st_crc32c starts from 0. */
uint32_t st_crc32c_more(uint32_t crc, const void *data, size_t size);

/* The implementations, for tests. Each works on the inverted checksum. */
typedef uint32_t st_crc32c_run(uint32_t inverted, const uint8_t *at, size_t size);
st_crc32c_run st_crc32c_run_c;
st_crc32c_run st_crc32c_run_x86; /* x86-64 with SSE 4.2 */
st_crc32c_run st_crc32c_run_avx512; /* with SSE 4.2, AVX-512 and VPCLMULQDQ */
st_crc32c_run st_crc32c_run_arm; /* aarch64 with the CRC extension */
/* The fastest one that this CPU supports. */
st_crc32c_run *st_crc32c_best(void);

#endif
