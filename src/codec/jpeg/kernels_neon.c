/* kernels_neon.c - the inner loops of the JPEG decoder for aarch64
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "codec/jpeg/kernels_isa.h"

#include <arm_neon.h>

/* ---- unstuff ----------------------------------------------------------------------------------- */

/* Four bits for each byte of a mask. */
static inline uint64_t nibbles(uint8x16_t mask)
{
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(mask), 4)), 0);
}

/* Vectors are written whole; where there is an FF in one, both sides go on behind that. */
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

/* Three times the nearer row and once the further, eight samples. */
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

/* The factors are 65536 + 26345, 131072 - 14942 and -65536 + 18734, so that what remains fits into 16
 * bits: half of twice the product's upper half, rounded, is the product divided by 65536 and rounded. */
static inline uint8x8x3_t eight_pixels(uint8x8_t y, uint8x8_t cb, uint8x8_t cr)
{
    const uint8x8_t centre = vdup_n_u8(128);
    const int16x8_t b = vreinterpretq_s16_u16(vsubl_u8(cb, centre)),
                    r = vreinterpretq_s16_u16(vsubl_u8(cr, centre));
    const int16x8_t light = vreinterpretq_s16_u16(vmovl_u8(y));
    const int16x8_t red = vaddq_s16(vrshrq_n_s16(vqdmulhq_n_s16(r, 26345), 1), r);
    const int16x8_t blue = vaddq_s16(vrshrq_n_s16(vqdmulhq_n_s16(b, -14942), 1), vaddq_s16(b, b));
    const int32x4_t low = vmlal_n_s16(vmull_n_s16(vget_low_s16(b), -22554), vget_low_s16(r), 18734);
    const int32x4_t high = vmlal_high_n_s16(vmull_high_n_s16(b, -22554), r, 18734);
    const int16x8_t green = vsubq_s16(vrshrn_high_n_s32(vrshrn_n_s32(low, 16), high, 16), r);
    const uint8x8x3_t rgb = {{vqmovun_s16(vaddq_s16(light, red)), vqmovun_s16(vaddq_s16(light, green)),
                              vqmovun_s16(vaddq_s16(light, blue))}};
    return rgb;
}

static void ycc_neon(uint8_t *rgb, const uint8_t *y, const uint8_t *cb, const uint8_t *cr, int32_t width)
{
    for (int32_t k = 0; k < width; k += 16) {
        const uint8x16_t light = vld1q_u8(y + k), b = vld1q_u8(cb + k), r = vld1q_u8(cr + k);
        const uint8x8x3_t low = eight_pixels(vget_low_u8(light), vget_low_u8(b), vget_low_u8(r));
        const uint8x8x3_t high = eight_pixels(vget_high_u8(light), vget_high_u8(b), vget_high_u8(r));
        const uint8x16x3_t all = {{vcombine_u8(low.val[0], high.val[0]),
                                   vcombine_u8(low.val[1], high.val[1]),
                                   vcombine_u8(low.val[2], high.val[2])}};
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
    .unstuff = unstuff_neon,
    .transform = st_jpeg_transform_neon,
    .h2v1 = h2v1_neon,
    .h2v2 = h2v2_neon,
    .h1v2 = h1v2_neon,
    .ycc = ycc_neon,
    .grey = grey_neon,
};
