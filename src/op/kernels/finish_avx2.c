/* finish_avx2.c - mirroring, conversion and layout with AVX2
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/finish_x86.h"

enum { BLOCK = 16 }; /* pixels at a time */

ST_INLINE __m128i load16(const uint8_t *from) { return _mm_loadu_si128((const __m128i *)from); }

/* ---- mirror ------------------------------------------------------------------------------------ */

/* Reverses the pixels of a row. */
static void mirror_row(uint8_t *out, const uint8_t *in, int32_t width, int32_t channels)
{
    int32_t x = 0;
    if (channels == 1) {
        const __m128i index = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
        for (; x + 16 <= width; x += 16)
            _mm_storeu_si128((__m128i *)(out + width - x - 16), _mm_shuffle_epi8(load16(in + x), index));
    } else {
        /* Five pixels, preceded by one byte of the previous pixel, which is overwritten later: so at
         * least one more pixel must follow. */
        const __m128i index = _mm_setr_epi8(-1, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
        for (; x + 5 < width; x += 5)
            _mm_storeu_si128((__m128i *)(out + (ptrdiff_t)(width - x - 5) * 3 - 1),
                             _mm_shuffle_epi8(load16(in + (ptrdiff_t)x * 3), index));
    }
    st_mirror_c(out, in + (ptrdiff_t)x * channels, width - x, channels);
}

/* ---- bytes to floats --------------------------------------------------------------------------- */

/* Each value has 16 bits. */
ST_INLINE __m128i narrow(__m256i v)
{
    return _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

ST_INLINE void store(void *out, int32_t at, __m256 v, enum stoker_dtype dtype)
{
    if (dtype == STOKER_DTYPE_F32)
        _mm256_storeu_ps((float *)out + at, v);
    else if (dtype == STOKER_DTYPE_F16)
        _mm_storeu_si128((__m128i *)((uint16_t *)out + at),
                         _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    else
        _mm_storeu_si128((__m128i *)((uint16_t *)out + at), narrow(brain(v)));
}

/* Converts 16 bytes to 16 values, starting at value `at`, with separate constants for each half. */
ST_INLINE void convert16(void *out, int32_t at, __m128i bytes, struct numbers n0, struct numbers n1,
                      enum st_formula formula, enum stoker_dtype dtype)
{
    store(out, at, apply(_mm256_cvtepu8_epi32(bytes), n0, formula), dtype);
    store(out, at + 8, apply(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes)), n1, formula),
          dtype);
}

/* Channel `c` of 16 pixels in 48 bytes. */
#define FROM(c, part, i) (char)((3 * (i) + (c)) / 16 == (part) ? (3 * (i) + (c)) % 16 : -1)
#define INDEX(c, part)                                                                                  \
    _mm_setr_epi8(FROM(c, part, 0), FROM(c, part, 1), FROM(c, part, 2), FROM(c, part, 3),              \
                  FROM(c, part, 4), FROM(c, part, 5), FROM(c, part, 6), FROM(c, part, 7),              \
                  FROM(c, part, 8), FROM(c, part, 9), FROM(c, part, 10), FROM(c, part, 11),            \
                  FROM(c, part, 12), FROM(c, part, 13), FROM(c, part, 14), FROM(c, part, 15))
/* The same with its last pixel first. */
#define BACKWARDS(c, part)                                                                              \
    _mm_setr_epi8(FROM(c, part, 15), FROM(c, part, 14), FROM(c, part, 13), FROM(c, part, 12),          \
                  FROM(c, part, 11), FROM(c, part, 10), FROM(c, part, 9), FROM(c, part, 8),            \
                  FROM(c, part, 7), FROM(c, part, 6), FROM(c, part, 5), FROM(c, part, 4),              \
                  FROM(c, part, 3), FROM(c, part, 2), FROM(c, part, 1), FROM(c, part, 0))
#define DIRECTED(c, part, mirror) ((mirror) ? BACKWARDS(c, part) : INDEX(c, part))

ST_INLINE void split48(const uint8_t *in, __m128i rgb[3], bool mirror)
{
    const __m128i a = load16(in), b = load16(in + 16), c = load16(in + 32);
#define CHANNEL(k)                                                                                      \
    rgb[k] = _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, DIRECTED(k, 0, mirror)),                     \
                                       _mm_shuffle_epi8(b, DIRECTED(k, 1, mirror))),                    \
                          _mm_shuffle_epi8(c, DIRECTED(k, 2, mirror)))
    CHANNEL(0);
    CHANNEL(1);
    CHANNEL(2);
#undef CHANNEL
}

/* Converts the 8 pixels at `in`, each channel to its plane. One half loads from eight bytes on, so that
 * nothing behind the pixels is read. */
