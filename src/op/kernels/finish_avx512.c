/* finish_avx512.c - mirroring, conversion and layout with AVX-512
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/finish_x86.h"

enum { BLOCK = 16, PIXELS = 64 / 3 }; /* values, and whole pixels, at a time */

/* The lowest `count` bits. */
ST_INLINE __mmask64 bits64(int32_t count)
{
    return count < 64 ? ((__mmask64)1 << count) - 1 : ~(__mmask64)0;
}
ST_INLINE __mmask16 bits16(int32_t count) { return (__mmask16)bits64(count < 16 ? count : 16); }

/* Indices for byte shuffles: groups of `each` bytes, starting at `first` and `step` bytes apart. They
 * fold to constants. */
#define STEP(i, first, step, each) (char)((first) + (i) / (each) * (step) + (i) % (each))
#define STEP4(i, ...)                                                                                   \
    STEP((i) + 3, __VA_ARGS__), STEP((i) + 2, __VA_ARGS__), STEP((i) + 1, __VA_ARGS__),                 \
        STEP(i, __VA_ARGS__)
#define STEP16(i, ...)                                                                                  \
    STEP4((i) + 12, __VA_ARGS__), STEP4((i) + 8, __VA_ARGS__), STEP4((i) + 4, __VA_ARGS__),             \
        STEP4(i, __VA_ARGS__)
#define STEPPING(...)                                                                                   \
    _mm512_set_epi8(STEP16(48, __VA_ARGS__), STEP16(32, __VA_ARGS__), STEP16(16, __VA_ARGS__),          \
                    STEP16(0, __VA_ARGS__))

/* Reverses the pixels of a row. */
static void mirror_row(uint8_t *out, const uint8_t *in, int32_t width, int32_t channels)
{
    const int32_t block = 64 / channels; /* pixels per vector: 64 or 21 */
    const __mmask64 mask = bits64(block * channels);
    const __m512i index = channels == 1 ? STEPPING(63, -1, 1) : STEPPING(60, -3, 3);
    int32_t x = 0;
    for (; x + block <= width; x += block)
        _mm512_mask_storeu_epi8(
            out + (ptrdiff_t)(width - x - block) * channels, mask,
            _mm512_permutexvar_epi8(index, _mm512_maskz_loadu_epi8(mask, in + (ptrdiff_t)x * channels)));
    st_mirror_c(out, in + (ptrdiff_t)x * channels, width - x, channels);
}

/* ---- bytes to floats --------------------------------------------------------------------------- */

