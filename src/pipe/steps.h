/* steps.h - the steps of a pipeline on one image, whoever asked for it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_STEPS_H
#define ST_PIPE_STEPS_H

#include "pipe/spec.h"
#include "pipe/stage.h"

/* What a sample's random draws are a function of, together with the step. */
struct st_chance {
    uint64_t seed, epoch, key;
};

/* Draws, and notes in the image what is to be done to it. */
int st_steps_run(const struct st_steps *steps, const struct st_chance *chance, struct st_image *image,
                 struct stoker_error *err);
/* The boxes of the image, as finished, that are to be overwritten; in memory of its worker's arena. */
int st_steps_erases(const struct stoker_pipeline *pipe, const struct st_finish *finish, const struct st_chance *chance,
                    const struct st_image *image, struct st_erases *out, struct stoker_error *err);
/* Makes the pixels, and writes them to their place. */
int st_steps_finish(struct st_image *image, const struct st_finish *finish, struct st_erases erases,
                    const struct st_place *place, struct stoker_error *err);

#endif
