/* finish.h - converts bytes to the final type and layout: ToTensor, Normalize, the cast, NCHW or NHWC
 *
 * A byte has 256 values, so the result of torchvision's sequence of float32 operations is tabulated in
 * advance for each channel. The vector kernels compute it instead where a check of every value at plan
 * time shows that they get the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_TENSOR_FINISH_H
#define ST_OP_TENSOR_FINISH_H

#include "base/err.h"
#include "base/pixels.h"
#include "op/kernels/kernels.h"

enum { ST_NORMALIZE_MAX = 4 };

/* What the ops after decoding require, collected while planning. */
struct st_finish_spec {
    bool scaled;                /* ToTensor: divide by 255, giving float32 */
    bool by_product;            /* or multiply by 1/255, like torchvision's v2; may differ in the last
                                   bit */
    enum stoker_dtype dtype;    /* current type of the pipeline: U8, F32, F16, BF16; steps round to it */
    uint32_t steps;
    struct {
        float mean[4], std[4];
    } step[ST_NORMALIZE_MAX];
};

/* How the vector kernels compute the table's values, where x is the byte; used only if all values
 * agree. */
enum st_formula {
    ST_FORMULA_TABLE,     /* no formula: look it up */
    ST_FORMULA_SCALE,     /* x / 255, as X + X * (1/255) with X = x / 256 */
    ST_FORMULA_NORMALIZE, /* (x / 255 + add) / std, divided as t * high + t * low, 1/std = high + low */
    ST_FORMULA_LINE,      /* x * high + add, fused: exact enough where the output is a 16-bit type */
};

/* The formula's constants for consecutive values of a row: one channel throughout (NCHW), or the
 * channels in turn (NHWC). 48 values are three of the longest vectors, so every vector starts at a
 * multiple. */
enum { ST_LANES = 48 };
struct st_lanes {
    float add[ST_LANES], high[ST_LANES], low[ST_LANES];
};

struct st_finish {
    enum stoker_dtype dtype;   /* of the output */
    enum stoker_layout layout;
    int32_t channels;
    size_t element;            /* bytes per value */
    enum st_formula formula;
    uint32_t lut[4][256];      /* the bits of each value: the specification */
    struct st_lanes lanes[4];  /* NCHW: one per channel; NHWC: the first for all */
};

/* Computes the table. `dtype` is the loader's output type (the spec's own if the user gave none).
 * Refuses too many steps, a zero std, and U8 output of a float pipeline. */
int st_finish_init(struct st_finish *finish, const struct st_finish_spec *spec, enum stoker_dtype dtype,
                   enum stoker_layout layout, int32_t channels, struct stoker_error *err);
/* One value after the steps from `first` on, as bits of the output type (for erasing). */
uint32_t st_finish_value(const struct st_finish_spec *spec, uint32_t first, enum stoker_dtype dtype,
                         int32_t channel, float value);

/* Destination of a sample's pixels in a slot. */
struct st_place {
    void *data;
    int32_t width, height; /* of the output image */
};

/* Writes pixels to their destination, mirrored or flipped if requested. */
void st_finish_view(const struct st_finish *finish, const struct st_kernels *kernels,
                    const struct st_view *pixels, bool mirror, bool flip, const struct st_place *place);
/* Writes one row of pixels, already mirrored, to row `y` of the destination. */
void st_finish_row(const struct st_finish *finish, const struct st_kernels *kernels, const uint8_t *row,
                   int32_t y, const struct st_place *place);

#endif
