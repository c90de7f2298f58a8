/* tensor_changes.h - changes of images with torchvision's arithmetic for tensors of bytes
 *
 * It is float32 where Pillow has integers. torch may add up in another order, fuse a product and a sum,
 * or not: a value that lies next to an integer may be another one then.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_AUGMENT_TENSOR_CHANGES_H
#define ST_OP_AUGMENT_TENSOR_CHANGES_H

#include "base/mem.h"
#include "base/pixels.h"

/* All work on pixels of their own, of 1 or 3 channels. `fused`: as v2, which adds products without
 * rounding them, where v1 rounds them, and divides where v1 multiplies. */
void st_tensor_brightness(const struct st_view *pixels, double factor);
void st_tensor_saturation(const struct st_view *pixels, double factor, bool fused);
void st_tensor_contrast(const struct st_view *pixels, double factor, bool fused);
void st_tensor_autocontrast(const struct st_view *pixels, bool fused);
/* False: out of memory. */
bool st_tensor_sharpness(const struct st_view *pixels, double factor, bool fused,
                         struct st_arena *arena);

/* The point (x, y) of the result comes from (map[0] x + map[1] y + map[2], map[3] x + map[4] y +
 * map[5]), counted from the middle; pixels are mixed. fill: NULL, or of what comes from outside. */
void st_tensor_affine(const struct st_view *in, const double map[6], const float *fill, bool fused,
                      const struct st_view *out);

#endif
