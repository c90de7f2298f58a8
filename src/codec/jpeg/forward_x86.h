/* forward_x86.h - from pixels to the coefficients of a JPEG in vectors of SSE2, AVX2 and AVX-512
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_FORWARD_X86_H
#define ST_CODEC_JPEG_FORWARD_X86_H

#include "base/three_channels.h"
#include "codec/jpeg/kernels.h"
#include "codec/jpeg/transform.h"

#include <immintrin.h>

typedef __m128i vector; /* 8 values of 16 bits: one of each column */

static inline vector pair_of(int16_t a, int16_t b)
{
    return _mm_set1_epi32((int32_t)((uint32_t)(uint16_t)a | (uint32_t)(uint16_t)b << 16));
}

/* The sums of a and b times two constants, and of c and d, rounded. */
static inline vector products(vector a, vector b, vector ab, vector c, vector d, vector cd, int shift)
{
    const vector round = _mm_set1_epi32(1 << (shift - 1));
    const vector low = _mm_add_epi32(_mm_madd_epi16(_mm_unpacklo_epi16(a, b), ab),
                                     _mm_madd_epi16(_mm_unpacklo_epi16(c, d), cd));
    const vector high = _mm_add_epi32(_mm_madd_epi16(_mm_unpackhi_epi16(a, b), ab),
                                      _mm_madd_epi16(_mm_unpackhi_epi16(c, d), cd));
    return _mm_packs_epi32(_mm_srai_epi32(_mm_add_epi32(low, round), shift),
                           _mm_srai_epi32(_mm_add_epi32(high, round), shift));
}

/* As `pass` in C. Sums of eight values fit into 16 bits: -128 * 8 * 4 * 8 is the least. */
static inline __attribute__((always_inline)) void pass_rows(vector v[8], const int up, const int down,
                                                            const int shift)
{
    const vector zero = _mm_setzero_si128();
    const vector even = _mm_set1_epi16((int16_t)(down ? 1 << (down - 1) : 0));
    const vector a0 = _mm_add_epi16(v[0], v[7]), d0 = _mm_sub_epi16(v[0], v[7]);
    const vector a1 = _mm_add_epi16(v[1], v[6]), d1 = _mm_sub_epi16(v[1], v[6]);
    const vector a2 = _mm_add_epi16(v[2], v[5]), d2 = _mm_sub_epi16(v[2], v[5]);
    const vector a3 = _mm_add_epi16(v[3], v[4]), d3 = _mm_sub_epi16(v[3], v[4]);
    const vector outer = _mm_add_epi16(a0, a3), inner = _mm_add_epi16(a1, a2);
    const vector far = _mm_sub_epi16(a0, a3), near = _mm_sub_epi16(a1, a2);
    const vector sum = _mm_add_epi16(outer, inner), difference = _mm_sub_epi16(outer, inner);
    v[0] = _mm_srai_epi16(_mm_add_epi16(_mm_slli_epi16(sum, up), even), down);
    v[4] = _mm_srai_epi16(_mm_add_epi16(_mm_slli_epi16(difference, up), even), down);
    v[2] = products(far, near, pair_of(ST_IDCT_E2A, ST_IDCT_E2B), zero, zero, zero, shift);
    v[6] = products(far, near, pair_of(ST_IDCT_E6A, ST_IDCT_E6B), zero, zero, zero, shift);
    v[1] = products(d0, d1, pair_of(ST_IDCT_01, ST_IDCT_11), d2, d3, pair_of(ST_IDCT_21, ST_IDCT_31),
                    shift);
    v[3] = products(d0, d1, pair_of(ST_IDCT_03, ST_IDCT_13), d2, d3, pair_of(ST_IDCT_23, ST_IDCT_33),
                    shift);
    v[5] = products(d0, d1, pair_of(ST_IDCT_05, ST_IDCT_15), d2, d3, pair_of(ST_IDCT_25, ST_IDCT_35),
                    shift);
    v[7] = products(d0, d1, pair_of(ST_IDCT_07, ST_IDCT_17), d2, d3, pair_of(ST_IDCT_27, ST_IDCT_37),
                    shift);
}

