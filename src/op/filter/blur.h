/* blur.h - a Gaussian blur: down, then across
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_FILTER_BLUR_H
#define ST_OP_FILTER_BLUR_H

#include "base/err.h"
#include "base/mem.h"
#include "op/colour/colour.h"

/* The kernel widths are odd, and half a kernel is smaller than the image. `pixels` are replaced by new
 * ones from the arena. Returns STOKER_ENOMEM or STOKER_OK. */
int st_blur(const struct st_colour_rows *rows, int32_t across, int32_t down, double sigma,
            struct st_arena *arena, struct st_view *pixels);

/* A kernel's centre weight and those on one side of it: `taps` / 2 + 1 weights. The whole kernel sums to
 * 1. */
void st_blur_weights(int32_t taps, double sigma, float *weight);

#endif
