/* taps_kept.h - taps of resizes that recur, computed once
 *
 * The size of a random crop determines the taps of its resize, and there are only some hundred sizes.
 * Making taps takes about 5 us for each axis (bilinear, 224 outputs), which is a fifth of what a thread
 * that passes files to a GPU's JPEG hardware does for an image. So a loader keeps them, up to a number
 * of bytes; what then does not fit is computed every time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_OP_RESIZE_TAPS_KEPT_H
#define ST_OP_RESIZE_TAPS_KEPT_H

#include "base/budget.h"
#include "op/resize/taps.h"

struct st_taps_kept;

/* At most `most` bytes of taps, counted in `budget`, which outlives it. NULL when out of memory. */
struct st_taps_kept *st_taps_kept_new(uint64_t most, struct st_budget *budget);
void st_taps_kept_free(struct st_taps_kept *kept); /* NULL is fine */

/* What st_side_taps makes of this side, not mirrored: kept, or made in the arena. `kept` may be NULL.
 * Any thread. */
bool st_taps_kept_find(struct st_taps_kept *kept, const struct st_side *side, struct st_arena *arena,
                       struct st_taps *taps);

#endif