/* Interleaves rows of the upper and the lower half: three times is a transposition. */
static inline __attribute__((always_inline)) void shuffle_rows(vector v[8])
{
    vector out[8];
    for (int k = 0; k < 4; k++) {
        out[2 * k] = _mm_unpacklo_epi16(v[k], v[k + 4]);
        out[2 * k + 1] = _mm_unpackhi_epi16(v[k], v[k + 4]);
    }
    for (int k = 0; k < 8; k++)
        v[k] = out[k];
}

static inline __attribute__((always_inline)) void transform_block(int16_t out[64],
                                                                  const uint8_t *samples, size_t stride)
{
    const vector middle = _mm_set1_epi16(128), zero = _mm_setzero_si128();
    vector v[8];
    for (size_t y = 0; y < 8; y++) {
        const vector bytes = _mm_loadl_epi64((const vector *)(samples + y * stride));
        v[y] = _mm_sub_epi16(_mm_unpacklo_epi8(bytes, zero), middle);
    }
    for (int k = 0; k < 3; k++)
        shuffle_rows(v);
    pass_rows(v, ST_IDCT_BITS - ST_IDCT_SHIFT_1, 0, ST_IDCT_SHIFT_1);
    for (int k = 0; k < 3; k++)
        shuffle_rows(v);
    pass_rows(v, 0, ST_IDCT_BITS - ST_IDCT_SHIFT_1, 2 * ST_IDCT_BITS - ST_IDCT_SHIFT_1);
    for (int k = 0; k < 8; k++)
        _mm_store_si128((vector *)(out + 8 * k), v[k]);
}

#if defined(__AVX512BW__)
/* To zigzag order; returns where the zeros at the end begin. */
static inline uint8_t to_zigzag(int16_t coefs[64], const int16_t v[64])
{
    static const uint8_t natural[64] = ST_JPEG_NATURAL;
    const __m512i low = _mm512_load_si512(v), high = _mm512_load_si512(v + 32);
    const __m256i *const places = (const __m256i *)natural;
    const __m512i first = _mm512_cvtepu8_epi16(_mm256_loadu_si256(places));
    const __m512i second = _mm512_cvtepu8_epi16(_mm256_loadu_si256(places + 1));
    const __m512i a = _mm512_permutex2var_epi16(low, first, high);
    const __m512i b = _mm512_permutex2var_epi16(low, second, high);
    _mm512_store_si512(coefs, a);
    _mm512_store_si512(coefs + 32, b);
    const uint64_t set = _mm512_test_epi16_mask(a, a) | (uint64_t)_mm512_test_epi16_mask(b, b) << 32;
    return (uint8_t)(64 - __builtin_clzll(set | 1));
}
#define ST_JPEG_HAS_ZIGZAG
#endif

#if defined(__AVX2__)
/* Takes 16 pixels apart: one shuffle for each channel and 16 bytes. */
static inline void take_apart(uint8_t *first, uint8_t *second, uint8_t *third, const uint8_t *from)
{
    const vector a = _mm_loadu_si128((const vector *)from);
    const vector b = _mm_loadu_si128((const vector *)(from + 16));
    const vector c = _mm_loadu_si128((const vector *)(from + 32));
    uint8_t *const to[3] = {first, second, third};
    for (int k = 0; k < 3; k++) {
        const vector *const p = (const vector *)st_order_apart[k];
        const vector parts = _mm_or_si128(_mm_shuffle_epi8(a, _mm_loadu_si128(p)),
                                          _mm_shuffle_epi8(b, _mm_loadu_si128(p + 1)));
        _mm_storeu_si128((vector *)to[k],
                         _mm_or_si128(parts, _mm_shuffle_epi8(c, _mm_loadu_si128(p + 2))));
    }
}

