/* finish.c - converts bytes to the final type and layout: ToTensor, Normalize, the cast, NCHW or NHWC
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/tensor/finish.h"

#include <math.h>
#include <string.h>

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* `value` >> `shift`, rounded to nearest, ties to even. */
static uint32_t round_shift(uint32_t value, uint32_t shift)
{
    const uint32_t half = (1u << (shift - 1)) - 1 + ((value >> shift) & 1);
    return (value + half) >> shift;
}

static uint32_t half_bits(float value)
{
    const uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return sign | 0x7e00; /* NaN */
    if (rest >= 0x477ff000)
        return sign | 0x7c00; /* rounds to 65536 or more: infinity */
    if (rest >= 0x38800000)
        return sign | (round_shift(rest, 13) - (112u << 10));
    /* Subnormal: units of 2^-24. */
    const uint32_t exponent = rest >> 23, shift = 126 - exponent;
    return shift > 24 ? sign : sign | round_shift((rest & 0x7fffff) | 0x800000, shift);
}

static float half_float(uint32_t bits)
{
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexpf((float)(fraction | 0x400), (int)exponent - 25)
                                 : ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -value : value;
}

static uint32_t brain_bits(float value)
{
    return isnan(value) ? 0x7fc0 : round_shift(float_bits(value), 16) & 0xffff;
}

