/* steps.h - runs the steps of a pipeline on one image; used by loaders and by single calls
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_STEPS_H
#define ST_PIPE_STEPS_H

#include "pipe/spec.h"
#include "pipe/stage.h"

/* Together with the step's number, this determines a sample's random draws. */
struct st_rng_key {
    uint64_t seed, epoch, key;
    uint32_t view; /* of the sample, which has a seed of its own */
    struct st_region *crops; /* pipe->crops of them, that runs on the guide write; NULL: none */
    uint32_t repeat; /* 0, or 1 and more for steps that run several times */
};

/* For a step that holds others: which of them run, in order; returns how many. */
uint32_t st_steps_choose(const struct st_step *step, const struct st_rng_key *rng_key,
                         uint8_t order[ST_HELD_MAX]);
/* Makes the random draws and records the ops in the image. */
int st_steps_run(const struct st_steps *steps, const struct st_rng_key *rng_key, struct st_image *image,
                 struct stoker_error *err);
/* Whether an error of st_steps_run is one of a step that does not suit the image, not of its file. */
static inline bool st_steps_at_fault(int rc) { return rc == STOKER_EINVAL || rc == STOKER_ELIMIT; }

/* The boxes of the finished image to be erased, allocated from its worker's arena. */
int st_steps_erases(const struct stoker_pipeline *pipe, const struct st_finish *finish,
                    const struct st_rng_key *rng_key, const struct st_image *image,
                    struct st_erases *out, struct stoker_error *err);
/* Makes the pixels and writes them to their destination. */
int st_steps_finish(struct st_image *image, const struct st_finish *finish, struct st_erases erases,
                    const struct st_place *place, struct stoker_error *err);

#endif