ST_INLINE void store(void *out, int32_t at, __mmask16 mask, __m512 v, enum stoker_dtype dtype)
{
    if (dtype == STOKER_DTYPE_F32)
        _mm512_mask_storeu_ps((float *)out + at, mask, v);
    else if (dtype == STOKER_DTYPE_F16)
        _mm256_mask_storeu_epi16((uint16_t *)out + at, mask,
                                 _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    else
        _mm256_mask_storeu_epi16((uint16_t *)out + at, mask, _mm512_cvtepi32_epi16(brain(v)));
}

/* Converts `left` of 3 * BLOCK values of a row, with the three sets of constants in turn. */
ST_INLINE void convert_turns(void *out, const uint8_t *in, int32_t x, int32_t left,
                             const struct numbers n[3], enum st_formula formula, enum stoker_dtype dtype)
{
    for (int32_t part = 0; part < 3; part++) {
        const int32_t at = x + part * BLOCK;
        const __mmask16 mask = (__mmask16)(bits64(left) >> part * BLOCK);
        const __m128i bytes = _mm_maskz_loadu_epi8(mask, in + at);
        store(out, at, mask, apply(_mm512_cvtepu8_epi32(bytes), n[part], formula), dtype);
    }
}

ST_INLINE void convert_row(void *out, const uint8_t *in, int32_t values, const struct numbers n[3],
                           enum st_formula formula, enum stoker_dtype dtype)
{
    int32_t x = 0;
    for (; x + 3 * BLOCK <= values; x += 3 * BLOCK)
        convert_turns(out, in, x, 3 * BLOCK, n, formula, dtype);
    if (x < values)
        convert_turns(out, in, x, values - x, n, formula, dtype);
}

/* Converts `left` of BLOCK pixels, each channel to its plane; all of them if `mirror`. */
ST_INLINE void convert_pixels(uint8_t *out, size_t plane, const uint8_t *in, int32_t x, int32_t left,
                              const struct numbers n[3], enum st_formula formula,
                              enum stoker_dtype dtype, bool mirror)
{
    const __mmask64 lowest = 0x1111111111111111; /* the lowest byte of each lane */
    const __m512i forwards[3] = {STEPPING(0, 3, 4), STEPPING(1, 3, 4), STEPPING(2, 3, 4)};
    const __m512i back[3] = {STEPPING(45, -3, 4), STEPPING(46, -3, 4), STEPPING(47, -3, 4)};
    const __m512i *index = mirror ? back : forwards;
    const __m512i bytes = _mm512_maskz_loadu_epi8(bits64(left * 3), in);
    for (int32_t c = 0; c < 3; c++) {
        const __m512i values = _mm512_maskz_permutexvar_epi8(lowest, index[c], bytes);
        store(out + (size_t)c * plane, x, bits16(left), apply(values, n[c], formula), dtype);
    }
}

ST_INLINE void convert_planes(uint8_t *out, size_t plane, const uint8_t *in, int32_t width,
                              const struct numbers n[3], enum st_formula formula,
                              enum stoker_dtype dtype, bool mirror)
{
    int32_t x = 0;
    for (; x + BLOCK <= width; x += BLOCK)
        convert_pixels(out, plane, in + (ptrdiff_t)(mirror ? width - BLOCK - x : x) * 3, x, BLOCK, n,
                       formula, dtype, mirror);
    if (x < width && mirror) /* overlapping */
        convert_pixels(out, plane, in, width - BLOCK, BLOCK, n, formula, dtype, true);
    else if (x < width)
        convert_pixels(out, plane, in + (ptrdiff_t)x * 3, x, width - x, n, formula, dtype, false);
}

ST_INLINE void convert(const struct st_finish *f, void *out, size_t plane, const uint8_t *in,
                       int32_t width, enum st_formula formula, enum stoker_dtype dtype, bool mirror)
{
    const struct numbers n[3] = {numbers_of(f, 0), numbers_of(f, 1), numbers_of(f, 2)};
    if (f->layout == STOKER_LAYOUT_NCHW && f->channels == 3)
        convert_planes(out, plane, in, width, n, formula, dtype, mirror);
    else
        convert_row(out, in, width * f->channels, n, formula, dtype);
}

/* Splits bytes of three channels into planes, 21 pixels at a time. */
ST_INLINE void split(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, bool mirror)
{
    const __m512i forwards[3] = {STEPPING(0, 3, 1), STEPPING(1, 3, 1), STEPPING(2, 3, 1)};
    const __m512i back[3] = {STEPPING(60, -3, 1), STEPPING(61, -3, 1), STEPPING(62, -3, 1)};
    const __m512i *index = mirror ? back : forwards;
    for (int32_t x = 0; x < width; x += PIXELS) {
        const int32_t to = mirror && x + PIXELS > width ? width - PIXELS : x; /* overlapping */
        const int32_t left = width - to < PIXELS ? width - to : PIXELS;
        const uint8_t *from = in + (ptrdiff_t)(mirror ? width - PIXELS - to : to) * 3;
        const __m512i bytes = _mm512_maskz_loadu_epi8(bits64(left * 3), from);
        for (size_t c = 0; c < 3; c++)
            _mm256_mask_storeu_epi8(out + c * plane + to, (__mmask32)bits64(left),
                                    _mm512_castsi512_si256(_mm512_permutexvar_epi8(index[c], bytes)));
    }
}

void st_finish_avx512(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                      int32_t width, bool mirror)
{
    const int32_t least = mirror ? PIXELS : 0; /* blocks overlap where the row is mirrored */
    st_finish_with((struct st_finish_ways){convert, split, mirror_row, least}, finish, out, plane,
                   in, width, mirror);
}