static inline __m256i wide(const uint8_t *bytes)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const vector *)bytes));
}

/* 16 values of 32 bits: in each half those that unpack takes from the lower and the upper part. */
typedef struct {
    __m256i low, high;
} wide_sum;

static inline __m256i twice(int16_t a, int16_t b) { return _mm256_broadcastsi128_si256(pair_of(a, b)); }

static inline wide_sum add(wide_sum to, __m256i low, __m256i high, __m256i factors)
{
    return (wide_sum){_mm256_add_epi32(to.low, _mm256_madd_epi16(low, factors)),
                      _mm256_add_epi32(to.high, _mm256_madd_epi16(high, factors))};
}

/* Without their 16 fractional bits. */
static inline void save_sum(uint8_t *out, wide_sum sum)
{
    const __m256i values =
        _mm256_packs_epi32(_mm256_srai_epi32(sum.low, 16), _mm256_srai_epi32(sum.high, 16));
    _mm_storeu_si128((vector *)out, _mm_packus_epi16(_mm256_castsi256_si128(values),
                                                     _mm256_extracti128_si256(values, 1)));
}

/* 16 pixels, as to_ycc in C; twice half of the factors that have more than 15 bits. */
static inline void to_ycc16(uint8_t *y, uint8_t *cb, uint8_t *cr, const uint8_t *red,
                            const uint8_t *green, const uint8_t *blue)
{
    const __m256i r = wide(red), g = wide(green), b = wide(blue), zero = _mm256_setzero_si256();
    const __m256i rg_low = _mm256_unpacklo_epi16(r, g), rg_high = _mm256_unpackhi_epi16(r, g);
    const __m256i bg_low = _mm256_unpacklo_epi16(b, g), bg_high = _mm256_unpackhi_epi16(b, g);
    const __m256i round = _mm256_set1_epi32(1 << 15);
    const __m256i centre = _mm256_set1_epi32((128 << 16) + (1 << 15) - 1);
    const wide_sum red_half = {_mm256_slli_epi32(_mm256_unpacklo_epi16(r, zero), 15),
                               _mm256_slli_epi32(_mm256_unpackhi_epi16(r, zero), 15)};
    const wide_sum blue_half = {_mm256_slli_epi32(_mm256_unpacklo_epi16(b, zero), 15),
                                _mm256_slli_epi32(_mm256_unpackhi_epi16(b, zero), 15)};
    const wide_sum from_red = {_mm256_add_epi32(red_half.low, centre),
                               _mm256_add_epi32(red_half.high, centre)};
    const wide_sum from_blue = {_mm256_add_epi32(blue_half.low, centre),
                                _mm256_add_epi32(blue_half.high, centre)};
    const wide_sum light = add((wide_sum){round, round}, rg_low, rg_high, twice(19595, 19235));
    save_sum(y, add(light, bg_low, bg_high, twice(7471, 19235)));
    save_sum(cb, add(from_blue, rg_low, rg_high, twice(-11059, -21709)));
    save_sum(cr, add(from_red, bg_low, bg_high, twice(-5329, -27439)));
}
#define ST_JPEG_HAS_APART

/* Five pixels at a time, as long as 16 bytes are in the row; returns how many were done. The next are
 * read before these are written. */
static inline size_t swap_ends(uint8_t *rgb, size_t count)
{
    enum { PIXELS = 5 };
    const vector places = _mm_setr_epi8(2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9, 14, 13, 12, 15);
    size_t done = 0;
    if (count < 2 * PIXELS + 1)
        return 0;
    vector now = _mm_loadu_si128((const vector *)rgb);
    for (; done + 2 * PIXELS + 1 <= count; done += PIXELS) {
        const vector next = _mm_loadu_si128((const vector *)(rgb + 3 * (done + PIXELS)));
        _mm_storeu_si128((vector *)(rgb + 3 * done), _mm_shuffle_epi8(now, places));
        now = next;
    }
    return done;
}
#define ST_JPEG_HAS_SWAP
#endif

#endif
