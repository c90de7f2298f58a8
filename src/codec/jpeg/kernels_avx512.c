/* kernels_avx512.c - the inner loops of the JPEG decoder with AVX-512 (VBMI, VNNI)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_x86.h"

ST_INLINE __m512i load(const uint8_t *in) { return _mm512_loadu_si512(in); }

ST_INLINE void save(uint8_t *out, __m512i v) { _mm512_storeu_si512(out, v); }

ST_INLINE __m512i load_words(const uint8_t *in)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)in));
}

ST_INLINE __m512i exclusive_or(__m512i a, __m512i b) { return _mm512_xor_si512(a, b); }

ST_INLINE __m512i lower_and_upper(__m512i lower, __m512i upper)
{
    enum { FIRST_OR_SECOND_BUT_NOT_THIRD = 0xF4 };
    return _mm512_ternarylogic_epi32(lower, upper, _mm512_set1_epi16(0xFF),
                                     FIRST_OR_SECOND_BUT_NOT_THIRD);
}

ST_INLINE __m512i three_and_one(__m512i bytes)
{
    return _mm512_maddubs_epi16(bytes, _mm512_set1_epi16(1 << 8 | 3));
}

ST_INLINE __m512i rounded_product(__m512i v, int16_t factor)
{
    return _mm512_mulhrs_epi16(v, _mm512_set1_epi16(factor));
}

/* Byte i of 192 belongs to pixel i / 3. */
#define PIXELS_4(i) (i) / 3, ((i) + 1) / 3, ((i) + 2) / 3, ((i) + 3) / 3
#define PIXELS_16(i) PIXELS_4(i), PIXELS_4((i) + 4), PIXELS_4((i) + 8), PIXELS_4((i) + 12)
#define PIXELS_64(i) PIXELS_16(i), PIXELS_16((i) + 16), PIXELS_16((i) + 32), PIXELS_16((i) + 48)
static const _Alignas(64) uint8_t pixel_of[3][64] = {{PIXELS_64(0)}, {PIXELS_64(64)}, {PIXELS_64(128)}};

/* The same indices serve all colours; masks select. The three parts start with red, green and blue. */
ST_INLINE void save_rgb(uint8_t *rgb, __m512i red, __m512i green, __m512i blue)
{
    const __mmask64 every_third = 0x9249249249249249;
    const __m512i colour[5] = {red, green, blue, red, green};
    for (int part = 0; part < 3; part++) {
        const __m512i pixel = _mm512_load_si512(pixel_of[part]);
        __m512i bytes = _mm512_permutexvar_epi8(pixel, colour[part]);
        bytes = _mm512_mask_permutexvar_epi8(bytes, every_third << 1, pixel, colour[part + 1]);
        bytes = _mm512_mask_permutexvar_epi8(bytes, every_third << 2, pixel, colour[part + 2]);
        save(rgb + 64 * part, bytes);
    }
}

ST_INLINE uint64_t copy64(uint8_t *out, const uint8_t *in)
{
    const __m512i bytes = load(in);
    save(out, bytes);
    return _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(-1));
}

const struct st_jpeg_kernels st_jpeg_kernels_avx512 = {
    .name = "avx512",
    .run_one = st_jpeg_run_one_bmi2,
    .run_two = st_jpeg_run_two_bmi2,
    .band_first = st_jpeg_band_first_bmi2,
    .band_later = st_jpeg_band_later_bmi2,
    .unstuff = unstuff,
    .transform = st_jpeg_transform_avx512,
    .h2v1 = h2v1,
    .h2v2 = h2v2,
    .h1v2 = h1v2,
    .ycc = ycc,
    .grey = grey,
};
