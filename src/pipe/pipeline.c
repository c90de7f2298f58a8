/* pipeline.c - plans a pipeline: determines every shape and type, or refuses it with an error
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "base/mem.h"
#include "pipe/spec.h"

#include <stdlib.h>
#include <string.h>

/* ---- images --------------------------------------------------------------------------------------- */

static int plan_steps(struct st_steps *steps, struct st_shape *shape, struct st_finish_spec *finish,
                      struct stoker_error *err);

/* Plans ops inside of `step`, which run for only some samples, so they must not change the type or
 * number of channels. */
static int plan_inner(const struct st_step *step, struct st_steps *inner, const struct st_shape *shape,
                      struct st_finish_spec *finish, struct st_shape *out, struct stoker_error *err)
{
    struct st_shape after = *shape;
    struct st_finish_spec same = *finish;
    const int rc = plan_steps(inner, &after, &same, err);
    if (rc)
        return rc;
    if (memcmp(&same, finish, sizeof same) || after.tensor != shape->tensor)
        return st_fail(
            err, STOKER_EINVAL,
            "pipeline: %s cannot contain to_tensor, normalize or a change of type: put it outside",
            step->op->name);
    if (after.views != shape->views)
        return st_fail(err, STOKER_EINVAL, "pipeline: %s cannot contain views: put it outside",
                       step->op->name);
    if (after.channels != shape->channels)
        return st_fail(
            err, STOKER_EINVAL,
            "pipeline: the ops in %s would change the number of channels of only some images; use "
            "grayscale(num_output_channels=3)",
            step->op->name);
    *out = after;
    return 0;
}

static bool same_size(const struct st_shape *a, const struct st_shape *b)
{
    return a->width == b->width && a->height == b->height && a->more_width == b->more_width &&
           a->more_height == b->more_height;
}

/* Ops of which any may be the first: each is planned as if it were. */
static int plan_apart(struct st_step *step, struct st_shape *shape, struct st_finish_spec *finish,
                      struct stoker_error *err)
{
    const bool mixed = step->op->holds == ST_HOLDS_MIXED;
    const bool shuffled = step->op->holds == ST_HOLDS_SHUFFLED || mixed;
    struct st_shape before = *shape, out = *shape;
    uint32_t changes = 0;
    before.mixed = mixed || shape->mixed;
    bool agree = true;
    for (uint32_t k = 0; k < step->inner.count; k++) {
        struct st_steps one = {&step->inner.step[k], 1};
        struct st_shape after;
        const int rc = plan_inner(step, &one, &before, finish, &after, err);
        if (rc)
            return rc;
        after.mixed = shape->mixed;
        if (mixed && !same_size(&after, shape))
            return st_fail(err, STOKER_EINVAL,
                           "pipeline: %s cannot contain %s, which changes the size: put it outside",
                           step->op->name, step->inner.step[k].op->name);
        if (shuffled && after.erased != shape->erased)
            return st_fail(err, STOKER_EINVAL,
                           "pipeline: %s cannot contain random_erasing: put it outside", step->op->name);
        after.erased = after.erased || out.erased;
        agree = agree && (k == 0 || same_size(&after, &out));
        if (k == 0 || !same_size(&after, shape))
            out = after;
        changes += !same_size(&after, shape);
        out.erased = after.erased;
    }
    if (shuffled ? changes > 1 : !agree)
        out.width = out.height = ST_SIZE_DIFFERS;
    *shape = out;
    return 0;
}

static int plan_holder(struct st_step *step, struct st_shape *shape, struct st_finish_spec *finish,
                       struct stoker_error *err)
{
    struct st_shape after;
    int rc = step->op->held ? step->op->held(step->self, step->inner.count, err) : 0;
    if (rc)
        return rc;
    if (step->op->holds != ST_HOLDS_ROW)
        return plan_apart(step, shape, finish, err);
    rc = plan_inner(step, &step->inner, shape, finish, &after, err);
    if (rc)
        return rc;
    if (!same_size(&after, shape))
        shape->width = shape->height = ST_SIZE_DIFFERS;
    shape->erased = after.erased;
    return 0;
}

static int plan_steps(struct st_steps *steps, struct st_shape *shape, struct st_finish_spec *finish,
                      struct stoker_error *err)
{
    for (uint32_t k = 0; k < steps->count; k++) {
        struct st_step *step = &steps->step[k];
        int rc = 0;
        if (step->op->run_audio)
            rc = st_fail(err, STOKER_EINVAL,
                         "pipeline: %s works on sounds and cannot follow an op on images",
                         step->op->name);
        else if (step->op->plan)
            rc = step->op->plan(step->self, shape, finish, err);
        if (!rc && step->op->holds)
            rc = plan_holder(step, shape, finish, err);
        if (rc)
            return rc;
    }
    return 0;
}

static uint32_t count_erases(const struct st_steps *steps)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < steps->count; k++)
        count += steps->step[k].op->erase ? 1 : count_erases(&steps->step[k].inner);
    return count;
}

/* The target by which steps choose: one comes first, so that it is the same for all. */
static int find_guide(const struct st_steps *steps, enum st_guide *guide, struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; !rc && k < steps->count; k++) {
        const enum st_guide wanted = steps->step[k].op->guide;
        if (wanted && *guide && wanted != *guide)
            return st_fail(err, STOKER_EINVAL,
                           "pipeline: %s chooses by another target than a step before it: leave one of "
                           "them out",
                           steps->step[k].op->name);
        *guide = wanted ? wanted : *guide;
        rc = find_guide(&steps->step[k].inner, guide, err);
    }
    return rc;
}

