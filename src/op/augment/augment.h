/* augment.h - the changes that automatic augmentation chooses from, each with a magnitude
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_AUGMENT_AUGMENT_H
#define ST_OP_AUGMENT_AUGMENT_H

#include "op/geometry/warp_op.h"

/* In the order in which RandAugment and TrivialAugmentWide number them; they have no inversion. */
enum st_augment {
    ST_AUGMENT_IDENTITY,
    ST_AUGMENT_SHEAR_X, ST_AUGMENT_SHEAR_Y,
    ST_AUGMENT_TRANSLATE_X, ST_AUGMENT_TRANSLATE_Y,
    ST_AUGMENT_ROTATE,
    ST_AUGMENT_BRIGHTNESS, ST_AUGMENT_COLOR, ST_AUGMENT_CONTRAST, ST_AUGMENT_SHARPNESS,
    ST_AUGMENT_POSTERIZE,
    ST_AUGMENT_SOLARIZE,
    ST_AUGMENT_AUTOCONTRAST, ST_AUGMENT_EQUALIZE,
    ST_AUGMENT_CHOICES,
    ST_AUGMENT_INVERT = ST_AUGMENT_CHOICES
};

/* The strongest that each kind gets. */
struct st_augment_most {
    double shear, rotate, blend; /* blend: of brightness, colour, contrast and sharpness */
    double translate;            /* in pixels; 0: as a fraction of the side, 150 / 331 */
    int32_t bits;                /* that posterize removes */
};

/* Changes the image by magnitude `bin` of 0 to `bins` - 1; *rng says in which direction, if there are
 * two. */
int st_augment_run(enum st_augment kind, int32_t bin, int32_t bins, const struct st_augment_most *most,
                   const struct st_warp_params *warp, struct st_rng *rng, struct st_image *image,
                   const char *op, struct stoker_error *err);

#endif
