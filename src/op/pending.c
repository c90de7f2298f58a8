/* pending.c - runs an image's pending ops
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "op/pending.h"

#include "op/colour/colour.h"
#include "op/filter/blur.h"

int st_pending_run(const struct st_pending *pending, uint32_t count, const struct st_colour_rows *rows,
                 struct st_arena *arena, struct st_view *pixels)
{
    int rc = STOKER_OK;
    for (uint32_t k = 0; rc >= 0 && k < count; k++) {
        const struct st_pending *op = &pending[k];
        switch (op->kind) {
        case ST_PENDING_BRIGHTNESS: st_colour_brightness(rows, pixels, op->factor); break;
        case ST_PENDING_CONTRAST: st_colour_contrast(rows, pixels, op->factor); break;
        case ST_PENDING_SATURATION: st_colour_saturation(rows, pixels, op->factor); break;
        case ST_PENDING_HUE: st_colour_hue(rows, pixels, op->factor); break;
        case ST_PENDING_BLUR: rc = st_blur(op->across, op->down, op->sigma, arena, pixels); break;
        default:
            if (pixels->channels == 3)
                st_colour_grey3(rows, pixels);
        }
    }
    return rc;
}
