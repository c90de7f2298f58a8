/* replace.h - values replaced by those of tables: for each kind of CPU that has instructions for it
 *
 * Included by colour_rows.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_COLOUR_REPLACE_H
#define ST_OP_COLOUR_REPLACE_H

#include "base/three_channels.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* Value by value, but in words. Value k is of channel (first + k) % channels. */
static inline void replace_eight(uint8_t *to, const uint8_t *from, const uint8_t (*table)[256],
                                 int first, int channels)
{
    uint64_t values, out = 0;
    memcpy(&values, from, sizeof values);
    for (int k = 0; k < 8; k++)
        out |= (uint64_t)table[(first + k) % channels][values >> (8 * k) & 255] << (8 * k);
    memcpy(to, &out, sizeof out);
}

static inline void replace_each(uint8_t *out, const uint8_t *row, size_t count, const uint8_t *table)
{
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        replace_eight(out + i, row + i, (const uint8_t(*)[256])table, 0, 1);
    for (; i < count; i++)
        out[i] = table[row[i]];
}

static inline void replace_rgb(uint8_t *out, const uint8_t *row, size_t count,
                               const uint8_t (*table)[256])
{
    size_t i = 0;
    for (; i + 24 <= 3 * count; i += 24)
        for (int word = 0; word < 3; word++)
            replace_eight(out + i + 8 * word, row + i + 8 * word, table, 2 * word, 3);
    for (; i < 3 * count; i++)
        out[i] = table[i % 3][row[i]];
}

#if defined(__AVX512VBMI__)

struct table_in_registers {
    __m512i part[4];
};

static inline struct table_in_registers table_of(const uint8_t *table)
{
    struct table_in_registers t;
    for (int k = 0; k < 4; k++)
        t.part[k] = _mm512_loadu_si512(table + 64 * k);
    return t;
}

static inline __m512i replaced(const struct table_in_registers *t, __m512i values)
{
    const __m512i low = _mm512_permutex2var_epi8(t->part[0], values, t->part[1]);
    const __m512i high = _mm512_permutex2var_epi8(t->part[2], values, t->part[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(values), high);
}

/* The bytes of a vector that a row still has. */
static inline __mmask64 first_bytes(size_t count) { return count < 64 ? (1ull << count) - 1 : ~0ull; }

static inline void replace_in_one(uint8_t *out, const uint8_t *row, size_t count,
                                  const uint8_t *table)
{
    const struct table_in_registers t = table_of(table);
    for (size_t i = 0; i < count; i += 64) {
        const __mmask64 there = first_bytes(count - i);
        const __m512i values = _mm512_maskz_loadu_epi8(there, row + i);
        _mm512_mask_storeu_epi8(out + i, there, replaced(&t, values));
    }
}

static inline void replace_in_three(uint8_t *out, const uint8_t *row, size_t count,
                                    const uint8_t (*table)[256])
{
    const struct table_in_registers r = table_of(table[0]), g = table_of(table[1]),
                                    b = table_of(table[2]);
    __mmask64 green = 0x2492492492492492, blue = 0x4924924924924924, red = 0x9249249249249249;
    for (size_t i = 0; i < 3 * count; i += 64) {
        const __mmask64 there = first_bytes(3 * count - i), blue_before = blue;
        const __m512i values = _mm512_maskz_loadu_epi8(there, row + i);
        __m512i new = replaced(&r, values);
        new = _mm512_mask_mov_epi8(new, green, replaced(&g, values));
        new = _mm512_mask_mov_epi8(new, blue, replaced(&b, values));
        _mm512_mask_storeu_epi8(out + i, there, new);
        blue = green; /* 64 bytes further on, each byte is of the next channel */
        green = red;
        red = blue_before;
    }
}

#elif defined(__AVX2__)

/* Sixteen tables of sixteen values. A shuffle gives 0 for indices with the highest bit, and the
 * subtraction saturates: after k of them, tables 0 to k have contributed for values of table k, so each
 * is kept as its difference to the one before. */
struct sixteen_tables {
    __m256i part[16];
};

static inline struct sixteen_tables sixteen_of(const uint8_t *table)
{
    struct sixteen_tables t;
    for (int k = 0; k < 16; k++) {
        const __m128i now = _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * k));
        const __m128i before =
            k % 8 ? _mm_loadu_si128((const __m128i *)(const void *)(table + 16 * k - 16))
                  : _mm_setzero_si128();
        t.part[k] = _mm256_broadcastsi128_si256(_mm_xor_si128(now, before));
    }
    return t;
}

