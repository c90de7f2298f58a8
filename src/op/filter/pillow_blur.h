/* pillow_blur.h - a blur with the bytes of Pillow's GaussianBlur, made at once
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_FILTER_PILLOW_BLUR_H
#define ST_OP_FILTER_PILLOW_BLUR_H

#include "op/image.h"

#define ST_PILLOW_BLUR_SIGMA_MAX 1e4

/* Blurs by a standard deviation of 0 to ST_PILLOW_BLUR_SIGMA_MAX; masks and boxes stay as they are. `op`
 * is the op's name, for the message. */
int st_pillow_blur(struct st_image *image, double sigma, const char *op, struct stoker_error *err);

#endif