static uint32_t value_bits(enum stoker_dtype dtype, float value)
{
    switch (dtype) {
    case STOKER_DTYPE_F16: return half_bits(value);
    case STOKER_DTYPE_BF16: return brain_bits(value);
    case STOKER_DTYPE_F32: return float_bits(value);
    default: return (uint32_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

/* What `value` becomes when it is stored as `dtype`. */
static float rounded(enum stoker_dtype dtype, float value)
{
    switch (dtype) {
    case STOKER_DTYPE_F16: return half_float(half_bits(value));
    case STOKER_DTYPE_BF16: return bits_float(brain_bits(value) << 16);
    default: return value;
    }
}

/* Each operation rounds to float32 and then to the pipeline's type, as torch does on a CPU. */
uint32_t st_finish_value(const struct st_finish_spec *spec, uint32_t first, enum stoker_dtype dtype,
                         int32_t channel, float value)
{
    for (uint32_t i = first; i < spec->steps; i++) {
        value = rounded(spec->dtype, value - rounded(spec->dtype, spec->step[i].mean[channel]));
        const float std = rounded(spec->dtype, spec->step[i].std[channel]);
        value = rounded(spec->dtype, spec->step[i].product ? value * std : value / std);
    }
    return value_bits(dtype, value);
}

/* ---- finding a formula ------------------------------------------------------------------------- */

/* One value, computed as by the vector kernels. */
static float formula_value(enum st_formula formula, const struct st_lanes *lanes, int32_t lane,
                           int32_t x)
{
    if (formula == ST_FORMULA_LINE)
        return fmaf((float)x, lanes->high[lane], lanes->add[lane]);
    if (formula == ST_FORMULA_PRODUCT)
        return ((float)x + lanes->add[lane]) * lanes->high[lane];
    const float part = (float)x / 256;
    const float scaled = formula == ST_FORMULA_NORMALIZE_PRODUCT ? (float)x * (1.0f / 255)
                                                                 : fmaf(part, 1.0f / 255, part);
    if (formula == ST_FORMULA_SCALE)
        return scaled;
    const float centred = scaled + lanes->add[lane];
    return fmaf(centred, lanes->high[lane], centred * lanes->low[lane]);
}

/* Whether the formula gives the table's result for every value of every channel. */
static bool formula_holds(const struct st_finish *f, enum st_formula formula)
{
    for (int32_t c = 0; c < f->channels; c++) {
        const bool planes = f->layout == STOKER_LAYOUT_NCHW;
        const struct st_lanes *lanes = &f->lanes[planes ? c : 0];
        for (int32_t x = 0; x < 256; x++)
            if (value_bits(f->dtype, formula_value(formula, lanes, planes ? 0 : c, x)) != f->lut[c][x])
                return false;
    }
    return true;
}

static void set_lanes(struct st_finish *f, const struct st_finish_spec *spec, enum st_formula formula)
{
    for (int32_t row = 0; row < f->channels; row++)
        for (int32_t i = 0; i < ST_LANES; i++) {
            const int32_t c = f->layout == STOKER_LAYOUT_NCHW ? row : i % f->channels;
            const float mean = spec->steps ? spec->step[0].mean[c] : 0;
            const bool product = spec->steps && spec->step[0].product, line = formula == ST_FORMULA_LINE;
            const double by = spec->steps ? (double)spec->step[0].std[c] : 1;
            const double std = product ? 1 / by : by;
            const double slope = line ? 1 / (255 * std) : 1 / std;
            f->lanes[row].high[i] = formula == ST_FORMULA_PRODUCT ? (float)by : (float)slope;
            f->lanes[row].low[i] = (float)(slope - (double)f->lanes[row].high[i]);
            f->lanes[row].add[i] = line ? (float)(-(double)mean / std) : -mean;
        }
}

/* Chooses the cheapest formula that reproduces the table, if there is one. */
static void choose_formula(struct st_finish *f, const struct st_finish_spec *spec)
{
    f->formula = ST_FORMULA_TABLE;
    if (!spec->scaled && spec->steps == 1 && spec->step[0].product) {
        set_lanes(f, spec, ST_FORMULA_PRODUCT);
        f->formula = formula_holds(f, ST_FORMULA_PRODUCT) ? ST_FORMULA_PRODUCT : ST_FORMULA_TABLE;
        return;
    }
    if (!spec->scaled || spec->steps > 1)
        return;
    set_lanes(f, spec, ST_FORMULA_LINE);
    if (formula_holds(f, ST_FORMULA_LINE)) {
        f->formula = ST_FORMULA_LINE;
        return;
    }
    const enum st_formula normalize =
        spec->by_product ? ST_FORMULA_NORMALIZE_PRODUCT : ST_FORMULA_NORMALIZE;
    const enum st_formula exact = spec->steps ? normalize : ST_FORMULA_SCALE;
    set_lanes(f, spec, exact);
    if (formula_holds(f, exact))
        f->formula = exact;
}

static int check(const struct st_finish_spec *spec, enum stoker_dtype dtype, int32_t channels,
                 struct stoker_error *err)
{
    if (channels != 1 && channels != 3)
        return st_fail(err, STOKER_EINVAL, "images of %d channels are not supported; use 1 or 3",
                       channels);
    if (dtype != STOKER_DTYPE_U8 && dtype != STOKER_DTYPE_F32 && dtype != STOKER_DTYPE_F16 &&
        dtype != STOKER_DTYPE_BF16)
        return st_fail(err, STOKER_EINVAL,
                       "dtype of images must be uint8, float32, float16 or bfloat16");
    if (dtype == STOKER_DTYPE_U8 && spec->dtype != STOKER_DTYPE_U8)
        return st_fail(
            err, STOKER_EINVAL,
            "dtype is uint8, but the pipeline ends in floats: remove to_tensor, or choose a float "
            "dtype");
    if (spec->steps > ST_NORMALIZE_MAX)
        return st_fail(err, STOKER_EINVAL, "more than %d normalize steps: merge some of them",
                       ST_NORMALIZE_MAX);
    for (uint32_t i = 0; i < spec->steps; i++)
        for (int32_t c = 0; c < channels; c++)
            if (!spec->step[i].product && rounded(spec->dtype, spec->step[i].std[c]) == 0)
                return st_fail(
                    err, STOKER_EINVAL,
                    "normalize: std of channel %d is 0 in the pipeline's type, which would divide by "
                    "zero",
                    c);
    return STOKER_OK;
}

int st_finish_init(struct st_finish *finish, const struct st_finish_spec *spec, enum stoker_dtype dtype,
                   enum stoker_layout layout, int32_t channels, struct stoker_error *err)
{
    const int rc = check(spec, dtype, channels, err);
    if (rc)
        return rc;
    memset(finish, 0, sizeof *finish);
    finish->dtype = dtype;
    finish->layout = spec->array ? STOKER_LAYOUT_NHWC : layout;
    finish->array = spec->array;
    finish->channels = channels;
    finish->element = dtype == STOKER_DTYPE_U8 ? 1 : dtype == STOKER_DTYPE_F32 ? 4 : 2;
    for (int32_t c = 0; c < channels; c++)
        for (int32_t x = 0; x < 256; x++) {
            const float share = spec->by_product ? (float)x * (float)(1 / 255.0) : (float)x / 255;
            const float value = spec->scaled ? rounded(spec->dtype, share) : (float)x;
            finish->lut[c][x] = st_finish_value(spec, 0, dtype, c, value);
        }
    choose_formula(finish, spec);
    return STOKER_OK;
}

/* ---- writing ----------------------------------------------------------------------------------- */

/* Where rows go. */
struct rows {
    size_t bytes, plane; /* of a row of one plane, and of a plane */
    int32_t planes;
};

static struct rows rows_of(const struct st_finish *f, const struct st_place *place)
{
    const bool planes = f->layout == STOKER_LAYOUT_NCHW;
    const size_t bytes = (size_t)place->width * f->element * (planes ? 1 : (size_t)f->channels);
    return (struct rows){bytes, bytes * (size_t)place->height, planes ? f->channels : 1};
}

/* Which of `lines` a fraction ends with. Often done: only large numbers wait for a long division. */
static size_t part_of(size_t lines, size_t part, size_t of)
{
    if (of == 1)
        return lines * part;
    const uint64_t product = (uint64_t)lines * part;
    return product <= UINT32_MAX && of <= UINT32_MAX ? (uint32_t)product / (uint32_t)of : product / of;
}

void st_finish_ahead(const struct st_finish *f, bool flip, int32_t y, struct st_fraction share,
                     const struct st_place *place)
{
    const struct rows rows = rows_of(f, place);
    const int32_t to = flip ? place->height - 1 - y : y;
    const size_t lines = rows.bytes / ST_CACHE_LINE + 1;
    const size_t begin = part_of(lines, share.begin, share.of);
    const size_t end = part_of(lines, share.end, share.of);
    if (to < 0 || to >= place->height)
        return;
    const uint8_t *row = (uint8_t *)place->data + (size_t)to * rows.bytes + begin * ST_CACHE_LINE;
    for (int32_t c = 0; c < rows.planes; c++)
        st_fetch_to_write(row + (size_t)c * rows.plane, (end - begin) * ST_CACHE_LINE);
}

void st_finish_row(const struct st_finish *f, const struct st_kernels *kernels, const uint8_t *row,
                   bool mirror, bool flip, int32_t y, const struct st_place *place)
{
    const struct rows rows = rows_of(f, place);
    const int32_t to = flip ? place->height - 1 - y : y;
    kernels->finish(f, (uint8_t *)place->data + (size_t)to * rows.bytes, rows.plane, row, place->width,
                    mirror);
}

void st_finish_view(const struct st_finish *finish, const struct st_kernels *kernels,
                    const struct st_view *pixels, bool mirror, bool flip, const struct st_place *place)
{
    for (int32_t y = 0; y < pixels->height; y++) {
        st_view_ahead(pixels, y);
        st_finish_ahead(finish, flip, y + ST_ROWS_AHEAD, ST_ALL_OF_IT, place);
        st_finish_row(finish, kernels, st_row(pixels, y), mirror, flip, y, place);
    }
}
