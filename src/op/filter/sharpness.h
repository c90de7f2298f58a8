/* sharpness.h - sharper or softer, with the same results as Pillow
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_FILTER_SHARPNESS_H
#define ST_OP_FILTER_SHARPNESS_H

#include "base/err.h"
#include "base/mem.h"
#include "op/colour/colour.h"

/* Moves values away from the weighted means of 3 x 3 pixels by `factor` (below 1: towards them). Pixels
 * at the border stay. `pixels` are replaced by new ones from the arena. Returns STOKER_ENOMEM or
 * STOKER_OK. */
int st_sharpness(const struct st_colour_rows *rows, float factor, struct st_arena *arena,
                 struct st_view *pixels);

#endif
