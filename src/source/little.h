/* little.h - little-endian numbers at any address
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_SOURCE_LITTLE_H
#define ST_SOURCE_LITTLE_H

#include <stdint.h>

static inline uint32_t st_u16(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }
static inline uint32_t st_u32(const uint8_t *at) { return st_u16(at) | st_u16(at + 2) << 16; }
static inline uint64_t st_u64(const uint8_t *at) { return st_u32(at) | (uint64_t)st_u32(at + 4) << 32; }

#endif
