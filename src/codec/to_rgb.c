/* to_rgb.c - converts rows of packed pixels, as stored in files, to RGB bytes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/to_rgb.h"

#include <string.h>

static inline void grey(uint8_t *rgb, uint8_t value) { rgb[0] = rgb[1] = rgb[2] = value; }

static inline uint8_t clip(int64_t value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)value;
}

static void from_bytes(const struct st_packing *p, const uint8_t *in, uint32_t count, uint8_t *rgb)
{
    const uint32_t step = p->bits / 8, r = p->at[0], g = p->at[1], b = p->at[2];
    if (step == 3 && r == 0 && g == 1 && b == 2) {
        memcpy(rgb, in, 3 * (size_t)count);
    } else if (step == 1) {
        for (uint32_t i = 0; i < count; i++)
            grey(rgb + 3 * (size_t)i, in[i]);
    } else if (step == 4 && r == 0 && g == 1 && b == 2) {
        for (uint32_t i = 0; i + 1 < count; i++, in += 4, rgb += 3)
            memcpy(rgb, in, 4); /* the fourth byte is overwritten by the next pixel */
        if (count > 0)
            memcpy(rgb, in, 3);
    } else {
        for (uint32_t i = 0; i < count; i++, in += step, rgb += 3) {
            rgb[0] = in[r];
            rgb[1] = in[g];
            rgb[2] = in[b];
        }
    }
}

static void from_table(const struct st_packing *p, const uint8_t *row, uint32_t x, uint32_t count,
                       uint8_t *rgb)
{
    if (p->bits >= 8) {
        const uint32_t step = p->bits / 8;
        const uint8_t *in = row + (size_t)x * step;
        for (uint32_t i = 0; i < count; i++, in += step, rgb += 3)
            memcpy(rgb, p->table[*in], 3);
        return;
    }
    const uint32_t mask = (1u << p->bits) - 1;
    for (uint32_t i = 0; i < count; i++, rgb += 3) {
        const uint64_t bit = (uint64_t)(x + i) * p->bits;
        const uint32_t index = row[bit / 8] >> (8 - p->bits - bit % 8) & mask;
        memcpy(rgb, p->table[index], 3);
    }
}

static void from_int(const struct st_packing *p, const uint8_t *in, uint32_t count, uint8_t *rgb)
{
    for (uint32_t i = 0; i < count; i++, in += p->bits / 8, rgb += 3) {
        int64_t value;
        if (p->bits == 16) {
            const uint32_t v = p->big_endian ? st_be16(in) : st_le16(in);
            value = p->is_signed ? (int16_t)v : (int64_t)v;
        } else {
            value = (int32_t)(p->big_endian ? st_be32(in) : st_le32(in));
        }
        grey(rgb, clip(value));
    }
}

static void from_int12(const uint8_t *row, uint32_t x, uint32_t count, uint8_t *rgb)
{
    for (uint32_t i = x; i < x + count; i++, rgb += 3) {
        const uint8_t *in = row + (size_t)(i / 2) * 3;
        grey(rgb, clip(i % 2 ? (in[1] & 15) << 8 | in[2] : in[0] << 4 | in[1] >> 4));
    }
}

static void from_float(const struct st_packing *p, const uint8_t *in, uint32_t count, uint8_t *rgb)
{
    for (uint32_t i = 0; i < count; i++, in += 4, rgb += 3) {
        const uint32_t bits = p->big_endian ? st_be32(in) : st_le32(in);
        float value;
        memcpy(&value, &bits, sizeof value);
        grey(rgb, value >= 255 ? 255 : value > 0 ? (uint8_t)value : 0); /* NaN: 0 */
    }
}

static void from_bits(const struct st_packing *p, const uint8_t *in, uint32_t count, uint8_t *rgb)
{
    const uint32_t green_max = (1u << p->green_bits) - 1;
    for (uint32_t i = 0; i < count; i++, in += 2, rgb += 3) {
        const uint32_t v = st_le16(in);
        rgb[0] = (uint8_t)((v >> (5 + p->green_bits) & 31) * 255 / 31);
        rgb[1] = (uint8_t)((v >> 5 & green_max) * 255 / green_max);
        rgb[2] = (uint8_t)((v & 31) * 255 / 31);
    }
}

static void from_cmyk(const struct st_packing *p, const uint8_t *in, uint32_t count, uint8_t *rgb)
{
    for (uint32_t i = 0; i < count; i++, in += p->bits / 8, rgb += 3) {
        const uint32_t white = 255u - in[p->at[3]];
        for (int c = 0; c < 3; c++) {
            const uint32_t ink = in[p->at[c]] * white + 128;
            rgb[c] = clip((int64_t)white - (((ink >> 8) + ink) >> 8));
        }
    }
}

static void from_premultiplied(const struct st_packing *p, const uint8_t *in, uint32_t count,
                               uint8_t *rgb)
{
    for (uint32_t i = 0; i < count; i++, in += p->bits / 8, rgb += 3) {
        const int alpha = in[p->at[3]];
        for (int c = 0; c < 3; c++)
            rgb[c] = alpha ? clip(in[p->at[c]] * 255 / alpha) : 0;
    }
}

void st_to_rgb(const struct st_packing *p, const uint8_t *row, uint32_t x, uint32_t count, uint8_t *rgb)
{
    const uint8_t *in = row + (size_t)x * (p->bits / 8);
    switch (p->kind) {
    case ST_PACK_BYTES:
        from_bytes(p, in, count, rgb);
        return;
    case ST_PACK_TABLE:
        from_table(p, row, x, count, rgb);
        return;
    case ST_PACK_INT:
        from_int(p, in, count, rgb);
        return;
    case ST_PACK_INT12:
        from_int12(row, x, count, rgb);
        return;
    case ST_PACK_FLOAT:
        from_float(p, in, count, rgb);
        return;
    case ST_PACK_BITS:
        from_bits(p, in, count, rgb);
        return;
    case ST_PACK_CMYK:
        from_cmyk(p, in, count, rgb);
        return;
    case ST_PACK_PREMULTIPLIED:
        from_premultiplied(p, in, count, rgb);
        return;
    }
}

void st_grey_table(uint8_t table[256][3], uint32_t bits, bool inverted)
{
    const uint32_t top = (1u << bits) - 1;
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t level = (i & top) * 255 / top;
        grey(table[i], (uint8_t)(inverted ? 255 - level : level));
    }
}

int st_rgb_take(struct st_view *view, struct st_arena *arena, uint32_t width, uint32_t height,
                struct stoker_error *err)
{
    uint64_t row = (uint64_t)width * 3, bytes;
    uint8_t *data = st_mul(row, height, &bytes) ? st_arena_take(arena, bytes) : NULL;
    if (!data)
        return st_fail(err, STOKER_ENOMEM, "no memory for %u x %u pixels", width, height);
    *view = (struct st_view){data, (ptrdiff_t)row, (int32_t)width, (int32_t)height, 3};
    return STOKER_OK;
}
