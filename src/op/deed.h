/* pending.h - ops on an image's values that are recorded and run later
 *
 * Like crops and resizes, changes of values are first recorded in the image (st_image_do) and run later
 * by whoever makes its pixels: st_pending_run here, or a device. None of them depends on the image's
 * orientation, so mirroring and flipping may come before or after.
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
    ST_DEED_GREY,    /* three equal channels; an image of one channel is unchanged */
    ST_DEED_BLUR,
    ST_DEEDS
};

enum { ST_DEEDS_MAX = 16 }; /* when full, the recorded ops are run first */

struct st_deed {
    enum st_deed_kind kind;
    float factor;          /* of colour changes */
    int32_t across, down;  /* blur: kernel widths, odd; half a kernel is smaller than the image */
    double sigma;
};

/* Runs the ops in order on writable pixels; a blur replaces the pixels by new ones from the arena.
 * Returns STOKER_ENOMEM or STOKER_OK. */
int st_deeds_run(const struct st_deed *deeds, uint32_t count, const struct st_colour_rows *rows,
                 struct st_arena *arena, struct st_view *pixels);

/* A blur's centre weight and those on one side of it: `taps` / 2 + 1 weights. The whole kernel sums to
 * 1. */
void st_blur_weights(int32_t taps, double sigma, float *weight);

#endif
