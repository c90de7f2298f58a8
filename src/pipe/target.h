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
    const struct stoker_pipeline *pipe;
    const struct st_finish *finish; /* of images */
    const struct st_rng_key *rng_key;
    bool exif_rotate;
    int32_t width, height; /* of the image; set by st_targets_make */
    uint32_t field;        /* the one that is being made, for messages */
    bool step_failed;      /* out: the error is of a step and concerns the image, not the target alone */
};

/* Runs the image's steps on a target. */
static inline int st_target_move(struct st_targets *of, struct st_image *image, struct stoker_error *err)
{
    const int rc = st_steps_run(&of->pipe->steps, of->rng_key, image, err);
    of->step_failed = st_steps_at_fault(rc);
    return rc;
}

#endif
