/* kernels_x86.h - the inner loops of the JPEG decoder shared by SSE2, AVX2 and AVX-512
 *
 * The including file defines the functions declared here. Vectors consist of groups of 128 bits; packing
 * and unpacking work within each group, so values unpacked into a lower and an upper part are in order
 * again after packing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_JPEG_KERNELS_X86_H
#define ST_CODEC_JPEG_KERNELS_X86_H

#include "codec/jpeg/vectors_x86.h"

ST_INLINE vector load(const uint8_t *in);
ST_INLINE void save(uint8_t *out, vector v);
/* Loads half as many bytes as a vector has, each extended to 16 bits. */
ST_INLINE vector load_words(const uint8_t *in);
ST_INLINE vector exclusive_or(vector a, vector b);
/* Combines `lower`, which has only lower bytes, with the upper bytes of `upper`. */
ST_INLINE vector lower_and_upper(vector lower, vector upper);
/* For each 16 bits, three times the lower byte plus the upper byte. */
ST_INLINE vector three_and_one(vector bytes);
/* The product with 15 fractional bits, rounded; the vector's values have at most 9 bits. */
ST_INLINE vector rounded_product(vector v, int16_t factor);
/* Stores one vector per colour, interleaved. */
ST_INLINE void save_rgb(uint8_t *rgb, vector red, vector green, vector blue);
/* Copies 64 bytes and returns a mask of those that are FF. */
ST_INLINE uint64_t copy64(uint8_t *out, const uint8_t *in);

/* ---- unstuff ----------------------------------------------------------------------------------- */

/* After the first FF of 64 bytes, both input and output continue there. */
static size_t unstuff(uint8_t *out, const uint8_t *in, size_t size, size_t *used)
{
    size_t from = 0, to = 0, rest;
    while (size - from > 64) {
        const uint64_t found = copy64(out + to, in + from);
        if (found == 0) {
            from += 64;
            to += 64;
            continue;
        }
        const size_t at = (size_t)__builtin_ctzll(found);
        if (in[from + at + 1] != 0) {
            *used = from + at;
            return to + at;
        }
        from += at + 2;
        to += at + 1;
    }
    to += st_jpeg_kernels_c.unstuff(out + to, in + from, size - from, &rest);
    *used = from + rest;
    return to;
}

/* ---- upsampling -------------------------------------------------------------------------------- */

enum { SAMPLES = sizeof(vector) / 2 }; /* input samples per output vector */

ST_INLINE vector three_times(vector v) { return V(add_epi16)(V(add_epi16)(v, v), v); }

/* Two sums per sample, divided by 2^bits; the right ones become upper bytes. */
ST_INLINE void save_pairs(uint8_t *out, vector left, vector right, const int bits)
{
    save(out, lower_and_upper(V(srli_epi16)(left, bits), V(slli_epi16)(right, 8 - bits)));
}

static void h2v1(uint8_t *out, const uint8_t *in, int32_t count)
{
    const vector one = V(set1_epi16)(1), two = V(set1_epi16)(2);
    for (int32_t k = 0; k < count; k += SAMPLES) {
        const vector most = three_times(load_words(in + k));
        const vector left = V(add_epi16)(most, load_words(in + k - 1));
        const vector right = V(add_epi16)(most, load_words(in + k + 1));
        save_pairs(out + 2 * k, V(add_epi16)(left, one), V(add_epi16)(right, two), 2);
    }
}

/* Three times the nearer row plus the farther row. */
ST_INLINE vector down(const uint8_t *near, const uint8_t *far)
{
    return V(add_epi16)(three_times(load_words(near)), load_words(far));
}

static void h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t count)
{
    const vector seven = V(set1_epi16)(7), eight = V(set1_epi16)(8);
    for (int32_t k = 0; k < count; k += SAMPLES) {
        const vector most = three_times(down(near + k, far + k));
        const vector left = V(add_epi16)(most, down(near + k - 1, far + k - 1));
        const vector right = V(add_epi16)(most, down(near + k + 1, far + k + 1));
        save_pairs(out + 2 * k, V(add_epi16)(left, eight), V(add_epi16)(right, seven), 4);
    }
}

static void h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t bias, int32_t count)
{
    const vector add = V(set1_epi16)((int16_t)bias);
    for (int32_t k = 0; k < count; k += (int32_t)sizeof(vector)) {
        const vector a = load(near + k), b = load(far + k);
        const vector low = three_and_one(V(unpacklo_epi8)(a, b));
        const vector high = three_and_one(V(unpackhi_epi8)(a, b));
        save(out + k, V(packus_epi16)(V(srli_epi16)(V(add_epi16)(low, add), 2),
                                      V(srli_epi16)(V(add_epi16)(high, add), 2)));
    }
}

/* ---- colour ------------------------------------------------------------------------------------ */

/* The factors of libjpeg's colour tables, for doubled chroma values. Red and blue are each rounded by a
 * multiplication that keeps 15 fractional bits; for all 256 values the result equals that of the tables'
 * 16 bits. Green has one rounding for two products, which are kept exact until then. */
enum { RED_CR = 22971, BLUE_CB = 29033, GREEN_CB = -11277, GREEN_CR = -23401, HALF = 1 << 15 };

typedef struct {
    vector red, green, blue;
} colours;

/* Pixels, not yet clipped, from y, 2 (cb - 128) and 2 (cr - 128). */
ST_INLINE colours convert(vector y, vector cb, vector cr)
{
    const vector half = V(set1_epi32)(HALF);
    const vector low = plus_times(half, V(unpacklo_epi16)(cb, cr), GREEN_CB, GREEN_CR);
    const vector high = plus_times(half, V(unpackhi_epi16)(cb, cr), GREEN_CB, GREEN_CR);
    const vector green = V(packs_epi32)(V(srai_epi32)(low, 16), V(srai_epi32)(high, 16));
    const vector red = rounded_product(cr, RED_CR);
    const vector blue = rounded_product(cb, BLUE_CB);
    return (colours){V(add_epi16)(y, red), V(add_epi16)(y, green), V(add_epi16)(y, blue)};
}

/* The lower or upper bytes, sign-extended to 16 bits and doubled. */
ST_INLINE vector low_doubled(vector v) { return V(srai_epi16)(V(unpacklo_epi8)(no_bits(), v), 7); }

ST_INLINE vector high_doubled(vector v) { return V(srai_epi16)(V(unpackhi_epi8)(no_bits(), v), 7); }

static void ycc(uint8_t *rgb, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width)
{
    const vector centre = V(set1_epi8)(-128);
    for (int32_t k = 0; k < width; k += (int32_t)sizeof(vector)) {
        const vector light = load(y + k);
        const vector b = exclusive_or(load(cb + k), centre), r = exclusive_or(load(cr + k), centre);
        const colours low = convert(V(unpacklo_epi8)(light, no_bits()), low_doubled(b), low_doubled(r));
        const colours high =
            convert(V(unpackhi_epi8)(light, no_bits()), high_doubled(b), high_doubled(r));
        save_rgb(rgb + 3 * k, V(packus_epi16)(low.red, high.red), V(packus_epi16)(low.green, high.green),
                 V(packus_epi16)(low.blue, high.blue));
    }
}

static void grey(uint8_t *rgb, const uint8_t *y, int32_t width)
{
    for (int32_t k = 0; k < width; k += (int32_t)sizeof(vector)) {
        const vector light = load(y + k);
        save_rgb(rgb + 3 * k, light, light, light);
    }
}

#endif
