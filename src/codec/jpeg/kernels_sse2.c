/* kernels_sse2.c - the inner loops of the JPEG decoder for any x86-64
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_x86.h"

ST_INLINE __m128i load(const uint8_t *in) { return _mm_loadu_si128((const __m128i *)in); }

ST_INLINE void save(uint8_t *out, __m128i v) { _mm_storeu_si128((__m128i *)out, v); }

ST_INLINE __m128i load_words(const uint8_t *in)
{
    return _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)in), no_bits());
}

ST_INLINE __m128i exclusive_or(__m128i a, __m128i b) { return _mm_xor_si128(a, b); }

ST_INLINE __m128i lower_and_upper(__m128i lower, __m128i upper)
{
    return _mm_or_si128(lower, _mm_andnot_si128(_mm_set1_epi16(0xFF), upper));
}

ST_INLINE __m128i three_and_one(__m128i bytes)
{
    const __m128i lower = _mm_and_si128(bytes, _mm_set1_epi16(0xFF));
    return _mm_add_epi16(three_times(lower), _mm_srli_epi16(bytes, 8));
}

/* The upper half of four times the product has one extra bit, for rounding. */
ST_INLINE __m128i rounded_product(__m128i v, int16_t factor)
{
    const __m128i high = _mm_mulhi_epi16(_mm_slli_epi16(v, 2), _mm_set1_epi16(factor));
    return _mm_srai_epi16(_mm_add_epi16(high, _mm_set1_epi16(1)), 1);
}

/* Bits of `a` where the mask is set, of `b` elsewhere. */
ST_INLINE __m128i choose(__m128i mask, __m128i a, __m128i b)
{
    return _mm_or_si128(_mm_and_si128(mask, a), _mm_andnot_si128(mask, b));
}

/* Interleaves three rows a0 a1 a2 ..., b0 b1 ..., c0 c1 ... to a0 b0 c0 a1 b1 c1 ... In pairs, the
 * result is (a0 b0) (c0 a1) (b1 c1) (a2 b2) ..., which again interleaves three rows of elements twice as
 * wide: first bytes, then 16 bits, then 32; with 64 bits only two elements are left per row. */
ST_INLINE void save_rgb(uint8_t *rgb, __m128i red, __m128i green, __m128i blue)
{
    __m128i first = _mm_set1_epi16(0xFF);
    const __m128i a = _mm_or_si128(_mm_and_si128(first, red), _mm_slli_epi16(green, 8));
    const __m128i b = choose(first, blue, red);
    const __m128i c = _mm_or_si128(_mm_srli_epi16(green, 8), _mm_andnot_si128(first, blue));
    first = _mm_set1_epi32(0xFFFF);
    const __m128i d = _mm_or_si128(_mm_and_si128(first, a), _mm_slli_epi32(b, 16));
    const __m128i e = choose(first, c, a);
    const __m128i f = _mm_or_si128(_mm_srli_epi32(b, 16), _mm_andnot_si128(first, c));
    first = _mm_set1_epi64x(0xFFFFFFFF);
    const __m128i g = _mm_or_si128(_mm_and_si128(first, d), _mm_slli_epi64(e, 32));
    const __m128i h = choose(first, f, d);
    const __m128i i = _mm_or_si128(_mm_srli_epi64(e, 32), _mm_andnot_si128(first, f));
    save(rgb, _mm_unpacklo_epi64(g, h));
    save(rgb + 16, _mm_unpacklo_epi64(i, _mm_unpackhi_epi64(g, g)));
    save(rgb + 32, _mm_unpackhi_epi64(h, i));
}

ST_INLINE uint64_t copy64(uint8_t *out, const uint8_t *in)
{
    uint64_t found = 0;
    for (int k = 0; k < 4; k++) {
        const __m128i bytes = load(in + 16 * k);
        const int here = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(-1)));
        save(out + 16 * k, bytes);
        found |= (uint64_t)(uint32_t)here << 16 * k;
    }
    return found;
}

const struct st_jpeg_kernels st_jpeg_kernels_sse2 = {
    .name = "sse2",
    .run_one = st_jpeg_run_one,
    .run_two = st_jpeg_run_two,
    .band_first = st_jpeg_band_first_c,
    .band_later = st_jpeg_band_later_c,
    .unstuff = unstuff,
    .transform = st_jpeg_transform_sse2,
    .h2v1 = h2v1,
    .h2v2 = h2v2,
    .h1v2 = h1v2,
    .ycc = ycc,
    .grey = grey,
};
