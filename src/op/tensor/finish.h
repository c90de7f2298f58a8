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
#include "op/kernels/formula.h"
#include "op/kernels/kernels.h"

enum { ST_NORMALIZE_MAX = 4 };

/* What the ops after decoding require, collected while planning. */
struct st_finish_spec {
    bool scaled;                /* ToTensor: divide by 255, giving float32 */
    bool by_product;            /* or multiply by 1/255, like torchvision's v2; may differ in the last
                                   bit */
    bool array;                 /* [H, W, C], whatever the loader's layout is */
    enum stoker_dtype dtype;    /* current type of the pipeline: U8, F32, F16, BF16; steps round to it */
    uint32_t steps;
    struct {
        float mean[4], std[4]; /* (value - mean) / std */
        bool product;          /* or (value - mean) * std */
    } step[ST_NORMALIZE_MAX];
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
/* Writes row `y` of an image to the destination of the image that is mirrored or flipped. */
void st_finish_row(const struct st_finish *finish, const struct st_kernels *kernels, const uint8_t *row,
                   bool mirror, bool flip, int32_t y, const struct st_place *place);
/* Begins to fetch a share of row `y`, which is written soon; nothing if there is no such row. In many
 * small shares between other work it takes no time; all at once, the CPU waits for some of it. */
struct st_fraction {
    size_t begin, end, of;
};
#define ST_ALL_OF_IT ((struct st_fraction){0, 1, 1})
void st_finish_ahead(const struct st_finish *finish, bool flip, int32_t y, struct st_fraction share,
                     const struct st_place *place);

#endif
