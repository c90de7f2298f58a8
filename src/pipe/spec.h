/* spec.h - a pipeline as text, and as steps ready to run
 *
 *     pipeline := [op {';' op}] [';']
 *     op       := name ['(' [name '=' value {',' name '=' value}] ')'] ['{' pipeline '}']
 *     value    := number | word | '[' number {',' number} ']'
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ST_PIPE_SPEC_H
#define ST_PIPE_SPEC_H

#include "op/sound/audio.h"
#include "op/op.h"

#include <stdatomic.h>

struct st_steps {
    struct st_step *step;
    uint32_t count;
};

struct st_step {
    const struct st_op *op;
    void *self;            /* its parameters */
    uint32_t number;       /* its position in the text; selects its random stream */
    uint32_t crop;         /* with a guide: which of a sample's crops is its own */
    struct st_steps inner; /* for an op that contains others */
};

/* Immutable once opened, so that threads and loaders can share it. */
struct stoker_pipeline {
    struct st_steps steps;
    struct st_shape shape;        /* of the finished images */
    struct st_finish_spec finish; /* what remains to be done when they are written */
    bool sounds;                  /* the ops work on sounds, of this shape after the last op: */
    struct st_audio_shape sound;
    uint32_t erases;              /* maximum number of erased boxes per image */
    uint32_t crops;               /* steps whose crops depend on a target, */
    enum st_guide guide;          /* which is this one */
    atomic_uint holders;
};

/* Parses and plans. */
int st_pipeline_open(struct stoker_pipeline **out, const char *text, struct stoker_error *err);
struct stoker_pipeline *st_pipeline_hold(struct stoker_pipeline *pipe);
void st_pipeline_drop(struct stoker_pipeline *pipe); /* NULL is fine */

/* Parses the text into steps without planning them; on failure *out is empty. */
int st_spec_parse(struct st_steps *out, const char *text, struct stoker_error *err);
void st_steps_free(struct st_steps *steps);

#endif
