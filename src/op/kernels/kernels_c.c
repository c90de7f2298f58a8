/* kernels_c.c - the inner loops in plain C: the specification
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/kernels/kernels_isa.h"

#include <string.h>

enum { HALF = 1 << (ST_WEIGHT_BITS - 1) };

/* Sums may wrap, so they are unsigned. */
static inline uint8_t settle(uint32_t sum)
{
    const int32_t value = (int32_t)sum >> ST_WEIGHT_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* ---- horizontal -------------------------------------------------------------------------------- */

struct plan {
    const struct st_taps *taps;
    int32_t channels;
};

static uint64_t across_size(const struct st_taps *taps, int32_t channels)
{
    (void)taps, (void)channels;
    return sizeof(struct plan);
}

static void across_plan(void *memory, const struct st_taps *taps, int32_t channels)
{
    struct plan *plan = memory;
    *plan = (struct plan){taps, channels};
}

static inline void across_row1(const struct st_taps *taps, uint8_t *restrict out,
                               const uint8_t *restrict in, int32_t width)
{
    const int32_t *weight = taps->weight;
    for (int32_t o = 0; o < taps->count; o++, weight += width) {
        const uint8_t *from = in + taps->first[o];
        uint32_t sum = HALF;
        for (int32_t t = 0; t < width; t++)
            sum += from[t] * (uint32_t)weight[t];
        out[o] = settle(sum);
    }
}

static inline void across_row3(const struct st_taps *taps, uint8_t *restrict out,
                               const uint8_t *restrict in, int32_t width)
{
    const int32_t *weight = taps->weight;
    for (int32_t o = 0; o < taps->count; o++, weight += width, out += 3) {
        const uint8_t *from = in + (ptrdiff_t)taps->first[o] * 3;
        uint32_t red = HALF, green = HALF, blue = HALF;
        for (int32_t t = 0; t < width; t++, from += 3) {
            const uint32_t w = (uint32_t)weight[t];
            red += from[0] * w;
            green += from[1] * w;
            blue += from[2] * w;
        }
        out[0] = settle(red);
        out[1] = settle(green);
        out[2] = settle(blue);
    }
}

static void across(const void *memory, uint8_t *const *out, const uint8_t *const *in, int32_t rows)
{
    const struct plan *plan = memory;
    for (int32_t y = 0; y < rows; y++)
        if (plan->channels == 1)
            across_row1(plan->taps, out[y], in[y], plan->taps->width);
        else if (plan->taps->width == 2) /* the widths of most bilinear crops, unrolled */
            across_row3(plan->taps, out[y], in[y], 2);
        else if (plan->taps->width == 3)
            across_row3(plan->taps, out[y], in[y], 3);
        else
            across_row3(plan->taps, out[y], in[y], plan->taps->width);
}

/* ---- vertical ---------------------------------------------------------------------------------- */

/* In strips, so that the sums of a strip stay in registers or the nearest cache. */
void st_down_c(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, int32_t taps,
               size_t bytes)
{
    enum { STRIP = 64 };
    uint32_t sum[STRIP];
    for (size_t x = 0; x < bytes; x += STRIP) {
        const size_t n = bytes - x < STRIP ? bytes - x : STRIP;
        for (size_t i = 0; i < n; i++)
            sum[i] = HALF;
        for (int32_t t = 0; t < taps; t++) {
            const uint8_t *row = rows[t] + x;
            const uint32_t w = (uint32_t)weight[t];
            for (size_t i = 0; i < n; i++)
                sum[i] += row[i] * w;
        }
        for (size_t i = 0; i < n; i++)
            out[x + i] = settle(sum[i]);
    }
}

/* Reverses the pixels of a row. */
void st_mirror_c(uint8_t *restrict out, const uint8_t *restrict in, int32_t width, int32_t channels)
{
    out += (ptrdiff_t)width * channels;
    for (int32_t x = 0; x < width; x++, in += channels) {
        out -= channels;
        for (int32_t c = 0; c < channels; c++)
            out[c] = in[c];
    }
}

/* ---- finish ------------------------------------------------------------------------------------ */

/* Looks up every `step`-th byte from `in` on, or back. */
static void look_up(const struct st_finish *f, const uint32_t *lut, void *out, int32_t out_step,
                    const uint8_t *in, ptrdiff_t step, int32_t width)
{
    if (f->element == 4)
        for (int32_t x = 0; x < width; x++)
            ((uint32_t *)out)[x * out_step] = lut[in[x * step]];
    else if (f->element == 2)
        for (int32_t x = 0; x < width; x++)
            ((uint16_t *)out)[x * out_step] = (uint16_t)lut[in[x * step]];
    else
        for (int32_t x = 0; x < width; x++)
            ((uint8_t *)out)[x * out_step] = (uint8_t)lut[in[x * step]];
}

void st_finish_c(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                 int32_t width, bool mirror)
{
    const bool planes = finish->layout == STOKER_LAYOUT_NCHW;
    const ptrdiff_t step = mirror ? -finish->channels : finish->channels;
    if (!width)
        return;
    if (finish->element == 1 && (finish->channels == 1 || !planes)) {
        if (mirror)
            st_mirror_c(out, in, width, finish->channels);
        else
            memcpy(out, in, (size_t)width * (size_t)finish->channels);
        return;
    }
    if (mirror)
        in += (ptrdiff_t)(width - 1) * finish->channels;
    for (int32_t c = 0; c < finish->channels; c++)
        look_up(finish, finish->lut[c], (uint8_t *)out + (size_t)c * (planes ? plane : finish->element),
                planes ? 1 : finish->channels, in + c, step, width);
}

const struct st_kernels st_kernels_c = {
    .name = "c",
    .across_size = across_size,
    .across_plan = across_plan,
    .across = across,
    .down = st_down_c,
    .finish = st_finish_c,
};