/* Numbers the steps that have a guide. */
static void number_crops(struct st_steps *steps, uint32_t *count)
{
    for (uint32_t k = 0; k < steps->count; k++) {
        struct st_step *step = &steps->step[k];
        step->crop = *count;
        *count += step->op->guide != ST_GUIDE_NONE;
        number_crops(&step->inner, count);
    }
}

/* ---- sounds --------------------------------------------------------------------------------------- */

/* A pipeline whose first op works on sounds contains only such ops. Its rows are float32: [C, T], or [C,
 * F, T] for spectrograms. Sounds of varying length are zero-padded at the end. */

static int plan_sound_steps(struct st_steps *steps, struct st_audio_shape *shape,
                            struct stoker_error *err);

/* Inner ops run for only some sounds, so they must not change the shape. */
static int plan_sound_holder(struct st_step *step, const struct st_audio_shape *shape,
                             struct stoker_error *err)
{
    struct st_audio_shape after = *shape;
    int rc = step->op->held ? step->op->held(step->self, step->inner.count, err) : 0;
    if (!rc)
        rc = plan_sound_steps(&step->inner, &after, err);
    if (rc)
        return rc;
    if (after.channels != shape->channels || after.rate != shape->rate ||
        after.frames != shape->frames || after.bins != shape->bins)
        return st_fail(err, STOKER_EINVAL,
                       "pipeline: the ops in %s would change the shape of only some sounds",
                       step->op->name);
    return 0;
}

static int plan_sound_steps(struct st_steps *steps, struct st_audio_shape *shape,
                            struct stoker_error *err)
{
    int rc = 0;
    for (uint32_t k = 0; !rc && k < steps->count; k++) {
        struct st_step *step = &steps->step[k];
        if (step->op->holds && step->op->holds != ST_HOLDS_MIXED)
            rc = plan_sound_holder(step, shape, err);
        else if (!step->op->run_audio)
            rc = st_fail(err, STOKER_EINVAL,
                         "pipeline: %s works on images and cannot follow an op on sounds",
                         step->op->name);
        else if (step->op->plan_audio)
            rc = step->op->plan_audio(step->self, shape, err);
    }
    return rc;
}

static int plan_sounds(struct stoker_pipeline *pipe, struct stoker_error *err)
{
    struct st_audio_shape *sound = &pipe->sound;
    *sound = (struct st_audio_shape){.channels = -1, .rate = -1, .frames = -1};
    const int rc = plan_sound_steps(&pipe->steps, sound, err);
    const bool one_size = sound->channels > 0 && sound->frames > 0 && sound->frames <= INT32_MAX;
    const int32_t lines = sound->bins ? sound->bins : 1;
    /* Slots and devices treat a sound as an image of one channel: the rows of its channels, stacked. */
    pipe->shape = (struct st_shape){.width = one_size ? (int32_t)sound->frames : -1,
                                    .height = one_size ? lines * sound->channels : -1,
                                    .channels = 1,
                                    .tensor = true};
    pipe->finish = (struct st_finish_spec){.scaled = true, .dtype = STOKER_DTYPE_F32};
    return rc;
}

/* ---- both ----------------------------------------------------------------------------------------- */

/* Whether the first op works on sounds. */
static bool on_sounds(const struct st_steps *steps)
{
    return steps->count && (steps->step[0].op->run_audio || on_sounds(&steps->step[0].inner));
}

int st_pipeline_open(struct stoker_pipeline **out, const char *text, struct stoker_error *err)
{
    *out = NULL;
    struct stoker_pipeline *pipe = st_calloc(1, sizeof *pipe);
    if (!pipe)
        return st_fail(err, STOKER_ENOMEM, "pipeline: out of memory");
    pipe->shape = (struct st_shape){.width = ST_SIZE_AS_READ, .height = ST_SIZE_AS_READ, .channels = 3};
    pipe->finish.dtype = STOKER_DTYPE_U8;
    atomic_init(&pipe->holders, 1);

    int rc = st_spec_parse(&pipe->steps, text, err);
    pipe->sounds = !rc && on_sounds(&pipe->steps);
    if (!rc)
        rc = pipe->sounds ? plan_sounds(pipe, err)
                          : plan_steps(&pipe->steps, &pipe->shape, &pipe->finish, err);
    if (!rc)
        rc = find_guide(&pipe->steps, &pipe->guide, err);
    if (rc) {
        st_pipeline_drop(pipe);
        return rc;
    }
    pipe->erases = count_erases(&pipe->steps);
    number_crops(&pipe->steps, &pipe->crops);
    *out = pipe;
    return 0;
}

struct stoker_pipeline *st_pipeline_hold(struct stoker_pipeline *pipe)
{
    atomic_fetch_add_explicit(&pipe->holders, 1, memory_order_relaxed);
    return pipe;
}

void st_pipeline_drop(struct stoker_pipeline *pipe)
{
    if (!pipe || atomic_fetch_sub_explicit(&pipe->holders, 1, memory_order_acq_rel) != 1)
        return;
    st_steps_free(&pipe->steps);
    free(pipe);
}
