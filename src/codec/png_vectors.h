/* png_vectors.h - vectors of 16 bytes, or of 4 lanes of 4 bytes, that every CPU of an architecture has
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_CODEC_PNG_VECTORS_H
#define ST_CODEC_PNG_VECTORS_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#define ST_PNG_VECTORS 1
typedef __m128i st_u8x16;

static inline st_u8x16 st_load(const uint8_t *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline void st_save(uint8_t *p, st_u8x16 v) { _mm_storeu_si128((__m128i *)p, v); }
static inline st_u8x16 st_bytes_of(uint8_t value) { return _mm_set1_epi8((char)value); }
static inline st_u8x16 st_and(st_u8x16 a, st_u8x16 b) { return _mm_and_si128(a, b); }
static inline st_u8x16 st_xor(st_u8x16 a, st_u8x16 b) { return _mm_xor_si128(a, b); }
static inline st_u8x16 st_add(st_u8x16 a, st_u8x16 b) { return _mm_add_epi8(a, b); }
static inline st_u8x16 st_add_to_255(st_u8x16 a, st_u8x16 b) { return _mm_adds_epu8(a, b); }
static inline st_u8x16 st_subtract_to_0(st_u8x16 a, st_u8x16 b) { return _mm_subs_epu8(a, b); }
static inline st_u8x16 st_max(st_u8x16 a, st_u8x16 b) { return _mm_max_epu8(a, b); }
static inline st_u8x16 st_at_least(st_u8x16 a, st_u8x16 b)
{
    return _mm_cmpeq_epi8(_mm_max_epu8(a, b), a);
}
static inline st_u8x16 st_less(st_u8x16 a, st_u8x16 b)
{
    return _mm_xor_si128(st_at_least(a, b), _mm_set1_epi8(-1));
}
static inline st_u8x16 st_half(st_u8x16 v)
{
    return _mm_and_si128(_mm_srli_epi16(v, 1), _mm_set1_epi8(0x7f));
}
/* Half the sum, rounded down. */
static inline st_u8x16 st_mean(st_u8x16 a, st_u8x16 b)
{
    const __m128i odd = _mm_and_si128(_mm_xor_si128(a, b), _mm_set1_epi8(1));
    return _mm_sub_epi8(_mm_avg_epu8(a, b), odd);
}
static inline st_u8x16 st_choose(st_u8x16 mask, st_u8x16 a, st_u8x16 b)
{
    return _mm_or_si128(_mm_and_si128(mask, a), _mm_andnot_si128(mask, b));
}
static inline st_u8x16 st_lanes_of(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    const __m128i ab = _mm_unpacklo_epi32(_mm_cvtsi32_si128((int)a), _mm_cvtsi32_si128((int)b));
    const __m128i cd = _mm_unpacklo_epi32(_mm_cvtsi32_si128((int)c), _mm_cvtsi32_si128((int)d));
    return _mm_unpacklo_epi64(ab, cd);
}
/* Each lane moves to the next; the first becomes `first`. */
static inline st_u8x16 st_lanes_down(st_u8x16 v, uint32_t first)
{
    return _mm_or_si128(_mm_slli_si128(v, 4), _mm_cvtsi32_si128((int)first));
}
static inline void st_first_lane_to(st_u8x16 v, uint8_t *to)
{
    const int32_t value = _mm_cvtsi128_si32(v);
    memcpy(to, &value, sizeof value);
}
static inline void st_lanes_to(st_u8x16 v, uint8_t *a, uint8_t *b, uint8_t *c, uint8_t *d)
{
    st_first_lane_to(v, a);
    st_first_lane_to(_mm_srli_si128(v, 4), b);
    st_first_lane_to(_mm_srli_si128(v, 8), c);
    st_first_lane_to(_mm_srli_si128(v, 12), d);
}

#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#include <arm_neon.h>
#define ST_PNG_VECTORS 1
typedef uint8x16_t st_u8x16;

static inline st_u8x16 st_load(const uint8_t *p) { return vld1q_u8(p); }
static inline void st_save(uint8_t *p, st_u8x16 v) { vst1q_u8(p, v); }
static inline st_u8x16 st_bytes_of(uint8_t value) { return vdupq_n_u8(value); }
static inline st_u8x16 st_and(st_u8x16 a, st_u8x16 b) { return vandq_u8(a, b); }
static inline st_u8x16 st_xor(st_u8x16 a, st_u8x16 b) { return veorq_u8(a, b); }
static inline st_u8x16 st_add(st_u8x16 a, st_u8x16 b) { return vaddq_u8(a, b); }
static inline st_u8x16 st_add_to_255(st_u8x16 a, st_u8x16 b) { return vqaddq_u8(a, b); }
static inline st_u8x16 st_subtract_to_0(st_u8x16 a, st_u8x16 b) { return vqsubq_u8(a, b); }
static inline st_u8x16 st_max(st_u8x16 a, st_u8x16 b) { return vmaxq_u8(a, b); }
static inline st_u8x16 st_at_least(st_u8x16 a, st_u8x16 b) { return vcgeq_u8(a, b); }
static inline st_u8x16 st_less(st_u8x16 a, st_u8x16 b) { return vcltq_u8(a, b); }
static inline st_u8x16 st_half(st_u8x16 v) { return vshrq_n_u8(v, 1); }
static inline st_u8x16 st_mean(st_u8x16 a, st_u8x16 b) { return vhaddq_u8(a, b); }
static inline st_u8x16 st_choose(st_u8x16 mask, st_u8x16 a, st_u8x16 b) { return vbslq_u8(mask, a, b); }
static inline st_u8x16 st_lanes_of(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    uint32x4_t v = vdupq_n_u32(a);
    v = vsetq_lane_u32(b, v, 1);
    v = vsetq_lane_u32(c, v, 2);
    return vreinterpretq_u8_u32(vsetq_lane_u32(d, v, 3));
}
static inline st_u8x16 st_lanes_down(st_u8x16 v, uint32_t first)
{
    return vextq_u8(vreinterpretq_u8_u32(vdupq_n_u32(first)), v, 12);
}
static inline void st_first_lane_to(st_u8x16 v, uint8_t *to)
{
    const uint32_t value = vgetq_lane_u32(vreinterpretq_u32_u8(v), 0);
    memcpy(to, &value, sizeof value);
}
static inline void st_lanes_to(st_u8x16 v, uint8_t *a, uint8_t *b, uint8_t *c, uint8_t *d)
{
    uint32_t lanes[4];
    vst1q_u32(lanes, vreinterpretq_u32_u8(v));
    memcpy(a, &lanes[0], 4);
    memcpy(b, &lanes[1], 4);
    memcpy(c, &lanes[2], 4);
    memcpy(d, &lanes[3], 4);
}

#else
#define ST_PNG_VECTORS 0
#endif

#endif
