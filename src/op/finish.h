/* finish.h - from bytes to the final type and layout: ToTensor, Normalize, the cast, NCHW or NHWC
 *
 * A byte has 256 values, so whatever arithmetic torchvision does to it in float32, one step after the
 * other, is settled beforehand for each channel. The kernels compute the same by vectors where they can
 * prove, value by value at plan time, that they get the same bits.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_FINISH_H
#define ST_OP_FINISH_H

#include "base/err.h"
#include "base/pixels.h"
#include "op/kernels.h"

enum { ST_NORMALIZE_MAX = 4 };

/* What the ops after decoding ask for, gathered while planning. */
struct st_finish_spec {
    bool scaled;                /* ToTensor: divide by 255, giving float32 */
    bool by_product;            /* or multiply by 1/255, as torchvision's v2 does: the last bit may differ */
    enum stoker_dtype dtype;    /* the type the pipeline is in: U8, F32, F16, BF16; steps round to it */
    uint32_t steps;
    struct {
        float mean[4], std[4];
    } step[ST_NORMALIZE_MAX];
};

/* How vectors compute what the table says, x being the byte; chosen only when all its values agree. */
enum st_formula {
    ST_FORMULA_TABLE,     /* not at all: look it up */
    ST_FORMULA_SCALE,     /* x / 255, as X + X * (1/255) with X = x / 256 */
    ST_FORMULA_NORMALIZE, /* (x / 255 + add) / std, the division as t * high + t * low, 1/std = high +
                             low */
    ST_FORMULA_LINE,      /* x * high + add, fused: enough where half precision hides the rest */
};

/* The formula's numbers for consecutive values of a row: the same channel all along (NCHW), or the
 * channels in turn (NHWC). 48 is three of the longest vectors, so every vector begins at a multiple. */
enum { ST_LANES = 48 };
struct st_lanes {
    float add[ST_LANES], high[ST_LANES], low[ST_LANES];
};

struct st_finish {
    enum stoker_dtype dtype;   /* of the output */
    enum stoker_layout layout;
    int32_t channels;
    size_t element;            /* bytes of one value */
    enum st_formula formula;
    uint32_t lut[4][256];      /* the bits of each value: the specification */
    struct st_lanes lanes[4];  /* NCHW: of each channel; NHWC: the first for all */
};

/* Settles the table. `dtype` is the loader's output type (the spec's own where the user gave none).
 * Refuses more steps than fit, a zero std, U8 output of a float pipeline. */
int st_finish_init(struct st_finish *finish, const struct st_finish_spec *spec, enum stoker_dtype dtype,
                   enum stoker_layout layout, int32_t channels, struct stoker_error *err);
/* One value through the steps from `first` on, as bits of the output type (for erasing). */
uint32_t st_finish_value(const struct st_finish_spec *spec, uint32_t first, enum stoker_dtype dtype,
                         int32_t channel, float value);

/* Where pixels end up: the place of one sample in a slot. `mirror` and `flip` turn it left-right and
 * upside down while it is written. */
struct st_place {
    void *data;
    int32_t width, height; /* of the output image */
};

/* Pixels -> their place. */
void st_finish_view(const struct st_finish *finish, const struct st_kernels *kernels,
                    const struct st_view *pixels, bool mirror, bool flip, const struct st_place *place);
/* One row of pixels, already mirrored, to row `y` of the place. */
void st_finish_row(const struct st_finish *finish, const struct st_kernels *kernels, const uint8_t *row,
                   int32_t y, const struct st_place *place);

#endif
