/* elastic.h - moves every pixel by its own distance: a random, smooth displacement
 *
 * Drawing a displacement and moving pixels by it are two things: what else belongs to the image follows
 * the same displacement.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_ELASTIC_ELASTIC_H
#define ST_OP_ELASTIC_ELASTIC_H

#include "op/image.h"
#include "order/rng.h"

/* How far from a pixel of the result the place lies that it comes from, in pixels. */
struct st_displacement {
    float *right, *down; /* [height][width] */
    int32_t width, height;
};

/* torchvision's: noise from -1 to 1, blurred with the two sigmas (0: not), times alpha / 2. Index 0 is
 * across, 1 down. An error if a blur is wider than the image. */
int st_displacement_draw(struct st_displacement *out, struct st_rng *rng, const double alpha[2],
                         const double sigma[2], struct st_arena *arena, const char *op,
                         struct stoker_error *err);
/* The number of taps of the blur for a sigma. */
int32_t st_displacement_taps(double sigma);

/* Moves the pixels of an image of the same size: the nearest filter chooses pixels, all others mix them
 * bilinearly. `fill`, one value per channel, is for what comes from outside. */
int st_image_displace(struct st_image *image, const struct st_displacement *by, enum st_filter filter,
                      const uint8_t *fill, const char *op, struct stoker_error *err);

#endif
