/* masks.h - the masks of a sample: moved like its image, with the same draws
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_MASKS_H
#define ST_PIPE_MASKS_H

#include "pipe/columns.h"
#include "pipe/steps.h"

/* Makes the columns of these fields masks: names separated by commas; NULL: none. */
int st_masks_plan(struct st_columns_plan *plan, const char *names, bool sounds,
                  struct stoker_error *err);

struct st_masks_of {
    struct st_work *work;
    const struct st_columns_plan *plan;
    const struct st_steps *steps;
    const struct st_rng_key *rng_key;
    bool exif_rotate;
};

/* Replaces the pieces of masks by what becomes of them, uint8 [H, W], allocated from the arena. */
int st_masks_make(const struct st_masks_of *of, struct st_piece *pieces, struct stoker_error *err);

#endif
