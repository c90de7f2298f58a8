/* formula.h - how bytes become values: the table, and the formula by which vector kernels compute it
 *
 * Made by op/tensor/finish.c; read by the kernels.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_KERNELS_FORMULA_H
#define ST_OP_KERNELS_FORMULA_H

#include <stoker/stoker.h>

#include <stddef.h>
#include <stdint.h>

/* How the vector kernels compute the table's values, where x is the byte; used only if all values
 * agree. */
enum st_formula {
    ST_FORMULA_TABLE,     /* no formula: look it up */
    ST_FORMULA_SCALE,     /* x / 255, as X + X * (1/255) with X = x / 256 */
    ST_FORMULA_NORMALIZE, /* (x / 255 + add) / std, divided as t * high + t * low, 1/std = high + low */
    ST_FORMULA_NORMALIZE_PRODUCT, /* likewise, with x * (1/255) */
    ST_FORMULA_LINE,      /* x * high + add, fused: exact enough where the output is a 16-bit type */
    ST_FORMULA_PRODUCT,   /* (x + add) * high */
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
    bool array;                /* NHWC, and the shape is [H, W, C], too */
    int32_t channels;
    size_t element;            /* bytes per value */
    enum st_formula formula;
    uint32_t lut[4][256];      /* the bits of each value: the specification */
    struct st_lanes lanes[4];  /* NCHW: one per channel; NHWC: the first for all */
};

#endif
