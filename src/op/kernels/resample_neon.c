/* resample_neon.c - resampling with NEON, which every aarch64 CPU has
 *
 * Horizontal pass, few taps: eight adjacent values at a time. For each group of four (two pixels of
 * three channels), one table look-up moves the bytes of a tap from 16 loaded bytes into 32-bit lanes,
 * where they are multiplied; the next tap is the same look-up one pixel further on. Four rows share the
 * weights. Many taps: one output pixel at a time, eight taps per vector.
 *
 * Sums do not include the rounding term, because the final shift rounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/kernels_neon.h"

#include <string.h>

enum { ROWS = ST_ROWS, UNIT = 8, WIDE = 8 };

/* Eight output values, followed by the weights of their taps, eight per tap. */
struct unit {
    uint8_t index[2][16];
    int32_t start[2];
    int32_t pad[6];
    int32_t weight[];
};

struct plan {
    int32_t channels, values, units, taps;
    bool wide;
    const int32_t *first; /* wide */
    _Alignas(64) uint8_t data[]; /* units; or, if wide, weights padded to multiples of WIDE */
};

static inline int32_t wide_taps(const struct st_taps *taps) { return (taps->width + WIDE - 1) & -WIDE; }

static inline size_t unit_size(int32_t taps) { return sizeof(struct unit) + (size_t)taps * UNIT * 4; }

static uint64_t across_size(const struct st_taps *taps, int32_t channels)
{
    const uint64_t units = ((uint64_t)taps->count * (uint64_t)channels + UNIT - 1) / UNIT;
    const uint64_t wide = (uint64_t)taps->count * (uint64_t)wide_taps(taps) * 4;
    const uint64_t narrow = units * unit_size(taps->width);
    return sizeof(struct plan) + (narrow > wide ? narrow : wide);
}

/* The look-ups and weights of one unit whose values start at `start` and have the weights `weight`.
 * False if four values are too far apart for one look-up. */
static bool plan_unit(struct unit *unit, const int32_t start[UNIT], const int32_t *const weight[UNIT],
                      int32_t taps)
{
    memset(unit->index, 0x80, sizeof unit->index);
    for (int32_t part = 0; part < 2; part++) {
        const int32_t *of = start + part * 4;
        unit->start[part] = st_lowest(of, 4);
        for (int32_t i = 0; i < 4; i++) {
            if (of[i] - unit->start[part] > 15)
                return false;
            unit->index[part][i * 4] = (uint8_t)(of[i] - unit->start[part]);
        }
    }
    for (int32_t t = 0; t < taps; t++)
        for (int32_t i = 0; i < UNIT; i++)
            unit->weight[t * UNIT + i] = weight[i][t];
    return true;
}

static bool plan_units(struct plan *plan, const struct st_taps *taps)
{
    int32_t pixel = 0, channel = 0;
    for (int32_t u = 0; u < plan->units; u++) {
        int32_t start[UNIT];
        const int32_t *weight[UNIT];
        for (int32_t i = 0; i < UNIT; i++) {
            start[i] = taps->first[pixel] * plan->channels + channel;
            weight[i] = taps->weight + (size_t)pixel * (size_t)taps->width;
            st_next_value(taps, plan->channels, &pixel, &channel);
        }
        if (!plan_unit((struct unit *)(plan->data + (size_t)u * unit_size(plan->taps)), start, weight,
                       taps->width))
            return false;
    }
    return true;
}

static void plan_wide(struct plan *plan, const struct st_taps *taps)
{
    plan->wide = true;
    plan->taps = wide_taps(taps);
    plan->first = taps->first;
    int32_t *to = (int32_t *)plan->data;
    for (int32_t o = 0; o < taps->count; o++, to += plan->taps) {
        memcpy(to, taps->weight + (size_t)o * (size_t)taps->width, (size_t)taps->width * 4);
        memset(to + taps->width, 0, (size_t)(plan->taps - taps->width) * 4);
    }
}

