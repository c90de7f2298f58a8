/* kernels_isa.h - declarations shared by the kernel files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_KERNELS_ISA_H
#define ST_OP_KERNELS_KERNELS_ISA_H

#include "op/kernels/formula.h"
#include "op/kernels/kernels.h"

extern const struct st_kernels st_kernels_c, st_kernels_neon, st_kernels_sse2, st_kernels_avx2,
    st_kernels_avx512;

/* Fallbacks for what the vector variants do not handle: very many taps, some types and formulas. */
void st_down_c(uint8_t *out, const uint8_t *const *rows, const int32_t *weight, int32_t taps,
               size_t bytes);
void st_mirror_c(uint8_t *restrict out, const uint8_t *restrict in, int32_t width, int32_t channels);
void st_finish_c(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                 int32_t width, bool mirror);

void st_finish_neon(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                    int32_t width, bool mirror);
void st_finish_avx2(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                    int32_t width, bool mirror);
void st_finish_avx512(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                      int32_t width, bool mirror);

#define ST_INLINE static inline __attribute__((always_inline))

/* Converts a row by a formula. The last three arguments are constants where it is inlined; only rows
 * that are split into planes are mirrored by it. */
typedef void st_convert_fn(const struct st_finish *finish, void *out, size_t plane, const uint8_t *in,
                           int32_t width, enum st_formula formula, enum stoker_dtype dtype, bool mirror);

ST_INLINE void st_convert_type(st_convert_fn *convert, const struct st_finish *f, void *out,
                               size_t plane, const uint8_t *in, int32_t width, enum st_formula formula,
                               bool mirror)
{
    if (f->dtype == STOKER_DTYPE_F32)
        convert(f, out, plane, in, width, formula, STOKER_DTYPE_F32, mirror);
    else if (f->dtype == STOKER_DTYPE_F16)
        convert(f, out, plane, in, width, formula, STOKER_DTYPE_F16, mirror);
    else
        convert(f, out, plane, in, width, formula, STOKER_DTYPE_BF16, mirror);
}

/* Splits bytes of three channels into planes; `mirror` is a constant where it is inlined. */
typedef void st_split_fn(uint8_t *out, size_t plane, const uint8_t *in, int32_t width, bool mirror);

/* The vector variants of a CPU; rows shorter than `least` pixels are left to C. */
struct st_finish_ways {
    st_convert_fn *convert;
    st_split_fn *split;
    void (*mirror)(uint8_t *out, const uint8_t *in, int32_t width, int32_t channels);
    int32_t least;
};

/* Instantiates `convert` for every formula and type, and calls the right one. */
ST_INLINE void st_finish_planes_or_not(const struct st_finish_ways ways, const struct st_finish *f,
                                       void *out, size_t plane, const uint8_t *in, int32_t width,
                                       bool mirror)
{
    if (f->dtype == STOKER_DTYPE_U8 && f->layout == STOKER_LAYOUT_NCHW && f->channels == 3)
        ways.split(out, plane, in, width, mirror);
    else if (f->formula == ST_FORMULA_LINE)
        st_convert_type(ways.convert, f, out, plane, in, width, ST_FORMULA_LINE, mirror);
    else if (f->formula == ST_FORMULA_SCALE)
        st_convert_type(ways.convert, f, out, plane, in, width, ST_FORMULA_SCALE, mirror);
    else if (f->formula == ST_FORMULA_NORMALIZE)
        st_convert_type(ways.convert, f, out, plane, in, width, ST_FORMULA_NORMALIZE, mirror);
    else if (f->formula == ST_FORMULA_NORMALIZE_PRODUCT)
        st_convert_type(ways.convert, f, out, plane, in, width, ST_FORMULA_NORMALIZE_PRODUCT, mirror);
    else if (f->formula == ST_FORMULA_PRODUCT)
        st_convert_type(ways.convert, f, out, plane, in, width, ST_FORMULA_PRODUCT, mirror);
    else
        st_finish_c(f, out, plane, in, width, mirror);
}

/* Mirrors a row whose pixels stay together, part by part, before it is converted. */
ST_INLINE void st_finish_mirrored(const struct st_finish_ways ways, const struct st_finish *f,
                                  uint8_t *out, size_t plane, const uint8_t *in, int32_t width)
{
    enum { PART = 512 };
    uint8_t turned[PART * 3 + 64];
    for (int32_t x = 0, n; x < width; x += n) {
        n = width - x < PART ? width - x : PART;
        uint8_t *to = out + (ptrdiff_t)(width - x - n) * f->channels * (ptrdiff_t)f->element;
        ways.mirror(turned, in + (ptrdiff_t)x * f->channels, n, f->channels);
        if (n < ways.least)
            st_finish_c(f, to, plane, turned, n, false);
        else
            st_finish_planes_or_not(ways, f, to, plane, turned, n, false);
    }
}

ST_INLINE void st_finish_with(const struct st_finish_ways ways, const struct st_finish *f, void *out,
                              size_t plane, const uint8_t *in, int32_t width, bool mirror)
{
    if (width < ways.least)
        st_finish_c(f, out, plane, in, width, mirror);
    else if (!mirror)
        st_finish_planes_or_not(ways, f, out, plane, in, width, false);
    else if (f->layout == STOKER_LAYOUT_NCHW && f->channels == 3)
        st_finish_planes_or_not(ways, f, out, plane, in, width, true);
    else
        st_finish_mirrored(ways, f, out, plane, in, width);
}

/* The horizontal kernels process four rows at a time; `channels` is a constant where it is inlined. */
enum { ST_ROWS = 4 };
typedef void st_four_rows_fn(const void *plan, uint8_t *const *out, const uint8_t *const *in,
                             int32_t channels);

/* Processes all rows in groups of four. If the last group is incomplete, its last row is processed
 * repeatedly. */
ST_INLINE void st_by_four_rows(st_four_rows_fn *four, const void *plan, int32_t channels,
                               uint8_t *const *out, const uint8_t *const *in, int32_t rows)
{
    for (int32_t y = 0; y < rows; y += ST_ROWS) {
        uint8_t *to[ST_ROWS];
        const uint8_t *from[ST_ROWS];
        for (int32_t r = 0; r < ST_ROWS; r++) {
            to[r] = out[y + r < rows ? y + r : rows - 1];
            from[r] = in[y + r < rows ? y + r : rows - 1];
        }
        if (channels == 1)
            four(plan, to, from, 1);
        else
            four(plan, to, from, 3);
    }
}

/* Advances to the next output value; stays at the last one, which fills up vectors. */
static inline void st_next_value(const struct st_taps *taps, int32_t channels, int32_t *pixel,
                                 int32_t *channel)
{
    if (++*channel < channels)
        return;
    *channel = 0;
    if (++*pixel == taps->count) {
        *pixel = taps->count - 1;
        *channel = channels - 1;
    }
}

static inline int32_t st_lowest(const int32_t *list, int32_t count)
{
    int32_t low = list[0];
    for (int32_t i = 1; i < count; i++)
        low = list[i] < low ? list[i] : low;
    return low;
}

#endif
