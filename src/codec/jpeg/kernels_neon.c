/* kernels_neon.c - the inner loops of the JPEG decoder for aarch64
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_isa.h"

#include <arm_neon.h>

/* ---- unstuff ----------------------------------------------------------------------------------- */

/* Four bits per byte of a mask. */
static inline uint64_t nibbles(uint8x16_t mask)
{
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(mask), 4)), 0);
}

/* Whole vectors are written; if one contains an FF, both input and output continue after it. */
static size_t unstuff_neon(uint8_t *out, const uint8_t *in, size_t size, size_t *used)
{
    const uint8x16_t ff = vdupq_n_u8(0xFF);
    size_t from = 0, to = 0, rest;
    while (size - from >= 33) {
        const uint8x16_t a = vld1q_u8(in + from), b = vld1q_u8(in + from + 16);
        const uint8x16_t in_a = vceqq_u8(a, ff), in_b = vceqq_u8(b, ff);
        vst1q_u8(out + to, a);
        vst1q_u8(out + to + 16, b);
        if (nibbles(vorrq_u8(in_a, in_b)) == 0) {
            from += 32;
            to += 32;
            continue;
        }
        const uint64_t first = nibbles(in_a);
        const size_t at =
            first ? (size_t)__builtin_ctzll(first) / 4 : 16 + (size_t)__builtin_ctzll(nibbles(in_b)) / 4;
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

static void h2v1_neon(uint8_t *out, const uint8_t *in, int32_t count)
{
    const uint8x16_t three = vdupq_n_u8(3);
    const uint16x8_t one = vdupq_n_u16(1);
    for (int32_t k = 0; k < count; k += 16) {
        const uint8x16_t here = vld1q_u8(in + k), before = vld1q_u8(in + k - 1),
                         after = vld1q_u8(in + k + 1);
        const uint16x8_t low = vmull_u8(vget_low_u8(here), vget_low_u8(three)),
                         high = vmull_high_u8(here, three);
        const uint16x8_t low_one = vaddq_u16(low, one), high_one = vaddq_u16(high, one);
        const uint8x16x2_t pair = {
            {vshrn_high_n_u16(vshrn_n_u16(vaddw_u8(low_one, vget_low_u8(before)), 2),
                              vaddw_high_u8(high_one, before), 2),
             vrshrn_high_n_u16(vrshrn_n_u16(vaddw_u8(low, vget_low_u8(after)), 2),
                               vaddw_high_u8(high, after), 2)}};
        vst2q_u8(out + 2 * k, pair);
    }
}

/* Three times the nearer row plus the farther row, eight samples. */
static inline uint16x8_t down(const uint8_t *near, const uint8_t *far)
{
    return vaddw_u8(vmull_u8(vld1_u8(near), vdup_n_u8(3)), vld1_u8(far));
}

static void h2v2_neon(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t count)
{
    const uint16x8_t three = vdupq_n_u16(3), seven = vdupq_n_u16(7);
    uint16x8_t before = vdupq_n_u16((uint16_t)(3 * near[-1] + far[-1])), here = down(near, far);
    for (int32_t k = 0; k < count; k += 8) {
        const uint16x8_t after = down(near + k + 8, far + k + 8), most = vmulq_u16(here, three);
        const uint8x8x2_t pair = {
            {vrshrn_n_u16(vaddq_u16(most, vextq_u16(before, here, 7)), 4),
             vshrn_n_u16(vaddq_u16(vaddq_u16(most, seven), vextq_u16(here, after, 1)), 4)}};
        vst2_u8(out + 2 * k, pair);
        before = here;
        here = after;
    }
}

static void h1v2_neon(uint8_t *out, const uint8_t *near, const uint8_t *far, int32_t bias, int32_t count)
{
    const uint16x8_t add = vdupq_n_u16((uint16_t)bias);
    for (int32_t k = 0; k < count; k += 8)
        vst1_u8(out + k, vshrn_n_u16(vaddq_u16(down(near + k, far + k), add), 2));
}

/* ---- colour ------------------------------------------------------------------------------------ */

/* The factors of libjpeg's colour tables, for doubled chroma values. Red and blue are each rounded by a
 * multiplication that keeps 15 fractional bits; for all 256 values the result equals that of the tables'
 * 16 bits. Green has one rounding for two products, which are kept exact until then. */
enum { RED_CR = 22971, BLUE_CB = 29033, GREEN_CB = -11277, GREEN_CR = -23401 };

typedef struct {
    int16x8_t red, green, blue;
} colours;

static inline int16x8_t plus_bytes(int16x8_t v, uint8x8_t bytes)
{
    return vreinterpretq_s16_u16(vaddw_u8(vreinterpretq_u16_s16(v), bytes));
}

/* Pixels, not yet clipped, from y, cb - 128 and cr - 128. */
static inline colours eight_pixels(uint8x8_t y, int8x8_t cb, int8x8_t cr)
{
    const int16x8_t b = vshll_n_s8(cb, 1), r = vshll_n_s8(cr, 1);
    const int32x4_t low = vmlal_n_s16(vmull_n_s16(vget_low_s16(b), GREEN_CB), vget_low_s16(r), GREEN_CR);
    const int32x4_t high = vmlal_high_n_s16(vmull_high_n_s16(b, GREEN_CB), r, GREEN_CR);
    const int16x8_t part[3] = {vqrdmulhq_n_s16(r, RED_CR),
                               vrshrn_high_n_s32(vrshrn_n_s32(low, 16), high, 16),
                               vqrdmulhq_n_s16(b, BLUE_CB)};
    colours out = {plus_bytes(part[0], y), plus_bytes(part[1], y), plus_bytes(part[2], y)};
    return out;
}

static void ycc_neon(uint8_t *rgb, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width)
{
    const uint8x16_t centre = vdupq_n_u8(128);
    for (int32_t k = 0; k < width; k += 16) {
        const uint8x16_t light = vld1q_u8(y + k);
        const int8x16_t b = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(cb + k), centre)),
                        r = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(cr + k), centre));
        const colours low = eight_pixels(vget_low_u8(light), vget_low_s8(b), vget_low_s8(r));
        const colours high = eight_pixels(vget_high_u8(light), vget_high_s8(b), vget_high_s8(r));
        const uint8x16x3_t all = {{vqmovun_high_s16(vqmovun_s16(low.red), high.red),
                                   vqmovun_high_s16(vqmovun_s16(low.green), high.green),
                                   vqmovun_high_s16(vqmovun_s16(low.blue), high.blue)}};
        vst3q_u8(rgb + 3 * k, all);
    }
}

static void grey_neon(uint8_t *rgb, const uint8_t *y, int32_t width)
{
    for (int32_t k = 0; k < width; k += 16) {
        const uint8x16_t light = vld1q_u8(y + k);
        const uint8x16x3_t all = {{light, light, light}};
        vst3q_u8(rgb + 3 * k, all);
    }
}

const struct st_jpeg_kernels st_jpeg_kernels_neon = {
    .name = "neon",
    .run_one = st_jpeg_run_one,
    .run_two = st_jpeg_run_two,
    .band_first = st_jpeg_band_first_c,
    .band_later = st_jpeg_band_later_c,
    .unstuff = unstuff_neon,
    .transform = st_jpeg_transform_neon,
    .h2v1 = h2v1_neon,
    .h2v2 = h2v2_neon,
    .h1v2 = h1v2_neon,
    .ycc = ycc_neon,
    .grey = grey_neon,
};
