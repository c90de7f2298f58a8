/* kernels_avx2.c - the inner loops of the JPEG decoder with AVX2
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_x86.h"

ST_INLINE __m256i load(const uint8_t *in) { return _mm256_loadu_si256((const __m256i *)in); }

ST_INLINE void save(uint8_t *out, __m256i v) { _mm256_storeu_si256((__m256i *)out, v); }

ST_INLINE __m256i load_words(const uint8_t *in)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)in));
}

ST_INLINE __m256i exclusive_or(__m256i a, __m256i b) { return _mm256_xor_si256(a, b); }

ST_INLINE __m256i lower_and_upper(__m256i lower, __m256i upper)
{
    return _mm256_or_si256(lower, _mm256_andnot_si256(_mm256_set1_epi16(0xFF), upper));
}

ST_INLINE __m256i twice(__m128i v) { return _mm256_broadcastsi128_si256(v); }

ST_INLINE void save_half(uint8_t *out, __m128i v) { _mm_storeu_si128((__m128i *)out, v); }

ST_INLINE __m256i three_and_one(__m256i bytes)
{
    return _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(1 << 8 | 3));
}

ST_INLINE __m256i rounded_product(__m256i v, int16_t factor)
{
    return _mm256_mulhrs_epi16(v, _mm256_set1_epi16(factor));
}

/* In each half, value k of colour c goes to byte 3 k + c of 48: one shuffle per colour moves all its
 * values into place, and blends select. */
ST_INLINE void save_rgb(uint8_t *rgb, __m256i red, __m256i green, __m256i blue)
{
    const __m256i places = twice(_mm_setr_epi8(0, 11, 6, 1, 12, 7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5));
    const __m256i bytes_036 = twice(_mm_setr_epi8(-1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1));
    const __m256i bytes_258 = twice(_mm_setr_epi8(0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0, 0, -1, 0));
    const __m256i r = _mm256_shuffle_epi8(red, places);
    const __m256i g = _mm256_shuffle_epi8(green, _mm256_alignr_epi8(places, places, 15));
    const __m256i b = _mm256_shuffle_epi8(blue, _mm256_alignr_epi8(places, places, 14));
    const __m256i v0 = _mm256_blendv_epi8(_mm256_blendv_epi8(g, r, bytes_036), b, bytes_258);
    const __m256i v1 = _mm256_blendv_epi8(_mm256_blendv_epi8(b, g, bytes_036), r, bytes_258);
    const __m256i v2 = _mm256_blendv_epi8(_mm256_blendv_epi8(r, b, bytes_036), g, bytes_258);
    save_half(rgb, _mm256_castsi256_si128(v0));
    save_half(rgb + 16, _mm256_castsi256_si128(v1));
    save_half(rgb + 32, _mm256_castsi256_si128(v2));
    save_half(rgb + 48, _mm256_extracti128_si256(v0, 1));
    save_half(rgb + 64, _mm256_extracti128_si256(v1, 1));
    save_half(rgb + 80, _mm256_extracti128_si256(v2, 1));
}

ST_INLINE uint64_t copy64(uint8_t *out, const uint8_t *in)
{
    const __m256i ff = _mm256_set1_epi8(-1), a = load(in), b = load(in + 32);
    save(out, a);
    save(out + 32, b);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, ff)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(b, ff)) << 32;
}

const struct st_jpeg_kernels st_jpeg_kernels_avx2 = {
    .name = "avx2",
    .run_one = st_jpeg_run_one_bmi2,
    .run_two = st_jpeg_run_two_bmi2,
    .band_first = st_jpeg_band_first_bmi2,
    .band_later = st_jpeg_band_later_bmi2,
    .unstuff = unstuff,
    .transform = st_jpeg_transform_avx2,
    .h2v1 = h2v1,
    .h2v2 = h2v2,
    .h1v2 = h1v2,
    .ycc = ycc,
    .grey = grey,
};
