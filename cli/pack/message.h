/* message.h - writing protocol buffers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CLI_PACK_MESSAGE_H
#define ST_CLI_PACK_MESSAGE_H

#include "cli/pack/pack.h"

/* Each false when out of memory. */
static inline bool pack_put_varint(struct st_buffer *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t size = 0;
    for (; value > 127; value >>= 7)
        bytes[size++] = (uint8_t)(value | 128);
    bytes[size++] = (uint8_t)value;
    return pack_append(out, bytes, size);
}

static inline bool pack_put_number(struct st_buffer *out, uint32_t field, uint64_t value)
{
    return pack_put_varint(out, field << 3) && pack_put_varint(out, value);
}

static inline bool pack_put_bytes(struct st_buffer *out, uint32_t field, const void *bytes,
                                  uint64_t size)
{
    return pack_put_varint(out, field << 3 | 2) && pack_put_varint(out, size) &&
           pack_append(out, bytes, size);
}

#endif
