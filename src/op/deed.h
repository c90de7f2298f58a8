/* deed.h - what is done to an image's values once its size is settled, noted down
 *
 * Like crops and resizes, changes of values are first only noted in the image (st_image_do), and carried out
 * by whoever makes its pixels: here, by st_deeds_run, or by a device. None of them cares which side is left
 * or up, so mirroring and flipping may come before or after.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_DEED_H
#define ST_OP_DEED_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

struct st_colour_rows;

enum st_deed_kind {
    ST_DEED_BRIGHTNESS, ST_DEED_CONTRAST, ST_DEED_SATURATION, ST_DEED_HUE,
    ST_DEED_GREY,    /* three equal channels; one channel stays */
    ST_DEED_BLUR,
    ST_DEEDS
};

enum { ST_DEEDS_MAX = 16 }; /* more are carried out before they are noted */

struct st_deed {
    enum st_deed_kind kind;
    float factor;          /* of the colour changes */
    int32_t across, down;  /* blur: width of the kernel, odd; half of it is less than the image's side */
    double sigma;
};

/* The deeds in their order, on pixels that may be written to; a blur puts others, from the arena, in their
 * place. STOKER_ENOMEM or STOKER_OK. */
int st_deeds_run(const struct st_deed *deeds, uint32_t count, const struct st_colour_rows *rows,
                 struct st_arena *arena, struct st_view *pixels);

/* A blur's middle weight and those on one side of it: `taps` / 2 + 1 of them. The kernel sums up to 1. */
void st_blur_weights(int32_t taps, double sigma, float *weight);

#endif
