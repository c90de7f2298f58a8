/* bits.h - reads bits, and single Huffman symbols without the fast tables
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_BITS_H
#define ST_CODEC_JPEG_BITS_H

#include "codec/jpeg/tables.h"

#include <string.h>

#define ST_INLINE      static inline __attribute__((always_inline))
#define ST_LIKELY(x)   __builtin_expect(!!(x), 1)
#define ST_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Keeps a value in one register up to this point. Otherwise compilers may extract in every iteration the
 * parts of it that are needed only here, which is rarely reached. */
#define ST_KEEP_WHOLE(x) __asm__("" : "+r"(x))

struct st_jpeg_bits {
    uint64_t word;  /* the next bits, first one on top */
    uint32_t count; /* number of valid bits; those below are zero or equal the next bits */
    const uint8_t *next; /* the byte after them */
};

ST_INLINE uint64_t st_jpeg_load(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Afterwards at least 56 bits are valid. Branch-free: bits that are already there are or-ed in again. */
ST_INLINE void st_jpeg_refill(struct st_jpeg_bits *b)
{
    b->word |= st_jpeg_load(b->next) >> b->count;
    b->next += (63 - b->count) >> 3;
    b->count |= 56;
}

ST_INLINE void st_jpeg_drop(struct st_jpeg_bits *b, uint32_t bits)
{
    b->word <<= bits;
    b->count -= bits;
}

ST_INLINE uint32_t st_jpeg_position(const struct st_jpeg_bits *b, const uint8_t *base)
{
    return (uint32_t)(b->next - base) * 8 - b->count;
}

ST_INLINE void st_jpeg_seek(struct st_jpeg_bits *b, const uint8_t *base, uint32_t position)
{
    const uint32_t odd = position & 7;
    b->next = base + (position >> 3);
    b->word = st_jpeg_load(b->next) << odd;
    b->next += 7;
    b->count = 56 - odd;
}

/* The value of the first `size` bits (0 to 15): a leading 0 means negative. */
ST_INLINE int32_t st_jpeg_value(uint64_t word, uint32_t size)
{
    const uint64_t sign = (uint64_t)((int64_t)word >> 63); /* all ones: not negative */
    const int32_t size_of_it = (int32_t)((word ^ ~sign) >> 1 >> (63 - size)), negative = (int32_t)~sign;
    return (size_of_it ^ negative) - negative;
}

/* The symbol at the start of at least 16 valid bits; its length is 0 if there is no such code. */
ST_INLINE uint32_t st_jpeg_symbol(const struct st_jpeg_canon *canon, uint64_t word, uint32_t *length)
{
    const uint32_t front = (uint32_t)(word >> 48);
    uint32_t bits = 1;
    for (uint32_t k = 1; k <= 16; k++)
        bits += front >= canon->limit[k];
    *length = bits <= 16 ? bits : 0;
    return bits <= 16 ? canon->symbols[(canon->offset[bits] + (int32_t)(front >> (16 - bits))) & 255]
                      : 0;
}

#endif