ST_INLINE void convert8(uint8_t *out, size_t plane, const uint8_t *in, int32_t x,
                        const struct numbers n[3], enum st_formula formula, enum stoker_dtype dtype,
                        bool mirror)
{
    const __m256i forwards = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1, /* */
                                              4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
    const __m256i back = _mm256_setr_epi8(13, 14, 15, -1, 10, 11, 12, -1, 7, 8, 9, -1, 4, 5, 6, -1, /* */
                                          9, 10, 11, -1, 6, 7, 8, -1, 3, 4, 5, -1, 0, 1, 2, -1);
    const __m256i byte = _mm256_set1_epi32(255);
    const __m128i low = load16(in + (mirror ? 8 : 0)), high = load16(in + (mirror ? 0 : 8));
    const __m256i rgb = _mm256_shuffle_epi8(
        _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), mirror ? back : forwards);
    store(out, x, apply(_mm256_and_si256(rgb, byte), n[0], formula), dtype);
    store(out + plane, x, apply(_mm256_and_si256(_mm256_srli_epi32(rgb, 8), byte), n[1], formula),
          dtype);
    store(out + 2 * plane, x, apply(_mm256_srli_epi32(rgb, 16), n[2], formula), dtype);
}

/* Converts BLOCK pixels, which become those from pixel `x` on. */
ST_INLINE void convert_block(const struct st_finish *f, uint8_t *out, size_t plane, const uint8_t *in,
                             int32_t x, int32_t width, const struct numbers n[3],
                             enum st_formula formula, enum stoker_dtype dtype, bool mirror)
{
    const uint8_t *from = in + (ptrdiff_t)(mirror ? width - BLOCK - x : x) * 3;
    if (f->channels == 1) {
        convert16(out, x, load16(in + x), n[0], n[0], formula, dtype);
    } else if (f->layout == STOKER_LAYOUT_NHWC) {
        for (int32_t part = 0; part < 3; part++)
            convert16(out, x * 3 + part * 16, load16(in + x * 3 + part * 16), n[part * 2 % 3],
                      n[(part * 2 + 1) % 3], formula, dtype);
    } else {
        convert8(out, plane, from + (mirror ? 24 : 0), x, n, formula, dtype, mirror);
        convert8(out, plane, from + (mirror ? 0 : 24), x + 8, n, formula, dtype, mirror);
    }
}

/* If the width is not a multiple of BLOCK, the last pixels are done by an overlapping block. */
ST_INLINE void convert(const struct st_finish *f, void *out, size_t plane, const uint8_t *in,
                       int32_t width, enum st_formula formula, enum stoker_dtype dtype, bool mirror)
{
    const struct numbers n[3] = {numbers_of(f, 0), numbers_of(f, 1), numbers_of(f, 2)};
    int32_t x = 0;
    for (; x + BLOCK <= width; x += BLOCK)
        convert_block(f, out, plane, in, x, width, n, formula, dtype, mirror);
    if (x < width)
        convert_block(f, out, plane, in, width - BLOCK, width, n, formula, dtype, mirror);
}

/* 16 bytes at `in`, and 16 of the pixels 16 further on; those first if `mirror`. */
ST_INLINE __m256i load_both(const uint8_t *in, bool mirror)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(in + (mirror ? 48 : 0))),
                                   load16(in + (mirror ? 0 : 48)), 1);
}

ST_INLINE __m256i shuffle_both(__m256i v, __m128i index)
{
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(index));
}

/* Splits two blocks: shuffles are what limits it, and each does both. */
ST_INLINE void split96(uint8_t *out, size_t plane, const uint8_t *in, bool mirror)
{
    const __m256i a = load_both(in, mirror), b = load_both(in + 16, mirror),
                  c = load_both(in + 32, mirror);
#define CHANNEL(k)                                                                                      \
    _mm256_storeu_si256(                                                                                \
        (__m256i *)(out + (k) * plane),                                                                 \
        _mm256_or_si256(_mm256_or_si256(shuffle_both(a, DIRECTED(k, 0, mirror)),                        \
                                        shuffle_both(b, DIRECTED(k, 1, mirror))),                       \
                        shuffle_both(c, DIRECTED(k, 2, mirror))))
    CHANNEL(0);
    CHANNEL(1);
    CHANNEL(2);
#undef CHANNEL
}

/* Splits bytes of three channels into planes. */
ST_INLINE void split(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, bool mirror)
{
    int32_t x = 0;
    for (; x + 2 * BLOCK <= width; x += 2 * BLOCK)
        split96(out + x, plane, in + (ptrdiff_t)(mirror ? width - 2 * BLOCK - x : x) * 3, mirror);
    for (; x < width; x += BLOCK) {
        const int32_t to = x + BLOCK <= width ? x : width - BLOCK;
        __m128i rgb[3];
        split48(in + (ptrdiff_t)(mirror ? width - BLOCK - to : to) * 3, rgb, mirror);
        for (size_t c = 0; c < 3; c++)
            _mm_storeu_si128((__m128i *)(out + c * plane + to), rgb[c]);
    }
}

void st_finish_avx2(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                    int32_t width, bool mirror)
{
    st_finish_with((struct st_finish_ways){convert, split, mirror_row, BLOCK}, finish, out, plane,
                   in, width, mirror);
}
