/* crc32c.h - the checksum of Castagnoli, as in iSCSI (RFC 3720)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_CRC32C_H
#define ST_SOURCE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t st_crc32c(const void *data, size_t size);

#endif
