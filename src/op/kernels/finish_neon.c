/* finish_neon.c - mirroring, conversion and layout with NEON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/kernels_neon.h"

#include <string.h>

enum { BLOCK = 16 }; /* pixels at a time */

/* ---- mirror ------------------------------------------------------------------------------------ */

static inline uint8x16_t reversed(uint8x16_t v)
{
    const uint8x16_t halves = vrev64q_u8(v);
    return vextq_u8(halves, halves, 8);
}

/* Reverses the pixels of a row. */
static void mirror_row(uint8_t *out, const uint8_t *in, int32_t width, int32_t channels)
{
    int32_t x = 0;
    for (; x + BLOCK <= width; x += BLOCK) {
        uint8_t *to = out + (ptrdiff_t)(width - x - BLOCK) * channels;
        if (channels == 1) {
            vst1q_u8(to, reversed(vld1q_u8(in + x)));
            continue;
        }
        uint8x16x3_t rgb = vld3q_u8(in + (ptrdiff_t)x * 3);
        for (int c = 0; c < 3; c++)
            rgb.val[c] = reversed(rgb.val[c]);
        vst3q_u8(to, rgb);
    }
    st_mirror_c(out, in + (ptrdiff_t)x * channels, width - x, channels);
}

/* ---- bytes to floats --------------------------------------------------------------------------- */

/* The formula's constants for four values. */
struct numbers {
    float32x4_t add, high, low;
};

ST_INLINE float32x4_t apply(uint32x4_t x, struct numbers n, enum st_formula formula)
{
    if (formula == ST_FORMULA_LINE)
        return vfmaq_f32(n.add, vcvtq_f32_u32(x), n.high);
    if (formula == ST_FORMULA_PRODUCT)
        return vmulq_f32(vaddq_f32(vcvtq_f32_u32(x), n.add), n.high);
    const float32x4_t part = vcvtq_n_f32_u32(x, 8), level = vdupq_n_f32(1.0f / 255);
    const float32x4_t scaled = formula == ST_FORMULA_NORMALIZE_PRODUCT
                                   ? vmulq_f32(vcvtq_f32_u32(x), level)
                                   : vfmaq_f32(part, part, level);
    if (formula == ST_FORMULA_SCALE)
        return scaled;
    const float32x4_t centred = vaddq_f32(scaled, n.add);
    return vfmaq_f32(vmulq_f32(centred, n.low), centred, n.high);
}

/* The upper half of each float, rounded to nearest, ties to even. */
ST_INLINE uint16x4_t brain(float32x4_t v)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(v);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    return vaddhn_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
}

ST_INLINE void store(void *out, int32_t at, float32x4_t v, enum stoker_dtype dtype)
{
    if (dtype == STOKER_DTYPE_F32)
        vst1q_f32((float *)out + at, v);
    else if (dtype == STOKER_DTYPE_F16)
        vst1_u16((uint16_t *)out + at, vreinterpret_u16_f16(vcvt_f16_f32(v)));
    else
        vst1_u16((uint16_t *)out + at, brain(v));
}

/* Converts 16 bytes to 16 values, starting at value `at`. The constants advance by `turn` from vector to
 * vector. */
ST_INLINE void convert16(void *out, int32_t at, uint8x16_t bytes, const struct numbers n[3],
                         int32_t first, int32_t turn, enum st_formula formula, enum stoker_dtype dtype)
{
    for (int32_t i = 0; i < 4; i++) {
        const uint32x4_t x = st_lanes32(bytes, i);
        store(out, at + i * 4, apply(x, n[(first + i * turn) % 3], formula), dtype);
    }
}

/* The channels of the BLOCK pixels that become those from pixel `x` on. */
ST_INLINE uint8x16x3_t load_planes(const uint8_t *in, int32_t x, int32_t width, bool mirror)
{
    uint8x16x3_t rgb = vld3q_u8(in + (ptrdiff_t)(mirror ? width - BLOCK - x : x) * 3);
    for (int c = 0; mirror && c < 3; c++)
        rgb.val[c] = reversed(rgb.val[c]);
    return rgb;
}

/* Converts BLOCK pixels, which become those from pixel `x` on. */
ST_INLINE void convert_block(const struct st_finish *f, uint8_t *out, size_t plane, const uint8_t *in,
                             int32_t x, int32_t width, const struct numbers n[3],
                             enum st_formula formula, enum stoker_dtype dtype, bool mirror)
{
    if (f->channels == 1) {
        convert16(out, x, vld1q_u8(in + x), n, 0, 0, formula, dtype);
    } else if (f->layout == STOKER_LAYOUT_NHWC) {
        for (int32_t part = 0; part < 3; part++)
            convert16(out, x * 3 + part * 16, vld1q_u8(in + x * 3 + part * 16), n, part, 1, formula,
                      dtype);
    } else {
        const uint8x16x3_t rgb = load_planes(in, x, width, mirror);
        for (int32_t c = 0; c < 3; c++)
            convert16(out + (size_t)c * plane, x, rgb.val[c], n, c, 0, formula, dtype);
    }
}

/* If the width is not a multiple of BLOCK, the last pixels are done by an overlapping block. */
ST_INLINE void convert(const struct st_finish *f, void *out, size_t plane, const uint8_t *in,
                       int32_t width, enum st_formula formula, enum stoker_dtype dtype, bool mirror)
{
    struct numbers n[3];
    for (int i = 0; i < 3; i++) { /* for the three channels, or for three consecutive vectors */
        const struct st_lanes *lanes =
            f->lanes + (f->layout == STOKER_LAYOUT_NCHW ? i % f->channels : 0);
        const int lane = f->layout == STOKER_LAYOUT_NCHW ? 0 : i * 4;
        n[i] = (struct numbers){vld1q_f32(lanes->add + lane), vld1q_f32(lanes->high + lane),
                                vld1q_f32(lanes->low + lane)};
    }
    int32_t x = 0;
    for (; x + BLOCK <= width; x += BLOCK)
        convert_block(f, out, plane, in, x, width, n, formula, dtype, mirror);
    if (x < width)
        convert_block(f, out, plane, in, width - BLOCK, width, n, formula, dtype, mirror);
}

/* Splits bytes of three channels into planes. */
ST_INLINE void split(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, bool mirror)
{
    for (int32_t x = 0; x < width; x += BLOCK) {
        const int32_t to = x + BLOCK <= width ? x : width - BLOCK;
        const uint8x16x3_t rgb = load_planes(in, to, width, mirror);
        for (size_t c = 0; c < 3; c++)
            vst1q_u8(out + c * plane + to, rgb.val[c]);
    }
}

void st_finish_neon(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                    int32_t width, bool mirror)
{
    st_finish_with((struct st_finish_ways){convert, split, mirror_row, BLOCK}, finish, out, plane,
                   in, width, mirror);
}