static inline __m256i replaced(const struct sixteen_tables *t, __m256i low)
{
    const __m256i sixteen = _mm256_set1_epi8(16);
    __m256i high = _mm256_xor_si256(low, _mm256_set1_epi8(-128)), new = _mm256_setzero_si256();
    for (int k = 0; k < 8; k++) {
        new = _mm256_xor_si256(new, _mm256_shuffle_epi8(t->part[k], low));
        new = _mm256_xor_si256(new, _mm256_shuffle_epi8(t->part[k + 8], high));
        low = _mm256_subs_epi8(low, sixteen);
        high = _mm256_subs_epi8(high, sixteen);
    }
    return new;
}

static inline void replace_in_one(uint8_t *out, const uint8_t *row, size_t count,
                                  const uint8_t *table)
{
    const struct sixteen_tables t = sixteen_of(table);
    size_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const __m256i values = _mm256_loadu_si256((const __m256i *)(const void *)(row + i));
        _mm256_storeu_si256((__m256i *)(void *)(out + i), replaced(&t, values));
    }
    replace_each(out + i, row + i, count - i, table);
}

/* The reverse of st_order_apart. */
static const int8_t order_together[3][3][16] = {
    {{0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5},
     {-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1},
     {-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1}},
    {{-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1},
     {5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10},
     {-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1}},
    {{-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1},
     {-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1},
     {10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15}},
};

static inline __m256i shuffled(__m256i v, const int8_t order[16])
{
    const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)order);
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(half));
}

static inline void put_in_order(const int8_t (*order)[3][16], const __m256i from[3], __m256i to[3])
{
    for (int k = 0; k < 3; k++)
        to[k] = _mm256_or_si256(
            _mm256_or_si256(shuffled(from[0], order[k][0]), shuffled(from[1], order[k][1])),
            shuffled(from[2], order[k][2]));
}

/* Channels apart, channel by channel, and together again. */
static inline void replace_in_three(uint8_t *out, const uint8_t *row, size_t count,
                                    const uint8_t (*table)[256])
{
    enum { SOME = 8, PIXELS = 32 }; /* vectors of a channel at a time; pixels in each */
    size_t i = 0;
    while (i + PIXELS <= count) {
        __m256i channel[SOME][3];
        const size_t left = (count - i) / PIXELS, some = left < SOME ? left : SOME;
        for (size_t k = 0; k < some; k++) {
            const uint8_t *from = row + 3 * (i + PIXELS * k);
            __m256i pixels[3];
            for (int v = 0; v < 3; v++)
                pixels[v] = _mm256_loadu2_m128i((const __m128i *)(const void *)(from + 48 + 16 * v),
                                                (const __m128i *)(const void *)(from + 16 * v));
            put_in_order(st_order_apart, pixels, channel[k]);
        }
        for (int c = 0; c < 3; c++) {
            const struct sixteen_tables t = sixteen_of(table[c]);
            for (size_t k = 0; k < some; k++)
                channel[k][c] = replaced(&t, channel[k][c]);
        }
        for (size_t k = 0; k < some; k++) {
            uint8_t *to = out + 3 * (i + PIXELS * k);
            __m256i pixels[3];
            put_in_order(order_together, channel[k], pixels);
            for (int v = 0; v < 3; v++)
                _mm256_storeu2_m128i((__m128i *)(void *)(to + 48 + 16 * v),
                                     (__m128i *)(void *)(to + 16 * v), pixels[v]);
        }
        i += PIXELS * some;
    }
    replace_rgb(out + 3 * i, row + 3 * i, count - i, table);
}

#elif defined(__aarch64__)

static inline void replace_in_one(uint8_t *out, const uint8_t *row, size_t count,
                                  const uint8_t *table)
{
    const uint8x16x4_t first = vld1q_u8_x4(table), second = vld1q_u8_x4(table + 64),
                       third = vld1q_u8_x4(table + 128), fourth = vld1q_u8_x4(table + 192);
    const uint8x16_t size = vdupq_n_u8(64);
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        uint8x16_t at = vld1q_u8(row + i), new = vqtbl4q_u8(first, at); /* 0 beyond a table */
        new = vqtbx4q_u8(new, second, at = vsubq_u8(at, size));
        new = vqtbx4q_u8(new, third, at = vsubq_u8(at, size));
        new = vqtbx4q_u8(new, fourth, vsubq_u8(at, size));
        vst1q_u8(out + i, new);
    }
    replace_each(out + i, row + i, count - i, table);
}

#define replace_in_three replace_rgb

#else

#define replace_in_one   replace_each
#define replace_in_three replace_rgb

#endif

static void replace(uint8_t *out, const uint8_t *row, size_t count, int32_t channels,
                    const uint8_t (*table)[256])
{
    if (channels == 1)
        replace_in_one(out, row, count, table[0]);
    else
        replace_in_three(out, row, count, table);
}

#endif