static void across_plan(void *memory, const struct st_taps *taps, int32_t channels)
{
    struct plan *plan = memory;
    const int32_t values = taps->count * channels;
    *plan = (struct plan){.channels = channels, .values = values, .taps = taps->width,
                          .units = (values + UNIT - 1) / UNIT};
    if (!plan_units(plan, taps))
        plan_wide(plan, taps);
}

/* The sums of eight values, rounded and clipped to bytes. */
static inline uint8x8_t settle(int32x4_t a, int32x4_t b)
{
    const int16x8_t high = vuzp2q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b));
    return vqrshrun_n_s16(high, ST_WEIGHT_BITS - 16);
}

static inline int32x4_t tap(int32x4_t sum, const uint8_t *from, uint8x16_t index, int32x4_t weight)
{
    const uint8x16_t lanes = vqtbl1q_u8(vld1q_u8(from), index);
    return vmlaq_s32(sum, vreinterpretq_s32_u8(lanes), weight);
}

/* One unit of four rows; `taps` and `channels` are constants where it is inlined. */
ST_INLINE void unit_rows(const struct unit *unit, const uint8_t *const *in,
                                                            int32_t taps, int32_t channels,
                                                            uint8x8_t out[ROWS])
{
    const uint8x16_t index0 = vld1q_u8(unit->index[0]), index1 = vld1q_u8(unit->index[1]);
    const uint8_t *from0[ROWS], *from1[ROWS];
    int32x4_t sum0[ROWS], sum1[ROWS];
    for (int r = 0; r < ROWS; r++) {
        from0[r] = in[r] + unit->start[0];
        from1[r] = in[r] + unit->start[1];
        sum0[r] = sum1[r] = vdupq_n_s32(0);
    }
    for (int32_t t = 0; t < taps; t++) {
        const int32x4_t weight0 = vld1q_s32(unit->weight + t * UNIT);
        const int32x4_t weight1 = vld1q_s32(unit->weight + t * UNIT + 4);
        for (int r = 0; r < ROWS; r++) {
            sum0[r] = tap(sum0[r], from0[r] + t * channels, index0, weight0);
            sum1[r] = tap(sum1[r], from1[r] + t * channels, index1, weight1);
        }
    }
    for (int r = 0; r < ROWS; r++)
        out[r] = settle(sum0[r], sum1[r]);
}

ST_INLINE void across_units(const struct plan *plan, uint8_t *const *out,
                                                               const uint8_t *const *in, int32_t taps,
                                                               int32_t channels)
{
    uint8x8_t done[ROWS];
    const uint8_t *data = plan->data;
    const int32_t whole = plan->values / UNIT;
    for (int32_t u = 0; u < whole; u++, data += unit_size(taps)) {
        unit_rows((const struct unit *)data, in, taps, channels, done);
        for (int r = 0; r < ROWS; r++)
            vst1_u8(out[r] + u * UNIT, done[r]);
    }
    if (whole == plan->units)
        return;
    unit_rows((const struct unit *)data, in, taps, channels, done);
    for (int r = 0; r < ROWS; r++) {
        uint8_t last[UNIT];
        vst1_u8(last, done[r]);
        memcpy(out[r] + whole * UNIT, last, (size_t)(plan->values - whole * UNIT));
    }
}

ST_INLINE void four_rows(const void *memory, uint8_t *const *out, const uint8_t *const *in,
                         int32_t channels)
{
    const struct plan *plan = memory;
    switch (plan->taps) {
    case 2: across_units(plan, out, in, 2, channels); break;
    case 3: across_units(plan, out, in, 3, channels); break;
    case 4: across_units(plan, out, in, 4, channels); break;
    case 5: across_units(plan, out, in, 5, channels); break;
    default: across_units(plan, out, in, plan->taps, channels);
    }
}

