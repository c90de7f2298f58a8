/* pending.h - ops on an image's values that are recorded and run later
 *
 * Like crops and resizes, changes of values are first recorded in the image (st_image_do) and run later
 * by whoever makes its pixels: st_pending_run here, or a device. None of them depends on the image's
 * orientation, so mirroring and flipping may come before or after.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_PENDING_H
#define ST_OP_PENDING_H

#include "base/err.h"
#include "base/mem.h"
#include "base/pixels.h"

struct st_colour_rows;

enum st_pending_kind {
    ST_PENDING_BRIGHTNESS, ST_PENDING_CONTRAST, ST_PENDING_SATURATION, ST_PENDING_HUE,
    ST_PENDING_GREY,    /* three equal channels; an image of one channel is unchanged */
    ST_PENDING_BLUR,
    ST_PENDING_KINDS
};

enum { ST_PENDING_MAX = 16 }; /* when full, the recorded ops are run first */

struct st_pending {
    enum st_pending_kind kind;
    float factor;          /* of colour changes */
    int32_t across, down;  /* blur: kernel widths, odd; half a kernel is smaller than the image */
    double sigma;
};

/* Runs the ops in order on writable pixels; a blur replaces the pixels by new ones from the arena.
 * Returns STOKER_ENOMEM or STOKER_OK. */
int st_pending_run(const struct st_pending *pending, uint32_t count, const struct st_colour_rows *rows,
                 struct st_arena *arena, struct st_view *pixels);

#endif
