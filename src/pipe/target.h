/* target.h - what a sample's targets are made from
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_TARGET_H
#define ST_PIPE_TARGET_H

#include "pipe/columns.h"
#include "pipe/steps.h"

/* The targets of one sample. */
struct st_targets {
    struct st_work *work;
    const struct st_columns_plan *plan;
    const struct st_steps *steps;
    const struct st_rng_key *rng_key;
    bool exif_rotate;
    int32_t width, height; /* of the image; set by st_targets_make */
};

#endif
