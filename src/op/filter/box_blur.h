/* box_blur.h - means over boxes, repeated: Pillow's BoxBlur and GaussianBlur
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_FILTER_BOX_BLUR_H
#define ST_OP_FILTER_BOX_BLUR_H

#include "base/err.h"
#include "base/mem.h"
#include "op/colour/colour.h"

#define ST_BOX_RADIUS_MAX 65535.0f

/* The radius of the boxes that, applied three times, approximate a Gaussian of this standard deviation.
 * `fused`: in a build of Pillow that rounds a product and a sum at once; below 0 if it depends on the
 * build's compiler. */
enum { ST_BOX_GAUSSIAN_PASSES = 3 };
float st_box_gaussian_radius(float sigma, bool fused);

/* Replaces each value by the mean of a box around it, `passes` times across and then down. What a radius
 * has beyond a whole number counts as a part of the next pixel. Beyond the border, values are those at
 * the border. The radii are from 0 to ST_BOX_RADIUS_MAX. Changes the pixels in place. Returns
 * STOKER_ENOMEM or STOKER_OK. */
int st_box_blur(const struct st_colour_rows *rows, float across, float down, int32_t passes,
                struct st_arena *arena, const struct st_view *pixels);

#endif
