/* to_rgb.h - converts rows of packed pixels, as stored in files, to RGB bytes
 *
 * The rules are those of Pillow's open followed by convert("RGB"): alpha is dropped, not blended; wide
 * integers and floats are clipped to 0..255, not scaled.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_TO_RGB_H
#define ST_CODEC_TO_RGB_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

#include <stdbool.h>

enum st_pack {
    ST_PACK_BYTES, /* three bytes of each pixel are red, green and blue */
    ST_PACK_TABLE, /* a table index: 1, 2 or 4 bits, high bits first, or the pixel's first byte */
    ST_PACK_INT,   /* an integer of 16 bits, or of 32 bits (always signed), clipped */
    ST_PACK_INT12, /* two integers in three bytes, high bits first, clipped */
    ST_PACK_FLOAT, /* 32 bits, clipped */
    ST_PACK_BITS,  /* 16 bits, little endian: blue lowest, five bits for red and blue */
    ST_PACK_CMYK,  /* four bytes per pixel, 0: no ink */
    ST_PACK_PREMULTIPLIED, /* RGB multiplied by alpha, which is undone */
};

struct st_packing {
    enum st_pack kind;
    uint32_t bits; /* from one pixel to the next */
    uint8_t
        at[4]; /* BYTES, CMYK, PREMULTIPLIED: which byte of the pixel is R, G, B, A (or C, M, Y, K) */
    bool big_endian, is_signed; /* INT, FLOAT */
    uint8_t green_bits;         /* BITS: 5 or 6 */
    const uint8_t (*table)[3];  /* TABLE: 256 colours */
};

/* Bytes of a row of `pixels` pixels. */
static inline uint64_t st_packed_size(const struct st_packing *packing, uint64_t pixels)
{
    return (pixels * packing->bits + 7) / 8;
}

/* Converts pixels x to x + count of a packed row to 3 * count bytes. */
void st_to_rgb(const struct st_packing *packing, const uint8_t *row, uint32_t x, uint32_t count,
               uint8_t *rgb);

/* Grey levels of 1, 2, 4 or 8 bits, scaled to 0..255. */
void st_grey_table(uint8_t table[256][3], uint32_t bits, bool inverted);

/* Allocates RGB pixels from the arena, rows without gaps. */
int st_rgb_take(struct st_view *view, struct st_arena *arena, uint32_t width, uint32_t height,
                struct stoker_error *err);

static inline uint32_t st_le16(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8; }
static inline uint32_t st_le32(const uint8_t *p) { return st_le16(p) | st_le16(p + 2) << 16; }
static inline uint32_t st_be16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static inline uint32_t st_be32(const uint8_t *p) { return st_be16(p) << 16 | st_be16(p + 2); }

#endif