/* ---- many taps --------------------------------------------------------------------------------- */

static inline int32x4_t wide_tap(int32x4_t sum, uint8x8_t bytes, int32x4_t weight0, int32x4_t weight1)
{
    const uint16x8_t wide = vmovl_u8(bytes);
    sum = vmlaq_s32(sum, vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide))), weight0);
    return vmlaq_s32(sum, vreinterpretq_s32_u32(vmovl_high_u16(wide)), weight1);
}

static inline uint8_t wide_settle(int32x4_t sum)
{
    const uint32_t total = (uint32_t)vaddvq_s32(sum) + (1u << (ST_WEIGHT_BITS - 1));
    const int32_t value = (int32_t)total >> ST_WEIGHT_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void wide_row1(const struct plan *plan, uint8_t *out, const uint8_t *in)
{
    const int32_t *weight = (const int32_t *)plan->data;
    for (int32_t o = 0; o < plan->values; o++) {
        const uint8_t *from = in + plan->first[o];
        int32x4_t sum = vdupq_n_s32(0);
        for (int32_t t = 0; t < plan->taps; t += WIDE, weight += WIDE)
            sum = wide_tap(sum, vld1_u8(from + t), vld1q_s32(weight), vld1q_s32(weight + 4));
        out[o] = wide_settle(sum);
    }
}

static void wide_row3(const struct plan *plan, uint8_t *out, const uint8_t *in)
{
    const int32_t *weight = (const int32_t *)plan->data;
    for (int32_t v = 0; v < plan->values; v += 3) {
        const uint8_t *from = in + (ptrdiff_t)plan->first[v / 3] * 3;
        int32x4_t red = vdupq_n_s32(0), green = red, blue = red;
        for (int32_t t = 0; t < plan->taps; t += WIDE, weight += WIDE, from += 3 * WIDE) {
            const uint8x8x3_t rgb = vld3_u8(from);
            const int32x4_t weight0 = vld1q_s32(weight), weight1 = vld1q_s32(weight + 4);
            red = wide_tap(red, rgb.val[0], weight0, weight1);
            green = wide_tap(green, rgb.val[1], weight0, weight1);
            blue = wide_tap(blue, rgb.val[2], weight0, weight1);
        }
        out[v] = wide_settle(red);
        out[v + 1] = wide_settle(green);
        out[v + 2] = wide_settle(blue);
    }
}

static void across(const void *memory, uint8_t *const *out, const uint8_t *const *in, int32_t rows)
{
    const struct plan *plan = memory;
    if (plan->wide) {
        for (int32_t y = 0; y < rows; y++)
            if (plan->channels == 1)
                wide_row1(plan, out[y], in[y]);
            else
                wide_row3(plan, out[y], in[y]);
        return;
    }
    st_by_four_rows(four_rows, plan, plan->channels, out, in, rows);
}

/* ---- vertical ---------------------------------------------------------------------------------- */

/* A weight as high * 65536 + low. High parts need only the upper 16 bits of a sum. */
struct split {
    int16_t low, high;
};

static inline struct split split_weight(int32_t weight)
{
    const int32_t high = (weight + 0x8000) >> 16;
    return (struct split){(int16_t)(weight - high * 65536), (int16_t)high};
}

/* The upper halves of eight sums of difference * weight. */
ST_INLINE int16x8_t differ(int16x8_t a, struct split wa, int16x8_t b, struct split wb, bool both)
{
    int32x4_t first = vmull_n_s16(vget_low_s16(a), wa.low);
    int32x4_t second = vmull_high_n_s16(a, wa.low);
    if (both) {
        first = vmlal_n_s16(first, vget_low_s16(b), wb.low);
        second = vmlal_high_n_s16(second, b, wb.low);
    }
    int16x8_t high = vuzp2q_s16(vreinterpretq_s16_s32(first), vreinterpretq_s16_s32(second));
    high = vmlaq_n_s16(high, a, wa.high);
    return both ? vmlaq_n_s16(high, b, wb.high) : high;
}

ST_INLINE int16x8_t minus(uint8x8_t a, uint8x8_t b) { return vreinterpretq_s16_u16(vsubl_u8(a, b)); }

/* Two or three taps whose weights sum to 1: the middle row plus weighted differences of the others from
 * it. This saves one multiplication per byte. */
ST_INLINE uint8x16_t blend16(const uint8_t *const *rows, struct split w0, struct split w2, bool both,
                             size_t x)
{
    const uint8x16_t side = vld1q_u8(rows[0] + x), middle = vld1q_u8(rows[1] + x);
    const uint8x16_t other = both ? vld1q_u8(rows[2] + x) : middle;
    const uint8x8_t middle0 = vget_low_u8(middle), middle1 = vget_high_u8(middle);
    const int16x8_t add0 =
        differ(minus(vget_low_u8(side), middle0), w0, minus(vget_low_u8(other), middle0), w2, both);
    const int16x8_t add1 = differ(minus(vget_high_u8(side), middle1), w0,
                                  minus(vget_high_u8(other), middle1), w2, both);
    const int16x8_t base0 = vreinterpretq_s16_u16(vmovl_u8(middle0));
    const int16x8_t base1 = vreinterpretq_s16_u16(vmovl_high_u8(middle));
    return vqmovun_high_s16(vqmovun_s16(vrsraq_n_s16(base0, add0, ST_WEIGHT_BITS - 16)),
                            vrsraq_n_s16(base1, add1, ST_WEIGHT_BITS - 16));
}

/* Any taps: bytes are moved into 32-bit lanes by look-ups, which leaves other units for multiplying. */
ST_INLINE uint8x16_t sum16(const uint8_t *const *rows, const int32_t *weight, int32_t taps, size_t x)
{
    int32x4_t sum[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
    for (int32_t t = 0; t < taps; t++) {
        const uint8x16_t bytes = vld1q_u8(rows[t] + x);
        for (int i = 0; i < 4; i++)
            sum[i] = vmlaq_n_s32(sum[i], vreinterpretq_s32_u32(st_lanes32(bytes, i)), weight[t]);
    }
    return vcombine_u8(settle(sum[0], sum[1]), settle(sum[2], sum[3]));
}

enum how { BLEND2, BLEND3, SUM };

ST_INLINE void down_how(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, int32_t taps,
                     size_t bytes, enum how how)
{
    const struct split w0 = split_weight(weight[0]), w2 = split_weight(weight[taps - 1]);
    for (size_t x = 0; x < bytes; x += 16) {
        const uint8x16_t done = how == SUM ? sum16(rows, weight, taps, x)
                                           : blend16(rows, w0, w2, how == BLEND3, x);
        if (x + 16 <= bytes) {
            vst1q_u8(out + x, done);
        } else {
            uint8_t last[16];
            vst1q_u8(last, done);
            memcpy(out + x, last, bytes - x);
        }
    }
}

static void down(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, int32_t taps,
                 size_t bytes)
{
    const int32_t one = 1 << ST_WEIGHT_BITS;
    if (taps == 2 && weight[0] + weight[1] == one)
        down_how(out, rows, weight, 2, bytes, BLEND2);
    else if (taps == 3 && weight[0] + weight[1] + weight[2] == one)
        down_how(out, rows, weight, 3, bytes, BLEND3);
    else if (taps == 3)
        down_how(out, rows, weight, 3, bytes, SUM);
    else if (taps == 4)
        down_how(out, rows, weight, 4, bytes, SUM);
    else
        down_how(out, rows, weight, taps, bytes, SUM);
}

const struct st_kernels st_kernels_neon = {
    .name = "neon",
    .across_size = across_size,
    .across_plan = across_plan,
    .across = across,
    .down = down,
    .finish = st_finish_neon,
};
